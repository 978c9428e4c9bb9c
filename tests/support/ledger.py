"""What the code of a test's tasks writes down by itself, and the gates it waits at.

Nothing of Holdfast is used here: whether the code ran, and how often, must not be known from
the system that is being tested. A line is one write to a file opened for appending, so lines
of many processes do not mix, and a process that is killed leaves whole lines.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PLACE = "LEDGER_DIRECTORY"


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened."""

    at: float
    """Monotonic, the same clock in all processes of a machine."""
    pid: int
    kind: str
    key: str
    data: Any


def _directory() -> Path:
    return Path(os.environ[_PLACE])


def note(kind: str, key: object = "", data: object = None) -> None:
    """User code: write down that something happened."""
    line = json.dumps([time.monotonic(), os.getpid(), kind, str(key), data]) + "\n"
    file = os.open(_directory() / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def gate(name: object, *, within: float = 60.0) -> None:
    """User code: note "begun", and wait until the test opens the gate of this name."""
    note("begun", name)
    wait_at(name, within=within)


def wait_at(name: object, *, within: float = 60.0) -> None:
    """User code: wait until the test opens the gate of this name."""
    deadline = time.monotonic() + within
    while not is_open(name):
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody opened the gate {name}")
        time.sleep(0.005)


async def agate(name: object, *, within: float = 60.0) -> None:
    """User code: the same in a coroutine."""
    import asyncio

    note("begun", name)
    deadline = time.monotonic() + within
    while not is_open(name):
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody opened the gate {name}")
        await asyncio.sleep(0.02)


def is_open(name: object) -> bool:
    """Whether the gate of this name has been opened."""
    return (_directory() / f"gate-{name}").exists()


class Ledger:
    """The test's side."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def environment(self) -> dict[str, str]:
        """What a worker needs to find it."""
        return {_PLACE: str(self._directory)}

    def open_gate(self, *names: object) -> None:
        for name in names:
            (self._directory / f"gate-{name}").touch()

    def lines(self, kind: str | None = None, key: object | None = None) -> list[Line]:
        """What was written so far, oldest first."""
        return [
            line
            for line in self._read()
            if (kind is None or line.kind == kind) and (key is None or line.key == str(key))
        ]

    def count(self, kind: str, key: object | None = None) -> int:
        return len(self.lines(kind, key))

    def tally(self, kind: str) -> Counter[str]:
        """How often each key has a line of this kind."""
        return Counter(line.key for line in self.lines(kind))

    def _read(self) -> Iterator[Line]:
        try:
            text = (self._directory / "ledger").read_text()
        except FileNotFoundError:
            return
        # What follows the last line's end is being written: a read may see the half of a write.
        for line in text[: text.rfind("\n") + 1].splitlines():
            yield Line(*json.loads(line))
