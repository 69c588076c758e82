"""Sphinx's settings; what changes from build to build comes from `site.json` beside the pages."""

import inspect
import json
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
FACTS = json.loads((HERE / "site.json").read_text(encoding="utf-8"))
sys.path.insert(0, FACTS["tools"])

project = FACTS["title"]
author = FACTS["author"]
copyright = FACTS["copyright"]
release = version = FACTS["version"]
html_title = FACTS["title"]
language = "en"

extensions = ["myst_nb", "sphinx.ext.mathjax", "sphinx.ext.linkcode"]
exclude_patterns = ["_build"]
nitpicky = False
smartquotes = False
suppress_warnings = ["mystnb.unknown_mime_type", "misc.highlighting_failure"]

nb_execution_mode = "off"
nb_ipywidgets_js = {}  # they would come from a foreign host; the course draws once without a slider
nb_render_markdown_format = "myst"
nb_number_source_lines = False
nb_code_prompt_show = "Show the {type}"
nb_code_prompt_hide = "Hide the {type}"

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_heading_anchors = 6
myst_heading_slug_func = "notebooks.slug"
myst_dmath_allow_digits = True
myst_dmath_allow_space = False
mathjax_path = "mathjax/tex-svg-full.js"
mathjax3_config = {"tex": {"packages": {"[-]": ["noerrors", "noundefined"]}}}  # what cannot be read is an error

python_maximum_signature_line_length = 88
python_display_short_literal_types = True
add_module_names = False
toc_object_entries_show_parents = "hide"
highlight_language = "none"  # of a fence that names none
pygments_style = "a11y-high-contrast-light"

html_theme = "pydata_sphinx_theme"
html_favicon = str(Path(FACTS["static"][0]) / "favicon.svg")
html_static_path = FACTS["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
templates_path = [FACTS["templates"]]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_baseurl = FACTS["baseurl"]
html_context = {"home": FACTS["home"], "branch": FACTS["branch"]}
html_sidebars = {"index": [], "gallery": [], "search": [], "genindex": [], "py-modindex": []}
html_theme_options = {
    **({"github_url": FACTS["home"]} if FACTS["home"] else {}),
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "collapse_navigation": True,
    "navigation_depth": 3,
    "show_nav_level": 1,
    "show_toc_level": 1,
    "show_prev_next": True,
    "use_edit_page_button": False,
    "secondary_sidebar_items": {"**": ["page-toc", "notebook-link"], "search": []},
    "search_bar_text": "Search: CoRA, msgr, position bias …",
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def linkcode_resolve(domain, info):
    "Where the source of a public name stands in the repository, if it has a home."
    if not FACTS["home"] or domain != "py" or not info["module"]:
        return None
    try:
        thing = import_module(info["module"])
        for part in info["fullname"].split("."):
            thing = getattr(thing, part)
        thing = thing.fget if isinstance(thing, property) else inspect.unwrap(thing)
        file, (lines, first) = inspect.getsourcefile(thing), inspect.getsourcelines(thing)
    except (AttributeError, ImportError, OSError, TypeError):
        return None
    root = Path(import_module("cora_nb").__file__).resolve().parent.parent
    if not Path(file).resolve().is_relative_to(root):
        return None
    at = Path(file).resolve().relative_to(root).as_posix()
    return f"{FACTS['home']}/blob/{FACTS['branch']}/{at}#L{first}-L{first + len(lines) - 1}"
