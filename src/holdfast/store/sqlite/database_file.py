"""What is checked before a database file is opened, and how a new one is made.

Owns the refusals: no directory, no permission, a network filesystem, a file that is
mounted without its directory, one that is no database or not in UTF-8, a filesystem without
WAL. Never opens an existing database file itself (closing it would drop SQLite's locks in
this process), never deletes or recreates one, and lets our tables live in a user's own
database: what else is SQLite is welcome.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from holdfast.core.errors import ConfigError, StoreError, StoreUnavailable
from holdfast.store.settings import StoreSettings
from holdfast.store.sqlite import faults
from holdfast.store.sqlite.drivers.driver import Connection, Driver

APPLICATION_ID = 0x484C_4446
"""Marks a file that Holdfast made ("HLDF"); other files keep their own mark."""

_OLDEST = (3, 37, 0)  # STRICT tables; RETURNING came a little earlier
_NEW_FILE_MODE = 0o660
# Of a cluster, a server, or the host of a virtual machine: what one side has locked or mapped, the
# other does not see. A filesystem in user space is judged by its name.
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|smb-rdr|9p|virtiofs|vboxsf|prl_fs|v?m?hgfs|fakeowner|drvfs|osxfs|"
    r"afs|auristorfs|ceph|glusterfs|lustre|gpfs|mmfs|beegfs(?:_nodev)?|fhgfs|ncpfs?|coda|davfs2?|"
    r"acfs|ocfs2|gfs2?|panfs|pvfs2|orangefs|wekafs|quobyte|xtreemfs|mfs|"
    r"fuse\.(?:\S*(?:nfs|smb|cifs|ssh|ftp|dav|s3|gcs|gluster|ceph|blob|rclone|goofys|juice|moose|"
    r"lizard|weed|curve|alluxio|hdfs|ipfs|drive|dropbox|xrootd|cvmfs|orangefs|pvfs|quobyte|xtreem|"
    r"beegfs|lustre|grpc|osxfs|hgfs|prl_fs|vboxsf|virtiofs|9p|tigris|mountpoint|objectivefs)\S*"
    r"|mfs|afs)"
)
_MOUNTS = Path("/proc/self/mountinfo")
_OCTAL = re.compile(r"\\([0-7]{3})")


def resolve(settings: StoreSettings) -> str:
    """The absolute path of the file, with symbolic links followed as SQLite does."""
    return os.path.realpath(settings.address)


def check_library(driver: Driver) -> None:
    """Refuse a SQLite that is too old for our tables."""
    if driver.version < _OLDEST:
        found = ".".join(map(str, driver.version))
        raise ConfigError(
            f"{driver.library} here has SQLite {found}; Holdfast needs 3.37 or newer: use "
            "driver='apsw', which brings its own",
            option="driver",
        )


def check_place(path: str, *, allow_network: bool) -> None:
    """Refuse a path where no database can be, or where one would not be safe."""
    place = Path(path)
    try:
        usable = place.parent.is_dir() and not place.is_dir()
    except OSError:
        usable = False
    if not usable:
        raise StoreUnavailable(faults.cannot_open(path))
    # Then what is beside it is from elsewhere.
    if any(point == path for _, point, _ in _mounts()):
        raise ConfigError(
            f"{path} is mounted by itself, without its directory: SQLite keeps what was committed "
            f"last in {place.name}-wal beside it, which no other mount of the file has, so tasks "
            "would be lost: mount the directory instead (docker run -v ./data:/data, not -v ./data/"
            f"{place.name}:/data/{place.name})",
            option="url",
        )
    kind = filesystem(place.parent)
    if kind is not None and is_network(kind) and not allow_network:
        raise ConfigError(
            f"{path} is on a network filesystem ({kind}), where SQLite's locks and shared memory "
            "are not reliable and the file would be corrupted: use a local disk, or PostgreSQL "
            "for several machines; allow_network_filesystem=True overrides this",
            option="allow_network_filesystem",
        )


def create(path: str) -> bool:
    """Make an empty file if there is none; readable by no one else than owner and group."""
    try:
        fd = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), _NEW_FILE_MODE
        )
    except FileExistsError:
        return False
    except OSError as error:
        raise StoreUnavailable(faults.cannot_open(path, error.strerror or "")) from error
    # Safe to close: the file is new, so SQLite has no locks on it yet.
    os.close(fd)
    return True


def adopt(connection: Connection, path: str) -> None:
    """Make the database one in WAL mode, inside the turn to write and outside a transaction."""
    if path == faults.MEMORY:
        return
    # The first statement reads the file, so what is no database is refused here.
    is_ready = connection.execute("PRAGMA journal_mode") == [("wal",)]
    ((encoding,),) = connection.execute("PRAGMA encoding")
    if encoding != "UTF-8":
        raise ConfigError(
            f"{path} keeps its texts in {encoding}, and Holdfast needs UTF-8: give it a file of "
            "its own, or copy the database into one that begins with PRAGMA encoding = 'UTF-8' "
            "(nothing was changed)",
            option="url",
        )
    if is_ready:
        return
    empty = connection.execute("PRAGMA page_count") == [(0,)]
    if empty:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    ((mode,),) = connection.execute("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise StoreError(
            f"{path} cannot be put into WAL mode (it stays {mode!r}): the filesystem offers no "
            "shared memory, or another program has the file open in another mode; close it, or "
            "use a local disk"
        )


def is_network(kind: str) -> bool:
    """Whether a filesystem of this type is another machine's."""
    return _NETWORK.fullmatch(kind) is not None


def filesystem(folder: Path) -> str | None:
    """The type of the filesystem a directory is on; None where that cannot be told."""
    try:
        device = folder.stat().st_dev
    except OSError:
        return None
    number = f"{os.major(device)}:{os.minor(device)}"
    best = ("", "")
    for mounted, point, kind in _mounts():
        if mounted == number:
            return kind
        # Some filesystems (btrfs) report another device for a file than for the mount.
        if folder.is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1] or None


def _mounts() -> list[tuple[str, str, str]]:
    """The device, the place and the type of each mount; none where that cannot be told."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    found: list[tuple[str, str, str]] = []
    for line in lines.splitlines():
        # A line: number, parent, device, root, mount point, options, … - type, source, options
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) >= 5 and right:
            point = _OCTAL.sub(lambda octal: chr(int(octal.group(1), 8)), fields[4])
            found.append((fields[2], point, right.split()[0]))
    return found
