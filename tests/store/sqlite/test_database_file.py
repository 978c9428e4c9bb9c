from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.errors import ConfigError, StoreError, StoreUnavailable
from holdfast.store.settings import SqliteDriver
from holdfast.store.sqlite import database_file
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore, Start


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that other users can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_new_file_is_ours_alone_and_marked(make_store: MakeStore, path: Path) -> None:
    before = os.umask(0)
    try:
        make_store().run(verbs.make())
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        ((mark,),) = connection.execute("PRAGMA application_id").fetchall()
    connection.close()
    assert mark == database_file.APPLICATION_ID


def test_a_users_own_database_is_joined(
    make_store: MakeStore, path: Path, driver: SqliteDriver
) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 77")
    connection.execute("CREATE TABLE django_migrations (id INTEGER)")
    connection.commit()
    connection.close()

    store = make_store(driver=driver)
    store.run(verbs.make())
    store.close()

    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA application_id").fetchall() == [(77,)]
    assert connection.execute("SELECT count(*) FROM django_migrations").fetchall() == [(0,)]
    connection.close()


def test_a_reader_that_keeps_the_file_from_wal_mode_is_told(
    make_store: MakeStore, path: Path
) -> None:
    theirs = sqlite3.connect(path, isolation_level=None)
    theirs.execute("CREATE TABLE mine (a)")
    theirs.execute("BEGIN")
    theirs.execute("SELECT * FROM mine").fetchall()
    store = make_store(lock_timeout=0.1)

    with pytest.raises(StoreUnavailable, match="could not be put into WAL mode"):
        store.run(verbs.make())
    theirs.execute("COMMIT")
    store.run(verbs.make())
    theirs.close()


def test_a_missing_directory(make_store: MakeStore, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"directory .*/absent does not exist"):
        make_store(tmp_path / "absent" / "tasks.db").run(verbs.count())


def test_a_directory_instead_of_a_file(make_store: MakeStore, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is a directory"):
        make_store(tmp_path).run(verbs.count())


def test_a_file_instead_of_a_directory(make_store: MakeStore, path: Path) -> None:
    path.touch()
    with pytest.raises(StoreUnavailable, match="is not a directory"):
        make_store(path / "tasks.db").run(verbs.count())


def test_a_name_that_is_too_long(make_store: MakeStore, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="too long"):
        make_store(tmp_path / ("x" * 300)).run(verbs.count())


def test_a_file_that_is_no_database_is_left_alone(
    make_store: MakeStore, path: Path, driver: SqliteDriver
) -> None:
    path.write_text("Dear diary, " * 200)

    with pytest.raises(StoreError, match="is not a SQLite database") as caught:
        make_store(driver=driver).run(verbs.count())

    assert not caught.value.retryable
    assert path.read_text() == "Dear diary, " * 200


def test_a_users_database_in_another_encoding_is_refused(
    make_store: MakeStore, path: Path, driver: SqliteDriver
) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA encoding = 'UTF-16le'")
    connection.execute("CREATE TABLE theirs (id INTEGER)")
    connection.commit()
    connection.close()
    before = path.read_bytes()

    with pytest.raises(ConfigError, match="keeps its texts in UTF-16le"):
        make_store(driver=driver).run(verbs.make())

    assert path.read_bytes() == before


def test_a_damaged_file_is_named_and_left_alone(
    make_store: MakeStore, path: Path, driver: SqliteDriver
) -> None:
    store = make_store(driver=driver)
    store.run(verbs.make())
    for _ in range(50):
        store.run(verbs.put("x" * 500))
    store.close()
    image = bytearray(path.read_bytes())
    image[4096:] = b"\xff" * (len(image) - 4096)
    path.write_bytes(image)

    with pytest.raises(StoreError, match=r"damaged.*\.recover"):
        make_store(driver=driver).run(verbs.put("x"))

    assert path.read_bytes() == image


@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_cannot_be_written_says_so(
    make_store: MakeStore, open_folder: Path, what: str, start: Start
) -> None:
    path = open_folder / "tasks.db"
    store = make_store(path)
    store.run(verbs.make())
    store.close()
    for side in open_folder.iterdir():
        side.chmod(0o666 if side.is_file() else 0o777)
    if what == "file":
        open_folder.chmod(0o777)
        path.chmod(0o444)
    else:
        open_folder.chmod(0o555)

    try:
        said = start("lowly", path).hear()
    finally:
        open_folder.chmod(0o755)

    assert said.startswith("StoreUnavailable")
    assert "cannot be" in said
    assert str(path if what == "file" else open_folder) in said


def test_nothing_can_be_made_in_a_closed_directory(open_folder: Path, start: Start) -> None:
    open_folder.chmod(0o555)
    try:
        said = start("lowly", open_folder / "new.db").hear()
    finally:
        open_folder.chmod(0o755)

    assert said.startswith("StoreUnavailable")
    assert "cannot be created" in said


@pytest.mark.parametrize(
    "kind",
    [
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "davfs", "ncpfs", "coda"),
        *("9p", "virtiofs", "vboxsf", "prl_fs", "vmhgfs", "fuse.vmhgfs-fuse", "fakeowner", "drvfs"),
        *("ceph", "fuse.ceph-fuse", "fuse.ceph", "glusterfs", "fuse.glusterfs", "lustre", "gpfs"),
        *("beegfs", "beegfs_nodev", "ocfs2", "gfs2", "orangefs", "pvfs2", "panfs", "wekafs"),
        *("fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.juicefs", "fuse.davfs2"),
        *("fuse.mount-s3", "fuse.blobfuse2", "fuse.mfs", "fuse.moosefs", "fuse.grpcfuse"),
    ],
)
def test_network_filesystems_are_refused(
    make_store: MakeStore, path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_file, "filesystem", lambda folder: kind)

    with pytest.raises(ConfigError, match=kind):
        make_store().run(verbs.make())
    assert not path.exists()

    make_store(allow_network_filesystem=True).run(verbs.make())


