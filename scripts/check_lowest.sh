#!/usr/bin/env bash
# Does the package work with the lowest versions that settings.ini promises? In a fresh environment for each Python
# named: installs exactly those, `pip check`, the bundled benchmark, and the tests of the modules that lean most on
# other packages. By hand: it downloads old releases, and an old torch brings gigabytes for a GPU.
#
#   scripts/check_lowest.sh python3.11
#   TORCH=2.13.0 scripts/check_lowest.sh python3.11     # another torch than the lowest, where that cannot be had
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ "$#" -gt 0 ] || set -- python3
tests=${TESTS:-tests/responses tests/metrics/test_cora.py tests/metrics/test_scores.py tests/respondents tests/report}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for python in "$@"; do
    printf '\n== %s\n' "$("$python" --version)"
    "$python" - "${TORCH:-}" >"$work/lowest.txt" <<'PYTHON'
import configparser
import re
import sys

ini = configparser.ConfigParser(delimiters=["="])
ini.read("settings.ini", encoding="utf-8")
for requirement in ini["DEFAULT"]["requirements"].split():
    name, version, marker = re.fullmatch(r"([\w-]+)>=([\d.]+)(;.*)?", requirement).groups()
    version = sys.argv[1] if name == "torch" and sys.argv[1] else version
    print(f"{name}=={version}{' ' + marker if marker else ''}")
PYTHON
    cat "$work/lowest.txt"
    "$python" -m venv --clear "$work/env"
    bin=$work/env/bin
    "$bin/python" -m pip install -q . pytest pytest-xdist hypothesis markdown-it-py -c "$work/lowest.txt"
    "$bin/python" -m pip check
    (cd "$work" && HOME=$work "$bin/cora_run" >said.txt 2>errors.txt) || { cat "$work/said.txt" "$work/errors.txt" >&2; exit 1; }
    grep -E '^ +steady|MCQA  |CoRA ' "$work/said.txt"
    cp -r tests scripts pyproject.toml README.md settings.ini nbs "$work" # beside them no cora_nb: it is the installed one
    # shellcheck disable=SC2086
    (cd "$work" && HOME=$work "$bin/pytest" -q $tests)
    rm -rf "$work"/{tests,scripts,nbs,responses}
done
printf '\n== the lowest versions work with %d Python(s)\n' "$#"
