"""What is between the pages: the start page from the README, an index for each section, the order of the navigation."""

import re
from pathlib import Path

from notebooks import Page, Project, linked

SECTIONS = {  # folder -> its title, and what an index made for it says first; a folder that is not there has no section
    "course": ("Course", ""),
    "howto": ("How-to", ""),
    "reference": (
        "Reference",
        "Every module, by folder, in the order in which they import each other: a page defines, explains and tests one "
        "module, with an entry for each public name. The {ref}`index of names <genindex>` lists them all.",
    ),
    "studies": ("Studies", "The package applied to published numbers and real replies."),
    "tutorials": ("Tutorials", "Longer walks through the package."),
    "gallery": ("Gallery", ""),
}
GROUND = "The ground"  # the modules that lie in no folder


def ordered(
    pages: list[Page],  # of one folder
    text: str,  # that names them in their order
) -> list[Page]:  # in that order; those not named follow, by their names
    "The order in which the line that links to most of them does, then the rest of the text."
    paths = {page.path for page in pages}
    lines = re.split(r"\n\s*\n|\n(?=\|)", text)
    most = max(lines, key=lambda line: len(paths & set(re.findall(r"\]\((?:nbs/)?([^)#\s]+)", line))))
    return by_first_link(pages, f"{most}\n{text}")


def by_first_link(
    pages: list[Page],  # of one folder
    text: str,  # that links to them
) -> list[Page]:  # in the order in which it does; those without a link follow, by their names
    places = {path: n for n, path in reversed(list(enumerate(re.findall(r"\]\((?:nbs/)?([^)#\s]+)", text))))}
    return sorted(pages, key=lambda page: (places.get(page.path, len(text)), page.path))


def section_of(page: Page) -> str:  # the section that shows it
    folder = page.path.split("/")[0] if "/" in page.path else ""
    if folder in ("course", "howto", "studies", "tutorials"):
        return folder
    return "gallery" if page.path == "gallery.ipynb" else "reference"


def toctree(
    entries: list[str],  # pages, from the root of the site
    caption: str = "",  # above them in the navigation
) -> str:  # the directive
    options = [":hidden:"] + ([f":caption: {caption}"] if caption else [])
    return "\n".join(["```{toctree}", *options, "", *entries, "```"])


def without_suffix(path: str) -> str:
    return "/" + path.rsplit(".", 1)[0]


def listed(
    pages: list[Page],
    by_name: bool = False,  # by the names of their modules
) -> str:  # a line each: link and summary
    lines = []
    for page in pages:
        name = Path(page.path).stem
        title = f"`{name}`" if by_name else page.title
        other = page.title if by_name and page.title.lower() not in (name, name.replace("_", " ")) else ""
        words = ". ".join(filter(None, [other, page.summary]))
        lines.append(f"- [{title}](../{page.path})" + (f": {words}" if words else ""))
    return "\n".join(lines)


def trees(pages: list[Page], by_name: bool = False) -> str:
    "The tree of a folder's pages."
    names = [(Path(page.path).stem, without_suffix(page.path)) for page in pages]
    return toctree([f"{name} <{path}>" if by_name else path for name, path in names])


def folder_index(pages: list[Page], title: str, said: str = "", by_name: bool = False) -> str:
    "A page for a folder: its pages with their summaries."
    parts = [f"# {title}", said, listed(pages, by_name), trees(pages, by_name)]
    return "\n\n".join(part for part in parts if part)


def reference_index(folders: dict[str, list[Page]]) -> str:
    "All modules by folder, each with its summary."
    parts = [f"# {SECTIONS['reference'][0]}", SECTIONS["reference"][1]]
    for folder, pages in folders.items():
        parts += [f"## {folder or GROUND}", listed(pages, by_name=True)]
    return "\n\n".join([*parts, toctree([f"/{folder or 'ground'}/index" for folder in folders])])


def start_page(
    project: Project,
    readme: str,  # the README's text
) -> str:  # the start page
    text = re.sub(r"\A<!--.*?-->\s*", "", readme, flags=re.DOTALL)
    return linked(text, project.root, "index.md", project)


def folders_in_order(
    pages: list[Page],  # of the reference
    readme: str,
) -> dict[str, list[Page]]:  # folder -> its pages, both in the README's order; "" for those in no folder
    folders = {}
    for page in pages:
        folders.setdefault(page.path.split("/")[0] if "/" in page.path else "", []).append(page)
    folders = {folder: ordered(inside, readme) for folder, inside in folders.items()}
    named = {f: n for n, f in reversed(list(enumerate(re.findall(r"\]\(nbs/(\w+)/", readme))))}
    rows = re.findall(r"^\| `(\w+)/` \|", readme, re.MULTILINE)
    order = {folder: n for n, folder in enumerate(rows)}
    return dict(
        sorted(folders.items(), key=lambda kv: (kv[0] != "", order.get(kv[0], len(rows)), named.get(kv[0], 10**6)))
    )


def made_pages(project: Project, readme: str) -> dict[str, str]:  # path of a page in the site -> its Markdown
    "Every page that is not a notebook: start, and the indexes."
    by_section = {name: [] for name in SECTIONS}
    for page in project.pages.values():
        if page.path != "index.md":
            by_section[section_of(page)].append(page)
    made, top = {}, ["Start <self>"]
    for folder, (title, said) in SECTIONS.items():
        pages = by_section[folder]
        if not pages:
            continue
        if folder == "gallery":
            top.append(f"{title} </gallery>")
            continue
        top.append(f"{title} </{folder}/index>")
        if f"{folder}/index.ipynb" in project.pages:
            continue
        if folder == "reference":
            folders = folders_in_order(pages, readme)
            made["reference/index.md"] = reference_index(folders)
            for name, inside in folders.items():
                made[f"{name or 'ground'}/index.md"] = folder_index(inside, name or GROUND, by_name=True)
        else:
            made[f"{folder}/index.md"] = folder_index(ordered(pages, readme), title, said)
    made["index.md"] = "\n\n".join([start_page(project, readme), toctree(top)])
    return made


def own_indexes(
    project: Project,
    read: dict[str, str],  # path of an index page among the notebooks -> its Markdown
) -> dict[str, str]:  # the same path -> the tree of pages to append to it
    "The trees for folders that bring their own index page: chapters in the order in which it links to them."
    made = {}
    for path, text in read.items():
        folder = path.split("/")[0]
        pages = [p for p in project.pages.values() if p.path.startswith(f"{folder}/") and p.path != path]
        made[path] = trees(by_first_link(pages, re.sub(r"\]\(", f"]({folder}/", text)))
    return made


def picture_files(folder: Path) -> list[Path]:
    "The pictures that pages show."
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in (".png", ".svg", ".jpg", ".jpeg", ".gif"))
