# Sourced by `.ci/run` and `.ci/full`: a fresh environment with a home of its own and no network, and sections that are
# timed. A section that fails makes the whole fail at the end, after the others have been tried.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export PIP_CACHE_DIR=${PIP_CACHE_DIR:-$HOME/.cache/pip}
mkdir "$work/home"
export HOME=$work/home
unset "${!PYTHON@}" PYTEST_ADDOPTS "${!CORA_@}" "${!XDG_@}" "${!HF_@}" "${!OPENAI_@}" # set by some, not by newcomers
python3 -m venv "$work/venv"
# shellcheck disable=SC1091
. "$work/venv/bin/activate"
python --version
packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp .ci/no_network.py "$packages/cora_no_network.py"
echo 'import cora_no_network' >"$packages/cora_no_network.pth"
export CORA_NO_NETWORK=$work/tried

times=() red=()
section() { # its name, and the command that it is
    printf '\n== %s\n' "$1"
    local start=$SECONDS how=ok
    : >"$CORA_NO_NETWORK"
    "${@:2}" || how=RED
    if [ -s "$CORA_NO_NETWORK" ]; then
        echo "the network was tried (how often, what, by which command and test):" >&2
        sort "$CORA_NO_NETWORK" | uniq -c >&2
        how=RED
    fi
    [ "$how" = ok ] || red+=("$1")
    times+=("$(printf '%5d s  %-3s  %s' $((SECONDS - start)) "$how" "$1")")
}

finish() { # the list of times; fails if a section did
    printf '\n== how long each part took\n'
    printf '%s\n' "${times[@]}"
    if [ ${#red[@]} -gt 0 ]; then
        printf 'RED: %s\n' "${red[@]}" >&2
        exit 1
    fi
}
