#!/usr/bin/env bash
# Does a wheel of this project work where only the wheel is? Builds the sdist of the last commit and, from that sdist
# alone, the wheel; asks whether it holds every module and every file of data/; then, for each Python named, in a fresh
# environment outside the checkout: installs the wheel, `pip check`, `cora_run`, Jupyter, and the first chapter of the
# course as a notebook.
#
#   scripts/check_wheel.sh                             # with the python3 at hand
#   scripts/check_wheel.sh python3.10 python3.13       # one after the other
#   ALSO=torch==2.13.0 scripts/check_wheel.sh python3  # more for pip to install: here, a version of torch
#   DIST=dist scripts/check_wheel.sh python3           # leaves the sdist and the wheel in that folder
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$#" -gt 0 ] || set -- python3
chapter=$PWD/nbs/course/01_what_a_score_hides.ipynb
unset PYTHONPATH # the package must come from the wheel

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf '\n== %s\n' "$1"; }

say "build: sdist of $(git rev-parse --short HEAD), and the wheel from the sdist"
mkdir "$work/source" "$work/dist"
git archive HEAD | tar -x -C "$work/source" # neither files that git does not know nor an old build
"$1" -m venv "$work/builder"
"$work/builder/bin/python" -m pip install -qq build
"$work/builder/bin/python" -m build --outdir "$work/dist" "$work/source" >"$work/build.log" 2>&1 ||
    { tail -n 40 "$work/build.log" >&2; exit 1; }
ls -l "$work/dist" | awk 'NR > 1 { print $5, $9 }'
"$1" scripts/wheel_holds.py "$work"/dist/*.whl "$work/source"

for python in "$@"; do
    say "$("$python" --version): the wheel in a fresh environment"
    here=$work/$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    "$python" -m venv "$here/env"
    bin=$here/env/bin
    mkdir "$here/folder"
    cd "$here/folder"
    # shellcheck disable=SC2086
    "$bin/python" -m pip install -qq ${ALSO:-} "$work"/dist/*.whl
    "$bin/python" -m pip check
    "$bin/python" -c 'import cora_nb; print("cora_nb", cora_nb.__version__, "of", cora_nb.__file__.split("env/")[1])'
    HOME=$here "$bin/cora_run" >"$here/said.txt" 2>"$here/errors.txt" ||
        { cat "$here/said.txt" "$here/errors.txt" >&2; exit 1; }
    grep -E '^ +(steady|skewed)|MCQA |CoRA ' "$here/said.txt"
    test -s responses/math/skewed/responses.parquet
    "$bin/python" -m pip install -qq nbconvert ipykernel
    "$bin/python" -m pip check
    if [ -e "$chapter" ]; then
        cp "$chapter" chapter.ipynb
        HOME=$here "$bin/python" -m nbconvert --log-level=ERROR --to notebook --execute --inplace chapter.ipynb
        echo "the course's first chapter runs: $(basename "$chapter")"
    else
        echo "the course's first chapter is missing, so it was not run: ${chapter#"$OLDPWD/"}"
    fi
    cd "$OLDPWD"
    rm -rf "$here"
done

if [ -n "${DIST:-}" ]; then
    mkdir -p "$DIST"
    cp "$work"/dist/* "$DIST"
fi
say "the wheel works with $# Python(s)"
