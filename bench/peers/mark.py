"""What every measured task does: append its number and its times to a file of its process.

Owns the record. It is the same code for ours and for every peer, runs in each one's own
environment, and so imports the standard library only.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns, thread_time_ns

from bench.peers.work import Work, wait, work

RECORD = struct.Struct("=QQQQ")
FOLDER = "BENCH_MARKS"
"""The environment variable that names the directory of the files."""


class _File:
    """The file of this process; opened by the first task, and again after a fork."""

    def __init__(self) -> None:
        self._descriptor = -1
        os.register_at_fork(after_in_child=self._forget)

    def write(self, data: bytes) -> None:
        if self._descriptor < 0:
            path = Path(os.environ[FOLDER]) / str(os.getpid())
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(self._descriptor, data)

    def _forget(self) -> None:
        self._descriptor = -1


_file = _File()


def mark(number: int) -> int:
    """The body of a task: its work, if it has any, then its record."""
    return mark_doing(number, work)


def mark_doing(number: int, work: Work) -> int:
    """The same with work of its own."""
    began, used = monotonic_ns(), thread_time_ns()
    work(number)
    _file.write(RECORD.pack(number, began, monotonic_ns(), thread_time_ns() - used))
    return number


async def mark_async(number: int) -> int:
    """The same for a coroutine, whose work may be to wait beside others."""
    began, used = monotonic_ns(), thread_time_ns()
    await wait(number)
    _file.write(RECORD.pack(number, began, monotonic_ns(), thread_time_ns() - used))
    return number


@dataclass(frozen=True, slots=True)
class Mark:
    """One run of one task."""

    number: int
    began_ns: int
    at_ns: int
    """When it ended."""
    pid: int
    used_ns: int
    """Processor time of its thread meanwhile; of a coroutine that waits, also that of others."""


class Marks:
    """The files of all processes, as the benchmark reads them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder

    @property
    def count(self) -> int:
        """How many tasks have run."""
        return sum(path.stat().st_size for path in self.folder.iterdir()) // RECORD.size

    def read(self) -> list[Mark]:
        """Every run, in the order of time."""
        found = [
            Mark(number, began_ns, at_ns, int(path.name), used_ns)
            for path in self.folder.iterdir()
            for number, began_ns, at_ns, used_ns in RECORD.iter_unpack(_whole(path.read_bytes()))
        ]
        return sorted(found, key=lambda mark: mark.at_ns)


def _whole(data: bytes) -> bytes:
    return data[: len(data) - len(data) % RECORD.size]
