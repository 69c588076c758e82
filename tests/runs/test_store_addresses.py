"""Addresses of stores: which kind, and never a password in what is shown."""

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from cora_nb.core import CoraError
from cora_nb.runs.store import Store
from cora_nb.runs.postgres_store import is_database_address, _standard_address, without_password

SECRET = "Geheimnis"


@pytest.mark.parametrize(
    "address",
    ["r.sqlite", "/a/b", "C:/x/r.sqlite", "postgres", "a b@c:d", "C:/a@b", "passwords.db", "none", Path("x/y")],
)
def test_paths_are_files(address):
    assert not is_database_address(address)
    assert without_password(str(address)) == str(address)


@pytest.mark.parametrize("address", ["postgresql://h/d", "postgres://h", "POSTGRESQL://h", "postgresql+psycopg://h/d"])
def test_addresses_are_databases(address):
    assert is_database_address(address) and _standard_address(address).startswith("postgresql://h")
    assert _standard_address(without_password(address)) == _standard_address(address)


@pytest.mark.parametrize("scheme", ["mysql", "sqlite", "file", "https", "mysql+pymysql"])
def test_another_kind_is_refused_without_its_password(scheme):
    with pytest.raises(CoraError, match="a store is a file, or a database") as e:
        Store(f"{scheme}://ann:{SECRET}@h/d")
    assert SECRET not in str(e.value)


@pytest.mark.parametrize(
    "address",
    [
        f" postgresql://ann:{SECRET}@h/d",
        f"'postgresql://ann:{SECRET}@h/d'",
        f'"postgresql://ann:{SECRET}/@h/d',
        f"jdbc:postgresql://ann:{SECRET}@h/d",
        f"jdbc:postgresql://h/d?user=ann&password={SECRET}",
        f"psql postgresql://ann:{SECRET}@h/d",
        f"host=h user=ann password={SECRET}",
        f"host=h PASSWORD = '{SECRET}'",
        Path(f"jdbc:postgresql://ann:{SECRET}@h/d"),
        Path(f"mysql://ann:{SECRET}@h/d"),
    ],
)
def test_what_is_nearly_an_address_becomes_no_file(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CoraError, match="the address of the store is not understood: it must be postgresql://") as e:
        Store(address)
    assert SECRET not in str(e.value) and not list(tmp_path.iterdir())


@given(st.text(max_size=8), st.text(max_size=8), st.sampled_from(["", ":5432"]), st.sampled_from(["", "?sslmode=x"]))
def test_a_password_that_is_written_correctly_is_left_out(before, after, port, options):
    password = quote(before + SECRET + after, safe="")
    shown = f"postgresql://ann@h{port}/d{options}"
    address = shown.replace("@", f":{password}@", 1)
    assert without_password(address) == shown and _standard_address(address) == address
    hidden = f"{shown}{'&' if options else '?'}passw%6frd={password}&sslpassword={password}"
    assert without_password(hidden) == shown
    assert (
        without_password(f"{shown}{'&' if options else '?'}passfile=a") == f"{shown}{'&' if options else '?'}passfile=a"
    )


def test_what_postgresql_calls_a_secret_is_left_out_and_nothing_else():
    "Its own list marks what a form should hide; the keys made from a password (SCRAM) are as good as the password."
    psycopg = pytest.importorskip("psycopg")
    options = {o.keyword.decode(): o.dispchar for o in psycopg.pq.Conninfo.get_defaults()}
    secret = {name for name, how in options.items() if how == b"*"} | {"scram_client_key", "scram_server_key"}
    assert {"password", "sslpassword"} <= secret and len(options) > 30
    for name in options.keys() | secret:
        shown = "postgresql://ann@h/d" + ("" if name in secret else f"?{name}={SECRET}")
        assert without_password(f"postgresql://ann@h/d?{name}={SECRET}") == shown


@given(st.text("@/:?#%& a=[]", max_size=6), st.text("@/:?#%& a=[]", max_size=6))
def test_a_password_that_is_not_is_shown_in_no_message(before, after):
    "What PostgreSQL would read as the machine's name or as an option may be a part of the password."
    address = f"postgresql://ann:{before}{SECRET}{after}@h/d"
    assert SECRET not in without_password(address)
    for text in (address, address.replace("//", "/", 1)):
        try:
            assert _standard_address(text) == text
        except CoraError as e:
            assert SECRET not in str(e) and "written %40" in str(e)


@pytest.mark.parametrize("wrong", ["p@ss", "p/ss", "100%", "a@b/c:d?e#f", "p ss\n"])
def test_a_store_refuses_such_an_address(wrong):
    pytest.importorskip("psycopg")
    with pytest.raises(CoraError, match="the address of the store is not understood") as e:
        Store(f"postgresql://ann:{SECRET}{wrong}{SECRET}@127.0.0.1:1/d")
    assert SECRET not in str(e.value) and len(str(e.value).splitlines()) == 1


def test_a_path_made_of_an_address_is_no_folder(tmp_path, monkeypatch):
    "`Path` makes one slash of two; the password must not become a folder's name."
    pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CoraError, match="not understood") as e:
        Store(Path(f"postgresql://ann:{SECRET}@h/d"))
    assert SECRET not in str(e.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["connect_timeout=soon", f"passwort={SECRET}", f"x={SECRET}"])
def test_what_the_driver_does_not_understand_is_not_repeated(option):
    pytest.importorskip("psycopg")
    with pytest.raises(CoraError) as e:
        Store(f"postgresql://ann@127.0.0.1:1/d?{option}")
    assert "postgresql://ann@127.0.0.1:1/d" in str(e.value)
