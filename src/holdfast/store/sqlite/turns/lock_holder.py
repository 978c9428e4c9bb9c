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


def of_others_write_lock(database: str) -> str | None:
    """The same, if it is not this process."""
    pid = _pid(f"{database}-shm", "POSIX", _WRITE_LOCK)
    return None if pid == os.getpid() else _words(pid)


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
    program = _program(pid)
    return f"process {pid} ({program})" if program else f"process {pid}"


def _program(pid: int) -> str:
    """The program that a process runs, without its arguments: these may hold passwords."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
    first, *rest = command.split("\0")
    # A process that has changed its title has all of it in the first.
    name = (first.split() or [""])[0].rpartition("/")[2]
    if not name.startswith(("python", "pypy")):
        return name
    for place, word in enumerate(rest):
        if word == "-m":
            return " ".join([name, *rest[place : place + 2]])
        if not word.startswith("-"):
            return f"{name} {word.rpartition('/')[2]}"
        if word not in _PLAIN_FLAGS:
            break
    return name


_PLAIN_FLAGS = frozenset({"-b", "-B", "-d", "-E", "-I", "-O", "-OO", "-P", "-q", "-s", "-S", "-u"})
"""Flags of Python that have no value of their own behind them."""
