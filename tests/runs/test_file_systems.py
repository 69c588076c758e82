"""A store in a file lies on a local disk: tables of mounts as clusters have them."""

import os
import sys

import pytest

from cora_nb.cli.shared import open_store
from cora_nb.core import CoraError
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.runs import sqlite_store
from cora_nb.runs.sqlite_store import _check_local_disk
from cora_nb.runs.store import Store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists its mounts")

LOCAL = [
    *("ext4 /dev/sda1", "xfs /dev/mapper/vg-home", "btrfs /dev/nvme0n1p2", "zfs tank/home", "tmpfs tmpfs"),
    *("overlay overlay", "9p none", "fuseblk /dev/sdb1", "ext4 /dev/disk/by-path/pci-0000:00:1f.2", "rootfs rootfs"),
]
NETWORK = [
    *(
        "nfs filer:/home",
        "nfs4 [fe80::1]:/home",
        "cifs //server/home",
        "smb3 //server/home",
        "lustre 10.0.0.1@tcp:/work",
    ),
    *(
        "ceph mon1,mon2:6789:/",
        "fuse.sshfs ann@far:/data",
        "fuse.glusterfs host:/volume",
        "fuse.rclone drive:",
        "9p C:",
    ),
]


def table(folder, mounted: str) -> str:
    "A table of mounts, as in /proc/self/mountinfo, in which the file system of a folder comes from somewhere else."
    device = os.stat(folder).st_dev
    others = "21 1 0:99 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n22 21 0:98 / /data rw - nfs4 filer:/data rw\n"
    return f"{others}36 21 {os.major(device)}:{os.minor(device)} / /home rw shared:7 master:2 - {mounted} rw,vers=4.2\n"


@pytest.mark.parametrize("mounted", LOCAL)
def test_local_disks_pass(mounted, tmp_path):
    _check_local_disk(tmp_path / "r", table(tmp_path, mounted))


@pytest.mark.parametrize("mounted", NETWORK)
def test_what_another_machine_serves_is_refused_in_one_line(mounted, tmp_path):
    with pytest.raises(CoraError, match="network file system") as e:
        _check_local_disk(tmp_path / "r.sqlite", table(tmp_path, mounted))
    said = str(e.value)
    assert f"({mounted.split()[0]})" in said and "--store FILE" in said and "cora_store copy" in said
    assert "--store postgresql://" in said
    assert said.startswith(f"{tmp_path}/r.sqlite: ") and len(said.splitlines()) == 1


def test_links_are_followed_and_what_is_not_known_passes(tmp_path):
    (tmp_path / "link").symlink_to("/proc")
    (tmp_path / "nowhere").symlink_to("/no/where/at/all")
    with pytest.raises(CoraError, match="network file system"):
        _check_local_disk(tmp_path / "link" / "r", table("/proc", "nfs4 filer:/home"))
    _check_local_disk(tmp_path / "link" / "r", table(tmp_path, "nfs4 filer:/home"))
    _check_local_disk(tmp_path / "nowhere", table(tmp_path, "nfs4 filer:/home"))
    _check_local_disk(tmp_path / "r", "no table\n")


@pytest.fixture
def on_nfs(monkeypatch, tmp_path):
    "A machine on which the temporary folder of this test comes from a network."
    mounts = table(tmp_path, "nfs4 filer:/home")
    monkeypatch.setattr(sqlite_store, "_check_local_disk", lambda path: _check_local_disk(path, mounts))
    return tmp_path


def test_a_store_on_a_network_is_refused_before_anything_is_made(on_nfs):
    with pytest.raises(CoraError, match="network file system"):
        Store(on_nfs / "r.sqlite")
    assert not list(on_nfs.iterdir())


def test_the_store_in_a_home_on_a_network_is_refused_with_what_to_choose(on_nfs, monkeypatch):
    "The usual store, in the user's cache: a home on NFS is common on clusters."
    monkeypatch.setenv("XDG_CACHE_HOME", str(on_nfs))
    with pytest.raises(CoraError, match=r"replies.sqlite: .*nfs4.*--store FILE.*--store postgresql://"):
        with open_store(None, [ChatRespondent("m", "http://127.0.0.1:9/v1")]):
            pass
    with open_store("none", [ChatRespondent("m", "http://127.0.0.1:9/v1")]) as store:
        assert store is None
