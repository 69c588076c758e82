#!/bin/bash
# How often tests are red on a busy machine: each is run again and again beside loops that do nothing but compute.
#
# A test that is red by chance says nothing about a change, and hides what is wrong. This is how such tests are found:
# three loops on two cores make the clock run as on a machine that others use, too.
#
#     tools/stress/by_chance.sh REPETITIONS LOOPS TEST...
#     tools/stress/by_chance.sh 10 3 tests/runs/test_store.py tests/respondents/test_protocol.py::test_an_interrupt
#
# A test is whatever pytest takes, files and ids, slow ones too. Printed is a line for each: how often it was red, of
# how many; what a red one said lies in the folder that is named at the end. Exit status 1 if any
# was red. $PYTHON names the Python (default: python). The loops end with the script, however it ends.

set -u
if [ $# -lt 3 ]; then
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
    exit 2
fi
repetitions=$1 loops=$2
shift 2
tests=("$@")
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python}
said=$(mktemp -d)
busy=()
declare -A red=() ran=()
start=$SECONDS

at_the_end() { # also of a script that is ended before its last repetition
    local status=$?
    [ ${#busy[@]} -eq 0 ] || kill "${busy[@]}" 2>/dev/null
    for test in "${tests[@]}"; do
        echo "${red[$test]:-0} of ${ran[$test]:-0} red: $test"
    done
    if [ ${#red[@]} -gt 0 ]; then
        echo "what they said: $said"
        exit $((status > 1 ? status : 1))
    fi
    rm -r "$said"
}
trap at_the_end EXIT
trap 'exit 130' INT TERM HUP
cd "$root" || exit 2
for _ in $(seq "$loops"); do
    "$python" -c "while True: pass" &
    busy+=($!)
done

for n in $(seq "$repetitions"); do # each once, then each again: what else the machine does meets all of them
    for test in "$@"; do
        file="$said/$(tr -c 'A-Za-z0-9_.\n' _ <<<"$test").$n"
        PYTHONPATH=$root "$python" -m pytest -n 0 -q -p no:cacheprovider -m "slow or not slow" "$test" >"$file" 2>&1
        status=$?
        ran[$test]=$((${ran[$test]:-0} + 1))
        if [ $status -eq 0 ]; then
            rm "$file"
        else
            red[$test]=$((${red[$test]:-0} + 1))
        fi
    done
    echo "round $n of $repetitions, ${#red[@]} tests red so far, $((SECONDS - start)) s" >&2
done
