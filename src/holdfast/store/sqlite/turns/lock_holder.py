"""Who holds a lock on a file, for the sentence of an error.

Owns the reading of `/proc/locks`. Best effort: where that file does not exist, or a
container hides the process, the answer is that it is not known. Never opens the
file it asks about.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["FLOCK", "POSIX"]

# SQLite's write lock in WAL mode: this byte of the -shm file (UNIX_SHM_BASE in os_unix.c).
_WRITE_LOCK = "120"


def of_flock(path: str) -> str | None:
    """Who holds the flock on `path`, in words."""
    return _words(_pid(path, "FLOCK", None))


def of_write_lock(database: str) -> str | None:
    """Who is in a write transaction on a database in WAL mode, in words."""
    return _words(_pid(f"{database}-shm", "POSIX", _WRITE_LOCK))


def is_this_process(database: str) -> bool:
    """Whether it is this process itself that is in a write transaction."""
    return _pid(f"{database}-shm", "POSIX", _WRITE_LOCK) == os.getpid()


def _pid(path: str, kind: Kind, first_byte: str | None) -> int | None:
    try:
        inode = str(Path(path).stat().st_ino)
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        # "12: FLOCK  ADVISORY  WRITE 4711 fe:00:262213 0 EOF"; "->" marks one who waits.
        fields = line.split()
        if len(fields) != 8 or fields[1] != kind or fields[3] != "WRITE":
            continue
        if fields[5].rpartition(":")[2] != inode or first_byte not in (None, fields[6]):
            continue
        return int(fields[4])
    return None


def _words(pid: int | None) -> str | None:
    if pid is None or pid <= 0:
        return None
    if pid == os.getpid():
        return "this process itself"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except (OSError, UnicodeDecodeError):
        command = ""
    return f"process {pid} ({command[:80]})" if command else f"process {pid}"
