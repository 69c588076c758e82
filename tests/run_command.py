"""A command as its installed script runs it, taken from `settings.ini`, whatever is installed: NAME WORD..."""

import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":  # workers of dask import the file that started them
    settings = ConfigParser(interpolation=None)
    settings.read(Path(__file__).resolve().parents[1] / "settings.ini", encoding="utf-8")
    scripts = dict(line.split("=") for line in settings["DEFAULT"]["console_scripts"].split())
    del sys.argv[0]
    module, function = scripts[sys.argv[0]].split(":")
    sys.path.pop(0)  # as for a script that lies elsewhere
    sys.exit(getattr(import_module(module), function)())  # fastcore reads the words only where the main file calls
