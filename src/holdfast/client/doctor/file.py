"""What endangers a SQLite file, and the disk that a database is on.

Owns the judgement of what was measured; `measure_disk` is all that it measures itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.client.doctor.finding import Finding, Severity
from holdfast.store.sqlite.database_file import filesystem, is_network
from holdfast.store.sqlite.drivers.driver import is_vulnerable

_MEGABYTE: Final = 1 << 20
_LONG_WAL: Final = 64 * _MEGABYTE
_LITTLE, _HARDLY_ANY = 1024 * _MEGABYTE, 100 * _MEGABYTE


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The disk that a database is on."""

    free: int
    total: int


@dataclass(frozen=True, slots=True)
class FileState:
    """A SQLite file and what is around it."""

    path: str
    version: str
    journal_mode: str
    durable: bool
    kind: str | None
    """The type of its filesystem."""
    wal_bytes: int
    bytes: int
    free_bytes: int
    """Of the file: pages that hold nothing."""


def measure_disk(path: str) -> DiskSpace | None:
    """How much room there is; None where that cannot be told."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return DiskSpace(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


def measure_file(path: str, facts: Mapping[str, str | None], *, durable: bool) -> FileState:
    """What there is to know about a file."""
    page = _number(facts, "page_bytes")
    return FileState(
        path=path,
        version=facts.get("version") or "",
        journal_mode=facts.get("journal_mode") or "",
        durable=durable,
        kind=filesystem(Path(path).parent),
        wal_bytes=_size(f"{path}-wal"),
        bytes=page * _number(facts, "pages"),
        free_bytes=page * _number(facts, "free_pages"),
    )


def judge_file(state: FileState) -> Iterator[Finding]:
    """The file, the library that opens it, the filesystem."""
    if _is_vulnerable(state.version):
        yield Finding(
            "sqlite-version",
            Severity.WARNING,
            f"SQLite {state.version} has a bug in its WAL that can lose what was committed",
            "Holdfast keeps its own connections from it; other programs that have this file open "
            "are not kept from it",
            "use a SQLite of 3.51.3 or later (or 3.50.7, 3.44.6): driver='apsw' "
            "brings its own, pip install -U apsw",
            {"version": state.version},
        )
    if state.kind is not None and is_network(state.kind):
        yield Finding(
            "network-filesystem",
            Severity.CRITICAL,
            f"{state.path} is on a network filesystem ({state.kind})",
            "locks and shared memory do not work there: the file will be corrupted as soon as two "
            "machines use it",
            "move it to a local disk, or use PostgreSQL",
            {"filesystem": state.kind},
        )
    if state.journal_mode not in ("wal", "memory"):
        yield Finding(
            "journal-mode",
            Severity.CRITICAL,
            f"the file is in journal mode {state.journal_mode!r}",
            "without WAL every reader stops every writer",
            "find the program that changes it; Holdfast puts it into WAL mode when it opens it",
            {"journal_mode": state.journal_mode},
        )
    if not state.durable:
        yield Finding(
            "commits-do-not-wait",
            Severity.WARNING,
            "commits do not wait for the disk (durable=False, which sets synchronous = NORMAL)",
            "a crash of the machine loses the latest sends and outcomes: tasks are gone, or run "
            "again",
            "leave out durable=False (HOLDFAST_DURABLE=0), unless such a loss is acceptable",
        )
    if state.wal_bytes > _LONG_WAL:
        yield Finding(
            "long-wal",
            Severity.WARNING,
            f"the write-ahead log is {state.wal_bytes / 1e6:,.0f} MB long",
            "somebody has been reading for long, in one transaction, so that it cannot be copied "
            "into the database; it grows, and reading becomes slower",
            "end that program, or its transaction; it shrinks with the next writes",
            {"wal_bytes": state.wal_bytes},
        )
    if state.free_bytes > max(_LONG_WAL, state.bytes // 2):
        yield Finding(
            "empty-pages",
            Severity.NOTICE,
            f"{state.free_bytes / 1e6:,.0f} of {state.bytes / 1e6:,.0f} MB of the file are empty",
            "they are used again before the file grows; the disk does not get them back",
            "to make it smaller, stop the workers and run VACUUM",
            {"free_bytes": state.free_bytes, "bytes": state.bytes},
        )


def judge_disk(place: str, space: DiskSpace | None) -> Iterator[Finding]:
    """The room that is left."""
    if space is None or not space.total:
        return
    share = space.free / space.total
    if space.free < _HARDLY_ANY or (space.free < _LITTLE and share < 0.1) or share < 0.03:
        yield Finding(
            "disk-space",
            Severity.CRITICAL if space.free < _HARDLY_ANY else Severity.WARNING,
            f"{space.free / 1e6:,.0f} MB ({share:.0%}) are free on the disk of {place}",
            "when it is full nothing can be sent or finished; workers keep outcomes in memory and "
            "try again",
            "make room; holdfast's own part is what retention keeps: shorten it, or delete old "
            "tasks",
            {"free_bytes": space.free, "total_bytes": space.total},
        )


def _is_vulnerable(version: str) -> bool:
    try:
        major, minor, patch = map(int, version.split("."))
    except ValueError:
        return False
    return is_vulnerable((major, minor, patch))


def _number(facts: Mapping[str, str | None], name: str) -> int:
    text = facts.get(name) or ""
    return int(text) if text.isdecimal() else 0


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
