"""Packaging: every fact comes from settings.ini; `data/` travels inside the wheel as `cora_nb/data`."""

import re
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
ini = ConfigParser(delimiters=["="])
ini.read(here / "settings.ini", encoding="utf-8")
cfg = ini["DEFAULT"]


def data_packages() -> dict[str, str]:
    "Every folder of `data/` as a package name -> folder, so that an installed wheel carries it."
    folders = [p for p in [here / "data", *sorted((here / "data").rglob("*"))] if p.is_dir()]
    return {".".join(("cora_nb", *p.relative_to(here).parts)): p.relative_to(here).as_posix() for p in folders}


def long_description(readme: str, home: str, branch: str) -> str:
    "The README as PyPI needs it, far from the files that it names: each by its address; without a home, no link."
    raw = home.replace("https://github.com/", "https://raw.githubusercontent.com/")

    code = re.compile(r"^```.*?^```[^\n]*|`[^`\n]+`", re.MULTILINE | re.DOTALL)
    link = re.compile(r"(!?)\[((?:!\[[^\[\]]*\]\([^()\s]+\)|[^\[\]])*)\]\(([^()\s]+)\)")  # its words: perhaps an image

    def address(found: re.Match) -> str:
        image, words, target = found.groups()
        words = link.sub(address, words)
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|[#/]", target):
            return f"{image}[{words}]({target})"
        if not home:
            return "" if image else words
        return f"{image}[{words}]({raw if image else f'{home}/blob'}/{branch}/{target})"

    hidden = code.findall(readme)  # is put back as it is: the brackets in it are no link's
    text = link.sub(address, code.sub("\0", readme))
    return re.sub("\0", lambda _: hidden.pop(0), text)


def addresses(home: str, site: str, branch: str) -> dict:
    "What setuptools is told of the home of the project: nothing, where there is none."
    files = {name: f"{home}/blob/{branch}/{name}" for name in ("CHANGELOG.md", "CITATION.cff")} if home else {}
    urls = files | ({"Documentation": site} if site else {})
    return ({"url": home} if home else {}) | ({"project_urls": urls} if urls else {})


data = data_packages()
setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=long_description((here / "README.md").read_text(encoding="utf-8"), cfg["home"], cfg["branch"]),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    **addresses(cfg["home"], cfg["site"], cfg["branch"]),
    license="Apache-2.0",
    keywords=cfg["keywords"],
    python_requires=f">={cfg['min_python']}",
    packages=[*find_packages(include=["cora_nb", "cora_nb.*"]), *data],
    package_dir=data,
    package_data={name: ["*"] for name in data},
    install_requires=cfg["requirements"].split(),
    extras_require={
        key.removesuffix("_requirements"): cfg[key].split() for key in cfg if key.endswith("_requirements")
    },
    entry_points={
        "console_scripts": [line.strip() for line in cfg["console_scripts"].splitlines() if line.strip()],
        "inspect_ai": [f"{cfg['lib_name']} = cora_nb.interop.inspect_tasks"],  # named like the top-level package
    },
    zip_safe=False,
)
