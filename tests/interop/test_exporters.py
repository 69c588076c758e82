"""Who writes for other tools."""

import pytest

from cora_nb.core import CoraError
from cora_nb.interop.formats import EXPORTERS, get_exporter


@pytest.mark.parametrize("kind", list(EXPORTERS.lazy))
def test_every_exporter_can_be_called_by_the_command(kind):
    export, exports_run = get_exporter(kind)
    names = export.__code__.co_varnames[: export.__code__.co_argcount]
    assert names[:2] == (("runs" if exports_run else "variants"), "folder")


def test_ones_own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def cards(runs, folder): ...\ndef other(table, folder): ...\nx = 1\n")
    monkeypatch.chdir(tmp_path)
    assert get_exporter("mine.py:cards")[1] is True
    for name in ("other", "x"):
        with pytest.raises(CoraError, match="whose first parameter is variants or runs"):
            get_exporter(f"mine.py:{name}")
