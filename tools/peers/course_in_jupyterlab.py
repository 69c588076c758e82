"""The course in JupyterLab as a reader opens it: by hand, with an environment that has cora_nb and jupyterlab.

    python -m venv LAB && LAB/bin/pip install -e . jupyterlab
    python tools/peers/course_in_jupyterlab.py LAB/bin/jupyter OUT [nbs/course/01_what_a_score_hides.ipynb ...]

Copies nbs/course to a temporary folder, starts JupyterLab there on the loopback, opens each notebook in chromium, runs
all cells from the menu, and moves every slider with the keyboard. Looks for errors, red boxes, paths of this machine,
open solutions, sliders that are missing or move nothing, and names beside sliders that are cut off. Pictures of each
slider before and after go into OUT. Prints a line for each notebook, and ends with 1 where something is wrong.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from browser import browser_path
from playwright.sync_api import TimeoutError as TooLong
from playwright.sync_api import sync_playwright

COURSE = ROOT / "nbs" / "course"
LONGEST = 300  # seconds a notebook may take
SETTINGS = {  # no question about news; all cells are in the page at once, so that they can be looked at
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
MACHINE = re.compile(r"/(?:work|tmp|root|home|opt)/\S*|site-packages\S*")
EXPLAINED = ("FewWarning: few questions",)  # warnings that the chapter speaks of
STDERR = '[data-mime-type="application/vnd.jupyter.stderr"]'
ERROR = '[data-mime-type="application/vnd.jupyter.error"]'
BEGUN = """() => [...document.querySelectorAll('.jp-Notebook .jp-InputArea .jp-InputPrompt')].some(
    e => /\\[[*\\d]+\\]/.test(e.textContent))"""
RAN = """() => {  // every cell that is open has its number, and the kernel has been idle for a second
    const open = [...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputArea .jp-InputPrompt')];
    const idle = document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle';
    const done = idle && open.every(e => /\\[\\d+\\]/.test(e.textContent));
    if (!done) window.since = 0; else window.since ||= Date.now();
    return done && Date.now() - window.since > 1000;
}"""
WATCH = """cell => {  // while the sliders move: the least height, and for how long there is no picture
    const area = cell.querySelector('.jp-Cell-outputArea'), seen = {least: area.offsetHeight, longest: 0};
    let since = performance.now();
    const look = () => {
        const image = area.querySelector('img');
        if (image && image.complete && image.offsetHeight > 50) since = performance.now();
        else seen.longest = Math.max(seen.longest, performance.now() - since);
        seen.least = Math.min(seen.least, area.offsetHeight);
        window.look = requestAnimationFrame(look);
    };
    window.seen = seen; look();
}"""
CUT = """cell => [...cell.querySelectorAll('.widget-label, .widget-readout')].filter(
    e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"""


@contextlib.contextmanager
def server(jupyter: str, folder: Path):
    "JupyterLab on a free port of the loopback, without a token; its address."
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, settings in SETTINGS.items():
        file = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings), encoding="utf-8")
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MPLBACKEND", "VIRTUAL_ENV")}
    env |= {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(folder / "spaces")}
    env |= {"PATH": f"{Path(jupyter).parent}{os.pathsep}{env['PATH']}", "HF_HUB_OFFLINE": "1"}
    words = [jupyter, "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    words += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"]
    words += [f"--ServerApp.root_dir={folder / 'course'}"]
    log = (folder / "log").open("w")
    process = subprocess.Popen(words, env=env, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/api", timeout=2).close()
                break
            time.sleep(0.5)
        else:
            sys.exit(f"JupyterLab did not start: {(folder / 'log').read_text()[-2000:]}")
        yield address
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def sessions(address: str) -> list[dict]:
    return json.load(urllib.request.urlopen(f"{address}/api/sessions", timeout=30))


def end_kernels(address: str) -> None:
    "So that one notebook at a time takes memory."
    for session in sessions(address):
        urllib.request.urlopen(urllib.request.Request(f"{address}/api/sessions/{session['id']}", method="DELETE"))


def run_all(page, address: str, name: str, code: int) -> tuple[float, int]:
    "Open a notebook, run all cells from the menu, wait: seconds of the run, outputs that were folded before it."
    page.goto(f"{address}/lab/tree/{name}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
    for _ in range(300):
        if any(s["kernel"]["execution_state"] == "idle" for s in sessions(address)):
            break
        page.wait_for_timeout(200)
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', timeout=90_000)
    folded = page.locator(".jp-Notebook .jp-OutputPlaceholder").count()  # a run opens them, and so shows "✓"
    if not code:
        return 0, folded
    page.click(".jp-Notebook .jp-Cell >> nth=0")
    for _ in range(5):
        start = time.perf_counter()
        page.click('.lm-MenuBar-itemLabel:text-is("Run")')
        page.click('.lm-Menu-itemLabel:text-is("Run All Cells")')
        with contextlib.suppress(TooLong):  # a menu does nothing while the page is still being put together
            page.wait_for_function(BEGUN, timeout=5000)
            break
        page.keyboard.press("Escape")  # a dialog, where the kernel was not there yet
    page.wait_for_function(RAN, timeout=LONGEST * 1000)
    seconds = time.perf_counter() - start
    page.wait_for_timeout(1500)  # the front end draws the sliders after the kernel is idle
    return seconds, folded


def picture(cell) -> str:
    images = cell.locator(".jp-OutputArea-output img")
    return images.first.get_attribute("src") if images.count() else ""


def moved(page, cell, before: str) -> bool:
    "Whether the picture of a cell becomes another one soon."
    for _ in range(40):
        page.wait_for_timeout(100)
        if picture(cell) not in ("", before):
            page.wait_for_timeout(400)
            return True
    return False


def move_sliders(page, cell, name: str, out: Path) -> tuple[int, list[str]]:
    "Move each slider and choose in each list of a cell: how many there are, and what is wrong."
    wrong = []
    cell.scroll_into_view_if_needed()
    if cell.locator(".jp-OutputArea-output img").count() != 1:
        wrong.append(f"{cell.locator('.jp-OutputArea-output img').count()} pictures in place of one")
    if not cell.locator(".jupyter-widgets").count():
        return 0, [*wrong, "no sliders"]
    cell.screenshot(path=out / f"{name}-before.png")
    handles, lists = cell.locator(".noUi-handle"), cell.locator(".widget-dropdown select")
    height = cell.evaluate("cell => cell.querySelector('.jp-Cell-outputArea').offsetHeight")
    cell.evaluate(WATCH)
    for i in range(lists.count()):
        before = picture(cell)
        lists.nth(i).select_option(index=1)
        if not moved(page, cell, before):
            wrong.append(f"list {i + 1} changes nothing")
    for i in range(handles.count()):
        for key in ("ArrowRight", "ArrowLeft"):  # a slider may stand at its end
            before = picture(cell)
            handles.nth(i).focus()
            for _ in range(4):
                page.keyboard.press(key)
                page.wait_for_timeout(80)
            if moved(page, cell, before):
                break
        else:
            wrong.append(f"slider {i + 1} changes nothing")
    page.wait_for_timeout(1500)
    least, gone = page.evaluate("() => (cancelAnimationFrame(window.look), [window.seen.least, window.seen.longest])")
    if gone > 100:
        wrong.append(f"no picture for {gone:.0f} ms while a slider moves")
    if least < 0.9 * height:
        wrong.append(f"flickers: {height} pixels high, {least} while a slider moves")
    if cell.locator(".jp-OutputArea-output img").count() != 1:
        wrong.append(f"{cell.locator('.jp-OutputArea-output img').count()} pictures after moving")
    wrong += [f"cut off: {words!r}" for words in cell.evaluate(CUT)]
    cell.screenshot(path=out / f"{name}-after.png")
    return handles.count() + lists.count(), wrong


def look(page, address: str, notebook: Path, out: Path) -> list[str]:
    "What is wrong with one notebook."
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    name, code = notebook.stem, sum(cell["cell_type"] == "code" for cell in cells)
    try:
        seconds, folded = run_all(page, address, notebook.name, code)
    except TooLong:
        page.screenshot(path=out / f"{name}-stuck.png")
        return ["did not come to an end"]
    shown = page.locator(".jp-Notebook .jp-Cell")
    wrong = [] if shown.count() == len(cells) else [f"{shown.count()} of {len(cells)} cells are shown"]
    sliders, checks, solutions = 0, 0, 0
    for i, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        source, box = "".join(cell["source"]), shown.nth(i)
        where = f"cell {i + 1}"
        wrong += [f"{where}: error {t[:200]!r}" for t in box.locator(ERROR).all_inner_texts()]
        red = box.locator(STDERR).all_inner_texts()
        wrong += [f"{where}: red box {t[:300]!r}" for t in red if not any(w in t for w in EXPLAINED)]
        text = "\n".join(t for t in box.locator(".jp-OutputArea-output").all_inner_texts() if t not in red)
        wrong += [f"{where}: path of the machine {path}" for path in MACHINE.findall(text)]
        title = re.match(r"# ?@title (\w+)", source)
        kind = title[1] if title else ""
        if kind and not box.locator(".jp-InputPlaceholder").count():
            wrong.append(f"{where}: {kind} is not folded")
        if kind == "Check":
            checks += 1
            if not text.startswith("… Exercise"):
                wrong.append(f"{where}: the check says {text!r}")
        if kind == "Solution":
            solutions += 1
        if re.search(r"^explore\(", source, re.MULTILINE):
            found, bad = move_sliders(page, box, f"{name}-{i + 1}", out)
            sliders += found
            wrong += [f"{where}: {words}" for words in bad]
    page.locator(".jp-Notebook .jp-Cell").first.scroll_into_view_if_needed()
    page.screenshot(path=out / f"{name}-page.png")
    counts = f"{sliders} sliders, {checks} checks, {solutions} solutions"
    print(f"{name}: {code} cells, {seconds:.0f} s, {counts}", flush=True)
    wrong += [f"{folded} outputs of {solutions} solutions were folded"] if folded != solutions else []
    return wrong


if __name__ == "__main__":
    jupyter, out, *names = sys.argv[1:]
    notebooks = [Path(n) for n in names] or sorted(COURSE.glob("*.ipynb"))
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    bad = 0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        shutil.copytree(COURSE, Path(folder) / "course")
        with server(str(Path(jupyter).resolve()), Path(folder)) as address:
            browser = play.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
            for notebook in notebooks:
                page = browser.new_page(viewport={"width": 1300, "height": 900})
                for words in look(page, address, notebook, out):
                    bad += 1
                    print(f"    {words}", flush=True)
                page.close()
                end_kernels(address)
    sys.exit(bad > 0)
