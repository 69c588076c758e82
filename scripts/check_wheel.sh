#!/usr/bin/env bash
# Does a wheel of this project work where only the wheel is? Builds the sdist of the last commit and, from that sdist
# alone, the wheel; asks whether it holds every module and every file of data/; then, for each Python named, in a fresh
# environment outside the checkout: installs the wheel, `pip check`, `cora_run`, Jupyter, and the first chapter of the
# course as a notebook.
#
#   scripts/check_wheel.sh                             # with the python3 at hand
#   scripts/check_wheel.sh python3.11 python3.13       # one after the other
#   ALSO=torch==2.13.0 scripts/check_wheel.sh python3  # more for pip to install: here, a version of torch
#   DIST=dist BUILD_ONLY=1 scripts/check_wheel.sh      # builds and compares, and leaves both files in that folder
#   WHEEL=dist/x.whl scripts/check_wheel.sh python3    # tries this wheel and builds none
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$#" -gt 0 ] || set -- python3
course=nbs/course/01_what_a_score_hides.ipynb
root=$PWD
unset PYTHONPATH # the package must come from the wheel

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf '\n== %s\n' "$1"; }

if [ -n "${WHEEL:-}" ]; then
    wheel=$(realpath "$WHEEL")
else
    say "build: sdist of $(git rev-parse --short HEAD), and the wheel from the sdist"
    mkdir "$work/source" "$work/dist"
    git archive HEAD | tar -x -C "$work/source" # neither files that git does not know nor an old build
    "$1" -m venv "$work/builder"
    "$work/builder/bin/python" -m pip install -qq build
    "$work/builder/bin/python" -m build --outdir "$work/dist" "$work/source" >"$work/build.log" 2>&1 ||
        { tail -n 40 "$work/build.log" >&2; exit 1; }
    ls -l "$work/dist" | awk 'NR > 1 { print $5, $9 }'
    wheel=$(echo "$work"/dist/*.whl)
    "$1" scripts/wheel_holds.py "$wheel" "$work/source"
    if [ -n "${DIST:-}" ]; then
        mkdir -p "$DIST"
        cp "$work"/dist/* "$DIST"
    fi
fi
[ -z "${BUILD_ONLY:-}" ] || exit 0

for python in "$@"; do
    say "$("$python" --version): the wheel in a fresh environment"
    here=$work/$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    "$python" -m venv "$here/env"
    bin=$here/env/bin
    mkdir "$here/folder"
    cd "$here/folder"
    # shellcheck disable=SC2086
    "$bin/python" -m pip install -qq ${ALSO:-} "$wheel"
    "$bin/python" -m pip check
    "$bin/python" -c 'import cora_nb; print("cora_nb", cora_nb.__version__, "of", cora_nb.__file__.split("env/")[1])'
    HOME=$here "$bin/cora_run" >"$here/said.txt" 2>"$here/errors.txt" ||
        { cat "$here/said.txt" "$here/errors.txt" >&2; exit 1; }
    grep -E '^ +steady|MCQA  |CoRA ' "$here/said.txt"
    test -s responses/math/skewed/responses.parquet
    "$bin/python" -m pip install -qq nbconvert ipykernel
    "$bin/python" -m pip check
    cp "$root/$course" chapter.ipynb
    HOME=$here "$bin/python" -m nbconvert --log-level=ERROR --to notebook --execute --inplace chapter.ipynb
    if grep "IProgress not found" chapter.ipynb; then exit 1; fi # tqdm without ipywidgets
    echo "the first chapter of the course runs: $course"
    cd "$root"
    rm -rf "$here"
done
say "the wheel works with $# Python(s)"
