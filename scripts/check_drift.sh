#!/usr/bin/env bash
# Is everything generated exactly what the notebooks generate? Three questions, asked of the last commit:
#   does nbdev_clean leave the notebooks as they are,
#   does nbdev_export write cora_nb/ again after all of it was deleted (a file left over from a renamed notebook stays deleted),
#   does make_readme.py write README.md again.
# The work is done in a clone in a temporary folder: nothing here is touched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -n "$(git status --porcelain)" ]; then
    echo "check_drift: commit or remove these first, the check looks at the last commit:" >&2
    git status --short >&2
    exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet . "$work/project"
cd "$work/project"
export PYTHONPATH=$PWD

unchanged() { # what was done, what to do about a difference
    git add --all
    if git diff --cached --quiet; then
        echo "ok: $1"
    else
        echo "DRIFT: $1 changes the tree; $2" >&2
        git --no-pager diff --cached --stat >&2
        git --no-pager diff --cached | cut -c 1-200 | head -n 60 >&2 || true
        failed=1
        git reset --quiet --hard
    fi
}

failed=0
nbdev_clean
unchanged "nbdev_clean" "run it and commit"
find cora_nb -type f -delete
nbdev_export
unchanged "nbdev_export into an empty cora_nb" "run nbdev_export, remove what no notebook exports, and commit"
python scripts/make_readme.py
unchanged "scripts/make_readme.py" "run it and commit"
exit "$failed"
