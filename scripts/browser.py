"""Where Chromium or Chrome is on this machine: `python scripts/browser.py` prints its path, or ends with status 1.

The site's formulas, the slides, and the tests of pages need a browser, and look for it here. `$CHROMIUM` names another.
"""

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_path() -> str | None:
    "The browser at hand: what `$CHROMIUM` says, or else the first on PATH; None where there is none."
    names = [os.environ["CHROMIUM"]] if os.environ.get("CHROMIUM") else NAMES
    return next(filter(None, map(shutil.which, names)), None)


if __name__ == "__main__":
    path = browser_path()
    if path is None:
        sys.exit(1)
    print(path)
