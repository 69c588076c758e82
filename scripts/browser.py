"""Where Chromium or Chrome is on this machine: `python scripts/browser.py` prints its path, or ends with status 1.

The site's formulas, the slides, and the tests of pages need a browser, and look for it here. `$CHROMIUM` names another.
They start it here, too, with `launched`.
"""

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIMIT = 120_000  # milliseconds for a launch, or for what a page is waited for: it ends a hang, no more


def browser_path() -> str | None:
    "The browser at hand: what `$CHROMIUM` says, or else the first on PATH; None where there is none."
    names = [os.environ["CHROMIUM"]] if os.environ.get("CHROMIUM") else NAMES
    return next(filter(None, map(shutil.which, names)), None)


def launched(play):
    """A browser for playwright, its own where no other is found; a launch that fails is tried once more.

    On a busy machine a browser may miss its moment to answer, which says nothing about the pages. Raises playwright's
    `Error` where the second launch fails as well.
    """
    from playwright.sync_api import Error

    words = {"executable_path": browser_path(), "args": ["--no-sandbox"], "timeout": LIMIT}
    try:
        return play.chromium.launch(**words)
    except Error:
        return play.chromium.launch(**words)


if __name__ == "__main__":
    path = browser_path()
    if path is None:
        sys.exit(1)
    print(path)
