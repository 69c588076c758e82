"""A command as its installed script runs it, taken from `settings.ini`, whatever is installed: WORD..."""

import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

settings = ConfigParser(interpolation=None)
settings.read(Path(__file__).resolve().parents[1] / "settings.ini", encoding="utf-8")
scripts = dict(line.split("=") for line in settings["DEFAULT"]["console_scripts"].split())
module, function = scripts["cora"].split(":")
sys.argv[0] = "cora"
sys.path.pop(0)  # as for a script that lies elsewhere
command = getattr(import_module(module), function)

if __name__ == "__main__":
    sys.exit(command())  # fastcore reads the words only where the main file calls
