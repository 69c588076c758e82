"""What axe-core finds in a page: by hand, with the npm package at hand.

    npm pack axe-core && tar xzf axe-core-*.tgz package/axe.min.js
    python tools/peers/page_accessibility.py package/axe.min.js report.html ['report.html#q=math-0-1' ...]

Prints the violations at 1,400 and 400 pixels, light and dark, and ends with 1 where one is serious or critical.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from browser import browser_path
from playwright.sync_api import sync_playwright

SERIOUS = ("serious", "critical")


def violations(browser, address: str, axe: str, width: int, scheme: str) -> list[dict]:
    "What axe-core says of a page. The page's own policy would not let it in."
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=60_000)
    page.wait_for_timeout(300)
    page.add_script_tag(path=axe)
    found = page.evaluate("axe.run()")["violations"]
    context.close()
    return found


if __name__ == "__main__":
    axe, *pages = sys.argv[1:]
    bad = 0
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        for name in pages:
            file, _, question = name.partition("#")
            address = Path(file).resolve().as_uri() + (f"#{question}" if question else "")
            for width in (1400, 400):
                for scheme in ("light", "dark"):
                    found = violations(browser, address, axe, width, scheme)
                    bad += sum(v["impact"] in SERIOUS for v in found)
                    told = "; ".join(f"{v['impact']} {v['id']} in {len(v['nodes'])} places" for v in found)
                    print(f"{name}, {width} pixels, {scheme}: {told or 'no violations'}")
    sys.exit(bad > 0)
