"""SQLite's result codes in our words.

Owns the mapping from a result code to the error tree, with a sentence that names
the file and says what to do about it. Knows both libraries only by their codes,
and opens nothing: the database file must never be opened here, because closing
it would drop the POSIX locks that SQLite holds on it in this process.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from holdfast.core.errors import SchemaMismatch, StoreError, StoreUnavailable
from holdfast.store.row_refused import RowRefused

MEMORY = ":memory:"

ERROR = 1
PERM = 3
BUSY = 5
LOCKED = 6
NOMEM = 7
READONLY = 8
INTERRUPT = 9
IOERR = 10
CORRUPT = 11
FULL = 13
CANTOPEN = 14
PROTOCOL = 15
TOOBIG = 18
CONSTRAINT = 19
NOTADB = 26
BUSY_SNAPSHOT = BUSY | (2 << 8)

_BUSY = frozenset({BUSY, LOCKED, PROTOCOL})
_BROKEN = frozenset({IOERR, CORRUPT, CANTOPEN, NOTADB, READONLY})


_NO_TABLE = "no such table: holdfast_"


class ConstraintViolated(RowRefused):
    """A row was refused by a constraint; `constraint` is SQLite's text for it."""

    def __init__(self, message: str, constraint: str) -> None:
        super().__init__(message)
        self.constraint = constraint


class Busy(StoreUnavailable):
    """Another connection holds a lock; caught by those who try again until a deadline."""


def may_pass(code: int) -> bool:
    """Whether a lock was missing that may be had a little later, in the same transaction."""
    return code & 0xFF in _BUSY and code != BUSY_SNAPSHOT


def is_broken(code: int) -> bool:
    """Whether a connection that reported this should be opened anew."""
    return code & 0xFF in _BROKEN


def translate(code: int, text: str, path: str, *, committing: bool = False) -> StoreError:
    """The error to raise for a result code that a library reported about `path`."""
    primary = code & 0xFF
    if primary == CONSTRAINT:
        return ConstraintViolated(f"{path}: {text}", text)
    if primary in _BUSY:
        return Busy(_busy(code, path))
    if primary == NOMEM:
        return StoreUnavailable(
            f"there was no memory for a statement on {path}: give this process more (`ulimit -v`, "
            "the limit of its container), and repeat the call"
        )
    if primary == FULL:
        return StoreUnavailable(
            f"no space to write {path}: the disk, a quota or the database's size limit is "
            "full; free some space and repeat the call"
        )
    if primary == IOERR:
        # A commit whose fsync failed may be found complete after the next crash.
        return StoreUnavailable(
            f"the disk failed under {path} ({text}, code {code}): look at the system's log "
            "and the state of the disk",
            commit_unknown=committing,
        )
    if primary in (READONLY, PERM):
        return StoreUnavailable(_read_only(path))
    if primary == CANTOPEN:
        return StoreUnavailable(cannot_open(path, text))
    if primary == INTERRUPT:
        return StoreUnavailable(
            f"a statement on {path} was interrupted: it took longer than `statement_timeout`"
        )
    if primary == NOTADB:
        return StoreError(
            f"{path} is not a SQLite database (or it is encrypted); it was not touched: "
            "name another file, or move this one away"
        )
    if primary == CORRUPT:
        return StoreError(
            f"{path} is damaged ({text}): stop all processes that use it, copy it together "
            f"with {path}-wal, and run `sqlite3 {path} .recover` on the copy"
        )
    if primary == TOOBIG:
        return RowRefused(f"{path}: a value is larger than SQLite can store ({text})")
    if text.startswith(_NO_TABLE):
        return SchemaMismatch(
            f"{path} has no tables of Holdfast ({text}): if the file was replaced, restart this "
            "process or run `holdfast db migrate`"
        )
    return StoreError(f"{path}: {text}")


def _busy(code: int, path: str) -> str:
    if code == BUSY_SNAPSHOT:
        return (
            f"the transaction on {path} began by reading and others have written since, so it "
            "cannot write any more: roll back, and begin it with BEGIN IMMEDIATE"
        )
    return f"{path} is locked by another connection: repeat the call"


def _read_only(path: str) -> str:
    if path == MEMORY:
        return "the connection only reads"
    place = Path(path)
    if not os.access(place.parent, os.W_OK):
        return (
            f"the directory {place.parent} cannot be written by this user (uid {_user()}): "
            f"SQLite keeps {place.name}-wal and {place.name}-shm beside the file; give write "
            "permission on the directory"
        )
    if not os.access(place, os.W_OK):
        return (
            f"{path} cannot be written by this user (uid {_user()}): give write permission on "
            f"the file, and on {place.name}-wal and {place.name}-shm if they exist"
        )
    return (
        f"{path} cannot be written: check that {place.name}-wal and {place.name}-shm are "
        "writable for this user, and that the filesystem is not mounted read-only"
    )


def cannot_open(path: str, text: str = "") -> str:
    """Why a database file could not be opened, as far as the filesystem tells."""
    place = Path(path)
    folder = place.parent
    try:
        if not folder.exists():
            return f"the directory {folder} does not exist: create it, or name another file"
        if not folder.is_dir():
            return f"{folder} is not a directory, so {path} cannot be a file in it"
        if place.is_dir():
            return f"{path} is a directory: name a file in it"
        if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
            return f"{folder} is mounted read-only: remount it, or keep the database elsewhere"
        if not place.exists() and not os.access(folder, os.W_OK | os.X_OK):
            return (
                f"{path} does not exist and cannot be created: this user (uid {_user()}) may not "
                f"write in {folder}"
            )
        if not place.exists():
            return f"{path} does not exist"
        if not os.access(place, os.R_OK | os.W_OK):
            return f"{path} cannot be read and written by this user (uid {_user()})"
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return f"{path} is too long to be the name of a file"
        return f"{path} cannot be opened: {error.strerror}"
    return f"{path} cannot be opened ({text or 'no reason given'}): check its permissions"


def _user() -> int | str:
    return os.geteuid() if hasattr(os, "geteuid") else "?"
