"""Every notebook: it says what it is, its code fits on a page, and "Run All" in Jupyter is safe.

nbdev's flags mean nothing in Jupyter, and a key that is set is used. So a cell that asks a server that is not on this
machine, downloads, writes beside the notebook, or takes minutes (`#| full`) does so below a guard,
`if os.environ.get("CORA_FULL"):`. A cell that takes seconds, too long for the first run of the tests, is flagged
`#| slow` and needs no guard; `scripts/run_notebooks.py --slow` runs it. Code is read, not run: what a function does
that is defined in another cell is not seen. `.ci/run` finds what writes into the checkout as well: after
`nbdev_test` and `pytest`, it wants a clean tree.
"""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
GUARD = "os.environ.get('CORA_FULL')"
FLAGS = re.compile(r"^#\| *(full|gpu|network)\b", re.MULTILINE)  # `tst_flags` that a person must ask for
WIDTH = 100  # of code that is read on a page

HARMLESS = {  # cells that look unsafe and are not, each with the reason
    "nbs/benchmarks/load.ipynb f7450f79": "a benchmark of one split is refused before anything is fetched",
    "nbs/respondents/chat.ipynb 5e1133db": "has no key, and shows what is said then",
}

CLIENTS = {"ChatRespondent", "OpenAI", "AsyncOpenAI", "AzureOpenAI", "AsyncAzureOpenAI"}
ASKING = {"cora_run", "cora_paper", "cora_try", "evaluate", "ask", "terminal"}
FETCHING = {"snapshot_download", "hf_hub_download", "urlretrieve", "retrieve", "urlopen", "load_dataset"}
LOADING = {"CausalRespondent", "LikelihoodRespondent", "LocalModel", "hidden_states", "from_pretrained"}
QUESTIONS = {"load_benchmark", "load_shots"}
PUBLISHED = {"load_recorded", "recorded_file"}  # files of the papers' authors
WRITING = {
    *("write_text", "write_bytes", "to_csv", "to_parquet", "to_json", "to_excel", "savefig", "save_figure", "open"),
    *("save_pretrained", "save_file", "mkdir", "makedirs", "rmtree", "copytree", "copyfile", "write_whole", "Store"),
    *("write_responses", "write_benchmark", "write_variants", "write_table", "write_labels"),
    *("publish", "_write_export", "save_statements"),
}
LOCAL = re.compile(r"^https?://(127\.0\.0\.1|localhost|\[::1\])")
ELSEWHERE = re.compile(  # a respondent by name; `base_url=` at the end is the start of an f-string
    r"^(chat|paper):(?!.*base_url=(https?://(127\.0\.0\.1|localhost)|$))"
    r"|^(causal|likelihood|hidden):(?!organism/)[\w.-]+/[\w.-]+(,|$)"
)
TEMPORARY = re.compile(r"tempfile|TemporaryDirectory|mkdtemp|StringIO|BytesIO")


def cells(notebook: Path) -> list[dict]:
    return json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def exported(text: str) -> bool:
    return text.startswith("#| export")


def tree(text: str) -> ast.Module:
    "A cell as Python, without the lines that only IPython understands."
    return ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", text, flags=re.MULTILINE))


