"""A PostgreSQL server of this machine's own, from Debian's package, for tests that share a store.

`with PostgresServer() as server: server.empty_store()` gives the address of a database without a store. The server
does not start as root, so root starts it as `nobody`. It listens on 127.0.0.1 only, asks for a password, and lies in
a temporary folder, which is removed. It is stopped by its own `pg_ctl`, which knows its process. A shell beside it
waits until a pipe from this process is closed, and then stops the server and removes the folder: at the end of the
`with`, and also when this process is killed.
"""

import contextlib
import getpass
import os
import random
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

PASSWORD = "geheim/p@ss:w%rd"  # everything that must be percent-encoded


_AT_THE_END = 'cat; "$0" -D "$1/data" -m immediate -w stop; rm -rf "$1"'


def missing() -> str:
    "Why no server can be started here; empty if it can."
    try:
        import psycopg  # noqa: F401
    except ImportError as e:
        return f"psycopg is not installed: pip install 'cora_nb[postgres]' ({e})"
    return "" if programs() else "no PostgreSQL server is installed (Debian: apt-get install postgresql)"


def programs() -> Path | None:
    "The folder with initdb and pg_ctl, of the newest version."
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb"), *map(Path, filter(None, [shutil.which("initdb")]))]
    there = sorted((p.parent for p in found if (p.parent / "pg_ctl").exists()), key=lambda p: (len(p.parts), str(p)))
    return there[-1] if there else None


def free_port() -> int:
    "A port that nobody listens on, below those that a system gives out: while the server is stopped, it stays free."
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class PostgresServer:
    "A server, to be used with `with`. It can be stopped and started in the middle."

    def __init__(self, *settings: str):
        self.settings, self.port, self.databases = settings, free_port(), 0
        self.user = "nobody" if os.geteuid() == 0 else getpass.getuser()
        self.other_user = {"user": self.user, "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="cora_nb_postgres_"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, self.user)
        words = ["sh", "-c", _AT_THE_END, programs() / "pg_ctl", self.folder]
        nothing, quiet = subprocess.DEVNULL, {"cwd": "/", "start_new_session": True}  # a signal to us is not for it
        self.watcher = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, **quiet, **self.other_user
        )
        try:
            (self.folder / "password").write_text(PASSWORD)
            os.chmod(self.folder / "password", 0o644)
            options = ["-A", "scram-sha-256", "-U", "cora", f"--pwfile={self.folder}/password", "--no-sync"]
            self._do("initdb", "-D", self.folder / "data", "--locale=C", "--encoding=UTF8", *options)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.watcher.stdin.close()
        self.watcher.wait()

    def runs(self) -> bool:
        "Whether it was started, and not stopped since then."
        return (self.folder / "data" / "postmaster.pid").exists()

    def start(self) -> None:
        "Start it unless it runs, and wait until it takes connections."
        if self.runs():
            return
        options = [f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self.folder}"]
        words = " ".join(f"-c {option}" for option in [*options, *self.settings])
        self._do("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-o", words, "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        "Stop it: fast ends all connections, immediate is like a crash."
        if self.runs():
            self._do("pg_ctl", "-D", self.folder / "data", "-m", mode, "-w", "stop")

    def _do(self, program: str, *words: object) -> None:
        "Run a program of PostgreSQL as a user who may."
        command = [str(programs() / program), *map(str, words)]
        with open(self.folder / f"{program}.out", "w+b") as out:  # a pipe would stay open in the server
            said = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out, "cwd": self.folder}
            done = subprocess.run(command, **said, **self.other_user)
            out.seek(0)
            log = self.folder / "log"
            said = out.read().decode(errors="replace") + (log.read_text(errors="replace") if log.exists() else "")
        assert done.returncode == 0, f"{program} ended with {done.returncode}: {said[-2000:]}"

    def address(self, database: str = "postgres", user: str = "cora", password: str = PASSWORD) -> str:
        "The address of a database, with the password."
        return f"postgresql://{user}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def empty_store(self) -> str:
        "The address of a database without a store, always the same; a store that was there is dropped."
        import psycopg

        with psycopg.connect(self.address(), autocommit=True) as db:
            db.execute("drop table if exists cora_replies")
        return self.address()
