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


def long_description(readme: str, repository: str, branch: str) -> str:
    "The README as PyPI needs it, which shows it far from the files that it names: each by its address."
    raw = repository.replace("https://github.com/", "https://raw.githubusercontent.com/")

    def address(found: re.Match) -> str:
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|[#/]", found[1]):
            return found[0]
        image = re.search(r"\.(png|jpe?g|gif|svg)$", found[1])
        return f"]({f'{raw}/{branch}' if image else f'{repository}/blob/{branch}'}/{found[1]}"

    parts = re.split(r"(^```.*?^```[^\n]*|`[^`\n]+`)", readme, flags=re.MULTILINE | re.DOTALL)  # odd parts are code
    return "".join(part if i % 2 else re.sub(r"\]\(([^()\s]+)", address, part) for i, part in enumerate(parts))


data = data_packages()
setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=long_description((here / "README.md").read_text(encoding="utf-8"), cfg["git_url"], cfg["branch"]),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    author_email=cfg["author_email"],
    url=cfg["git_url"],
    license="Apache-2.0",
    keywords=cfg["keywords"],
    python_requires=f">={cfg['min_python']}",
    packages=[*find_packages(include=["cora_nb", "cora_nb.*"]), *data],
    package_dir=data,
    package_data={name: ["*"] for name in data},
    install_requires=cfg["requirements"].split(),
    extras_require={
        name: cfg[f"{name}_requirements"].split()
        for name in ("dev", "site", "inspect", "peers", "embeddings", "widgets")
    },
    entry_points={
        "console_scripts": [line.strip() for line in cfg["console_scripts"].splitlines() if line.strip()],
        "inspect_ai": [f"{cfg['lib_name']} = cora_nb.interop.inspect_tasks"],  # named like the top-level package
    },
    zip_safe=False,
)