def unguarded(node: ast.AST) -> list[ast.AST]:
    "All nodes but those below a guard."
    if isinstance(node, ast.If) and ast.unparse(node.test) == GUARD:
        return [n for line in node.orelse for n in unguarded(line)]
    return [node, *(n for child in ast.iter_child_nodes(node) for n in unguarded(child))]


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def text_of(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def temporary_names(modules: list[ast.Module]) -> set[str]:
    "Names that come from a temporary folder, directly or over other names, and the parameters of functions."
    made, found = [], set()
    for node in (n for module in modules for n in ast.walk(module)):
        if isinstance(node, ast.Assign | ast.NamedExpr | ast.For | ast.comprehension):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            made += [(target, node.iter if hasattr(node, "iter") else node.value) for target in targets]
        elif isinstance(node, ast.withitem) and node.optional_vars:
            made.append((node.optional_vars, node.context_expr))
        elif isinstance(node, ast.arguments):
            found |= {a.arg for a in [*node.posonlyargs, *node.args, *node.kwonlyargs]}
    for _ in range(len(made)):
        new = {
            name
            for target, value in made
            if TEMPORARY.search(ast.unparse(value)) or names_in(value) & found
            for name in names_in(target) - found
        }
        if not new:
            return found
        found |= new
    return found


def moved_away(module: ast.Module, temporary: set[str]) -> bool:
    "Whether a cell changes into a temporary folder, as a terminal does in which commands are shown."
    calls = [n for n in ast.walk(module) if isinstance(n, ast.Call) and called(n) == "chdir"]
    return any(names_in(call) & temporary for call in calls)


def host_elsewhere(call: ast.Call) -> bool:
    "Whether a client may ask a server that is not on this machine."
    given = {k.arg: k.value for k in call.keywords}
    url = given.get("base_url", given.get("azure_endpoint", call.args[1] if len(call.args) > 1 else None))
    return url is None or (text_of(url) is not None and not LOCAL.match(text_of(url)))


def opens_to_read(call: ast.Call) -> bool:
    modes = [text_of(a) for a in [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]]
    return not any(re.fullmatch(r"[waxr]b?t?\+?", m or "") and m.strip("rbt") for m in modes)


def unsafe_call(call: ast.Call, literals: list[str], temporary: set[str]) -> str | None:
    "What a call may do that Run All must not, or None."
    name, given = called(call), {k.arg: k.value for k in call.keywords}
    first = text_of(call.args[0]) if call.args else None
    if name in CLIENTS and host_elsewhere(call):
        return f"{name} without a server on this machine"
    if name in ASKING and any(map(ELSEWHERE.match, literals)):
        return f"{name} asks {next(filter(ELSEWHERE.match, literals))}"
    if name in FETCHING and not names_in(call) & temporary and not LOCAL.match(first or ""):
        return f"{name} downloads"
    if name in LOADING and re.fullmatch(r"(?!organism/)[\w.-]+/[\w.-]+", first or ""):
        return f"{name} downloads {first}"
    if name in QUESTIONS and first not in (None, "math") and len(call.args) < 2 and not {"path", None} & set(given):
        return f"{name} downloads {first}"
    if name in PUBLISHED and len(call.args) < 2 and not {"folder", "download"} & set(given):
        if name == "recorded_file" or "texts" in given:
            return f"{name} downloads {first}"
    if name in WRITING and not (name == "open" and opens_to_read(call)):
        kept = name == "Store" and not call.args
        outside = ast.unparse(call.func) in ("Image.open", "webbrowser.open") or kept
        text_only = name in ("to_csv", "to_json") and not call.args and "path_or_buf" not in given
        if not outside and not text_only and not names_in(call) & temporary:
            return f"{name} writes beside the notebook: {ast.unparse(call)[:60]}"
    return None


def holds_guard_only(module: ast.Module) -> bool:
    "Whether a cell does nothing without CORA_FULL but to import, and to say what it would do."
    lines = [line for line in module.body if not isinstance(line, ast.Import | ast.ImportFrom)]
    said = [
        isinstance(line, ast.If)
        and ast.unparse(line.test) == GUARD
        and any("print(" in ast.unparse(other) for other in line.orelse)
        for line in lines
    ]
    return bool(said) and all(said)


def unsafe_cells(notebook_cells: list[dict], name: str = "") -> list[str]:
    "What of a notebook Run All must not do, one line for each cell and reason."
    code = [(cell.get("id", "?"), source(cell)) for cell in notebook_cells if cell["cell_type"] == "code"]
    modules = {id: tree(text) for id, text in code if not exported(text)}
    temporary, found = temporary_names(list(modules.values())), []
    for id, text in code:
        if exported(text):
            continue
        moved = moved_away(modules[id], temporary)
        if FLAGS.search(text) and not holds_guard_only(modules[id]):
            found.append(f"{name} {id}: flagged for the tests, and not guarded for people")
        literals = [n.value for n in ast.walk(modules[id]) if text_of(n) is not None]
        calls = [n for n in unguarded(modules[id]) if isinstance(n, ast.Call)]
        said = dict.fromkeys(filter(None, (unsafe_call(call, literals, temporary) for call in calls)))
        found += [f"{name} {id}: {why}" for why in said if not (moved and "writes beside" in why)]
    return found


def without_title(notebook_cells: list[dict]) -> bool:
    "Whether the first cell is not `# Title` and `> summary`; a chapter's badge may stand between."
    first = source(notebook_cells[0]) if notebook_cells else ""
    return not (notebook_cells and notebook_cells[0]["cell_type"] == "markdown") or not re.match(
        r"# \S[^\n]*\n(\s*\n|\[!\[[^\n]*\n)*> \S", first
    )


def wide_lines(notebook_cells: list[dict], name: str = "") -> list[str]:
    "Lines of code that do not fit on a page."
    return [
        f"{name} {cell.get('id', '?')}, line {number}: {len(line)} characters"
        for cell in notebook_cells
        if cell["cell_type"] == "code" and not exported(source(cell))
        for number, line in enumerate(source(cell).splitlines(), 1)
        if len(line) > WIDTH
    ]


def relative(notebook: Path) -> str:
    return notebook.relative_to(ROOT).as_posix()


# --- all notebooks -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_run_all_is_safe():
    assert len(NOTEBOOKS) > 140
    found = [line for p in NOTEBOOKS for line in unsafe_cells(cells(p), relative(p))]
    harmless = {line.partition(": ")[0] for line in found} & set(HARMLESS)
    assert [line for line in found if line.partition(": ")[0] not in HARMLESS] == []
    assert harmless == set(HARMLESS), "no longer needed, remove from the list in this file"


def test_every_notebook_says_what_it_is():
    assert [relative(p) for p in NOTEBOOKS if without_title(cells(p))] == []


def test_code_that_is_read_fits_on_a_page():
    found = [line for p in NOTEBOOKS for line in wide_lines(cells(p), relative(p))]
    assert found == [], f"{len(found)} lines: python scripts/format.py, and texts are divided by hand"


# --- each check finds its error ----------------------------------------------------------------------------------


def code(*texts: str) -> list[dict]:
    return [{"cell_type": "code", "id": f"cell{i}", "source": text.splitlines(True)} for i, text in enumerate(texts)]


@pytest.mark.parametrize(
    "text, why",
    [
        ("#| full\nrun()", "flagged"),
        ("#| gpu\nif os.environ.get('CORA_FULL'):\n    run()", "flagged"),  # does not say what it would do
        ("#| full\nrun()\nif os.environ.get('CORA_FULL'):\n    run()\nelse:\n    print('no')", "flagged"),
        ("model = ChatRespondent('gpt-4o')", "ChatRespondent without a server"),
        ("cn.ChatRespondent('gpt-4o', base_url='https://api.openai.com/v1')", "ChatRespondent without a server"),
        ("client = openai.OpenAI()", "OpenAI without a server"),
        ("models = ['chat:gpt-4o']\ncora_paper('cora/table_1', *models)", "cora_paper asks chat:gpt-4o"),
        ("cora_run('paper:biomistral-7b')", "cora_run asks paper:biomistral-7b"),
        ("cora_run('causal:meta-llama/Llama-2-7b-hf', out=folder)", "cora_run asks causal:meta-llama"),
        ("if os.environ.get('CORA_FULL'):\n    pass\nelse:\n    cora_run('chat:gpt-4o')", "cora_run asks chat:gpt-4o"),
        ("if not os.environ.get('CORA_FULL'):\n    cora_run('chat:gpt-4o')", "cora_run asks chat:gpt-4o"),
        ("CausalRespondent('meta-llama/Llama-2-7b-hf')", "CausalRespondent downloads"),
        ("AutoModel.from_pretrained('gpt2-org/gpt2')", "from_pretrained downloads"),
        ("load_benchmark('medqa')[:5]", "load_benchmark downloads medqa"),
        ("datasets.load_dataset('cais/mmlu', 'all')", "load_dataset downloads"),
        ("urlopen('https://lab.example/a.csv')", "urlopen downloads"),
        ("load_recorded('cat/medqa/medalpaca-7b', texts=True)", "load_recorded downloads cat/medqa/medalpaca-7b"),
        ("recorded_file('li2024/math_300')", "recorded_file downloads li2024/math_300"),
        ("table.to_csv('scores.csv')", "to_csv writes beside the notebook"),
        ("Path('../data/x.json').write_text('{}')", "write_text writes beside"),
        ("open('notes.txt', 'w')", "open writes beside"),
        ("fig.savefig('a.png')", "savefig writes beside"),
        ("model.save_pretrained(HOME / name)", "save_pretrained writes beside"),
        ("Store('replies.sqlite')", "Store writes beside"),
        ("def keep(x):\n    x.to_csv('a.csv')", None),  # a parameter: not known here
    ],
)
def test_an_unsafe_cell_is_found(text, why):
    found = unsafe_cells(code("HOME = data_path('models')", text))
    assert [line for line in found if f": {why}" in line] if why else found == []


@pytest.mark.parametrize(
    "text",
    [
        "#| slow\nrun()",  # seconds
        "#| full\nimport os\n\nif os.environ.get('CORA_FULL'):\n    run()\nelse:\n    print('CORA_FULL=1 runs it')",
        "if os.environ.get('CORA_FULL'):\n    ChatRespondent('gpt-4o')\n    t.to_csv('a')\n    load_benchmark('arc')",
        "models = ['chat:gpt-4o']\nfor m in models:\n    if os.environ.get('CORA_FULL'):\n        cora_paper('a', m)",
        "ChatRespondent('m', base_url=f'http://127.0.0.1:{port}/v1')",
        "ChatRespondent('m', 'http://localhost:8000/v1')",
        "cora_run('chat:m,base_url=http://127.0.0.1:8000/v1')",
        "CausalRespondent('organism/steady')\nload_benchmark('math')\nload_benchmark('mmlu', path=folder)",
        "here = Path(tempfile.mkdtemp())\nfile = here / 'a'\nfor f in [file]:\n    f.write_text('x')",
        "with tempfile.TemporaryDirectory() as d:\n    table.to_csv(f'{d}/a.csv')\nopen('a.txt').read()",
        "desk = tempfile.TemporaryDirectory()\nos.chdir(desk.name)\ntable.to_csv('a.csv')",
        "cora_run(f'chat:m,base_url={address}')\ncora_run('causal:organism/steady')",
        "text = table.to_csv()\n%matplotlib inline\n!ls",
        "load_recorded('a')\nload_recorded('a', folder, texts=True)\nrecorded_file('a', download=full)",
        "#| export\nChatRespondent('gpt-4o')",  # defines; what it asks is asked elsewhere
    ],
)
def test_a_safe_cell_is_left_alone(text):
    assert unsafe_cells(code(text)) == []


@pytest.mark.parametrize(
    "first, wrong",
    [
        ("# Title\n\n> What it is", False),
        ("# Title\n> What it is\n\nMore.", False),
        ("# Title\n\n[![Colab](badge.svg)](address)\n\n> What it is", False),
        ("# Title\n\nWhat it is", True),
        ("## Title\n\n> What it is", True),
        ("> What it is", True),
        ("", True),
    ],
)
def test_a_notebook_without_title_or_summary_is_found(first, wrong):
    assert without_title([{"cell_type": "markdown", "source": first.splitlines(True)}]) == wrong
    assert without_title([{"cell_type": "code", "source": first.splitlines(True)}]) and without_title([])


def test_a_wide_line_is_found_unless_it_is_exported():
    assert wide_lines(code("x = 1\n" + "y" * 101)) == [" cell0, line 2: 101 characters"]
    assert wide_lines(code("y" * 100, "#| export\n" + "y" * 110)) == []
