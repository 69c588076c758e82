#!/usr/bin/env bash
# Write constraints.txt anew: for each package that the extras need, on each Python that we promise, one version; what
# is tested together, and with which the committed outputs were made. Versions that still fit stay, so a new line in
# settings.ini changes only what it must; `UPGRADE=1` takes the newest of everything (then run the notebooks again).
#
#   pip install uv && scripts/make_constraints.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=$(grep -oP '^min_python = \K.*' settings.ini)
torch=$(grep '^torch==' constraints.txt || true) # a new version of it is a decision: name it there by hand
echo "$torch" >"$work/torch.txt"
cp constraints.txt "$work/found.txt"
touch setup.py # uv looks at its time only
uv pip compile setup.py --no-cache --quiet ${UPGRADE:+--upgrade} --extra dev --extra site --universal \
    --python-version "$python" --constraint "$work/torch.txt" --no-annotate --no-header --output-file "$work/found.txt"
{
    echo "# Versions that were tested together, and with which the committed outputs were made:"
    echo "#   pip install -e . -c constraints.txt"
    echo "# Written by scripts/make_constraints.sh. What torch itself brings for a GPU is torch's to choose."
    grep -vE '^(nvidia-|cuda-|triton|setuptools|wheel|pip=)' "$work/found.txt"
} >constraints.txt
