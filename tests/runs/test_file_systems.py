"""A store in a file lies on a local disk: tables of mounts as clusters have them."""

import sys

import pytest

from cora_nb.cli.shared import open_store
from cora_nb.core import CoraError
from cora_nb.runs import sqlite_store
from cora_nb.runs.sqlite_store import _NETWORK_FILE_SYSTEMS, _check_local_disk, _file_system_of
from cora_nb.runs.store import Store
from cora_nb.respondents.chat import ChatRespondent

LOCAL = [
    "ext4",
    "xfs",
    "btrfs",
    "tmpfs",
    "overlay",
    "zfs",
    "apfs",
    "ntfs3",
    "fuseblk",
    "fuse.ntfs-3g",
    "f2fs",
    "rootfs",
]
NETWORK = [
    *("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "9p", "afs", "panfs", "wekafs", "gfs2"),
    *("fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.ceph-fuse", "fuse.gcsfuse", "glusterfs"),
]


@pytest.mark.parametrize("kind", LOCAL)
def test_local_disks_pass(kind, tmp_path):
    _check_local_disk(tmp_path / "r", f"/dev/sda / ext4 rw 0 0\nx {tmp_path} {kind} rw 0 0\n")


@pytest.mark.parametrize("kind", NETWORK)
def test_network_file_systems_are_refused_in_one_line(kind, tmp_path):
    mounts = f"/dev/sda / ext4 rw 0 0\nfiler:/x {tmp_path} {kind} rw 0 0\n"
    with pytest.raises(CoraError, match="network file system") as e:
        _check_local_disk(tmp_path / "folder" / "r.sqlite", mounts)
    said = str(e.value)
    assert kind in said and "--store FILE" in said and "--store postgresql://" in said and "cora store copy" in said
    assert said.startswith(f"{tmp_path}/folder/r.sqlite: ") and len(said.splitlines()) == 1
    assert kind.removeprefix("fuse.") in _NETWORK_FILE_SYSTEMS


def test_the_longest_and_last_mount_counts(tmp_path):
    (tmp_path / "a b").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a b")
    place = str(tmp_path).replace(" ", "\\040")
    mounts = f"r / ext4\nm {place} nfs4 rw 0 0\nd {place}/a\\040b xfs rw 0 0\nbroken\n\n"
    for path, kind in [
        ("x", "nfs4"),
        ("a b/x", "xfs"),
        ("a b", "xfs"),
        ("a bc", "nfs4"),
        ("link/x", "xfs"),
        ("..", "ext4"),
    ]:
        assert _file_system_of(tmp_path / path, mounts) == kind, path
    assert _file_system_of(tmp_path, f"a {place} autofs x\nb {place} nfs4 x\n") == "nfs4"  # one over the other
    assert _file_system_of(tmp_path, f"b {place} nfs4 x\nc {place} tmpfs x\n") == "tmpfs"
    assert _file_system_of(tmp_path, "") is None


def test_a_sandbox_whose_disk_is_9p_has_no_other_machine(tmp_path):
    _check_local_disk(tmp_path / "r", "none / 9p rw 0 0\n")
    with pytest.raises(CoraError, match="9p"):
        _check_local_disk(tmp_path / "r", f"/dev/sda / ext4 rw 0 0\nC: {tmp_path} 9p rw 0 0\n")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists its mounts")
def test_this_machine_says_what_it_has(tmp_path):
    assert _file_system_of("/proc/self") == "proc" and _file_system_of(tmp_path)


@pytest.fixture
def on_nfs(monkeypatch, tmp_path):
    "A machine on which the temporary folder of this test comes from a network."
    read = sqlite_store._file_system_of
    mounts = f"/dev/sda / ext4 rw 0 0\nfiler:/home {tmp_path} nfs4 rw 0 0\n"
    monkeypatch.setattr(sqlite_store, "_file_system_of", lambda path, given=None: read(path, given or mounts))
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
