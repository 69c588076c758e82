"""Loaded by each Python of the environment that `.ci/run` makes: no connection but to this machine, and a list of tries.

Packages are fetched by pip while the README's commands install them, and by nothing else. Whatever asks for another
machine's name or connects to it afterwards gets an `OSError`, as on a machine without a network, and is written into the
file that `CORA_NO_NETWORK` names: a package that swallows the error is found all the same, and fails the run.
"""

import os
import socket
import sys

LOG, TESTING = "CORA_NO_NETWORK", "CORA_NO_NETWORK_TESTING"
HERE = {"", "localhost", "0.0.0.0", "::", "::1", "ip6-localhost"}


def is_pip() -> bool:
    "Is this process pip, started by a command as the README has it, and not by a test or a notebook?"
    first = [os.path.basename(word) for word in sys.orig_argv[1:3]]
    return TESTING not in os.environ and any(word.startswith(("pip", "__pip-runner__")) for word in first)


def refuse(event: str, args: tuple) -> None:
    "Raise `OSError` for a name or an address that is not this machine's."
    if event == "socket.connect":
        connection, address = args
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type == socket.SOCK_DGRAM:
            return  # a datagram socket that is connected sends nothing: that is how programs learn their own address
        host = address[0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = args[0]
    else:
        return
    host = host.decode(errors="replace") if isinstance(host, bytes) else str(host or "")
    if host in HERE or host.startswith("127.") or host.endswith(".invalid") or host == socket.gethostname():
        return  # no network has a name under .invalid: whoever asks for one wants to see the error
    with open(os.environ[LOG], "a", encoding="utf-8") as log:
        log.write(f"{event} {host}: {' '.join(' '.join(sys.orig_argv).split())[:200]} {os.environ.get('PYTEST_CURRENT_TEST', '')}\n")
    raise OSError(101, f"no network in this run: {host}")


if os.environ.get(LOG) and not is_pip():
    os.environ[TESTING] = "1"
    sys.addaudithook(refuse)