def test_local_filesystems_are_not(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fuse = ("fuseblk", "fuse.fuse-overlayfs", "fuse.mergerfs", "fuse.gocryptfs", "fuse.bindfs")
    for kind in ("ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs", "apfs", *fuse, None):
        monkeypatch.setattr(database_file, "filesystem", lambda folder, kind=kind: kind)
        database_file.check_place("/tmp/tasks.db", allow_network=False)


def test_the_filesystem_of_a_real_directory_is_found() -> None:
    assert database_file.filesystem(Path("/proc/self")) == "proc"
    assert database_file.filesystem(Path("/")) is not None


@pytest.mark.parametrize("name", ["tasks.db", "our tasks.db"])
def test_a_file_that_is_mounted_without_its_directory_is_refused(
    make_store: MakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / name
    path.touch()
    mounts = tmp_path / "mountinfo"
    point = str(path).replace(" ", r"\040")
    mounts.write_text(f"63 43 254:0 /data/tasks.db {point} rw,relatime - ext4 /dev/vda rw\n")
    monkeypatch.setattr(database_file, "_MOUNTS", mounts)

    with pytest.raises(ConfigError, match="mount the directory instead"):
        make_store(path).run(verbs.make())
    assert path.read_bytes() == b""


def test_a_link_is_followed_as_sqlite_does(
    make_store: MakeStore, path: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    path.symlink_to(tmp_path / "data" / "real.db")

    store = make_store()
    store.run(verbs.make())

    names = {found.name for found in (tmp_path / "data").iterdir()}
    assert {"real.db", "real.db-wal", "real.db-lock"} <= names
    assert {found.name for found in tmp_path.iterdir()} == {"data", "tasks.db"}


def test_a_library_that_is_too_old_is_refused() -> None:
    class Ancient:
        library: SqliteDriver = "sqlite3"
        version = (3, 34, 1)

        def open(self, path: str, busy_timeout: float) -> None: ...

    with pytest.raises(ConfigError, match=r"3\.34\.1.*apsw"):
        database_file.check_library(Ancient())  # type: ignore[arg-type]
