"""Task ids: UUIDv7, 16 bytes inside, 36 characters outside; and whose code is running.

Owns making, writing and reading ids. They sort by the time they were made, so neighbours
in time are neighbours in the index. The time inside an id is the maker's clock and decides
nothing.

Owns also the context variable that says which task the current code belongs to. A worker's
child sets it around a task's code; a send made there notes the task as its parent. It is here
because sending and running are siblings that do not know each other.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import UUID

from holdfast.core.errors import ConfigError, Noun, TaskNotFound

__all__ = [
    "IdSource",
    "Lineage",
    "Running",
    "as_bytes",
    "as_text",
    "as_uuid",
    "current",
    "new_id",
    "new_ids",
    "running",
    "short_id",
    "sought",
    "uuid7",
]

# Stricter than `UUID(text)`, which also takes braces, underscores and stray dashes.
_TEXT = re.compile(r"[0-9a-fA-F]{8}(-?)[0-9a-fA-F]{4}(\1[0-9a-fA-F]{4}){2}\1[0-9a-fA-F]{12}")

_VERSION = 0x7 << 76
_VARIANT = 0b10 << 62
_RAND_BITS = 74
_RAND_MASK = (1 << _RAND_BITS) - 1
_LOW_MASK = (1 << 62) - 1
_STEP_MASK = (1 << 40) - 1
_DRAW = 10
_DRAWS = 100


def uuid7(now_ms: int, random_bytes: bytes) -> bytes:
    """The UUIDv7 of RFC 9562 for a time and ten random bytes."""
    return _layout(now_ms, int.from_bytes(random_bytes) & _RAND_MASK)


def _layout(now_ms: int, rand: int) -> bytes:
    # 48 bits of time | 4 of version | 12 of rand | 2 of variant | 62 of rand
    high = (now_ms << 80) | _VERSION | ((rand >> 62) << 64)
    return (high | _VARIANT | (rand & _LOW_MASK)).to_bytes(16)


class IdSource:
    """Makes ids that increase strictly within this process, from any thread.

    Within one millisecond, and while the clock stands or steps back, the random part grows
    by a random step (RFC 9562, method 2); so ids stay unguessable, and two processes that
    share a millisecond do not meet. After a fork the child draws afresh: it must not
    continue its parent's sequence, nor wait for a lock that a vanished thread holds.
    """

    def __init__(
        self,
        clock_ns: Callable[[], int] = time.time_ns,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._clock_ns = clock_ns
        self._random = random
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._last_ms = -1
        self._rand = 0
        self._drawn = b""
        self._place = 0
        self._pid = os.getpid()

    def __call__(self) -> bytes:
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            return self._next()

    def many(self, count: int) -> list[bytes]:
        """As many ids as that many calls would give, in half the time."""
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            return [self._next() for _ in range(count)]

    def _next(self) -> bytes:
        now_ms = self._clock_ns() // 1_000_000
        drawn = self._draw()
        if now_ms > self._last_ms:
            self._last_ms = now_ms
            self._rand = drawn & _RAND_MASK
        else:
            self._rand += 1 + (drawn & _STEP_MASK)
            if self._rand > _RAND_MASK:
                # Out of room in this millisecond: borrow the next one.
                self._last_ms += 1
                self._rand = drawn & _RAND_MASK
        return _layout(self._last_ms, self._rand)

    def _draw(self) -> int:
        # Many at once: asking the kernel lets other threads run, and they want the lock.
        place = self._place
        if place >= len(self._drawn):
            self._drawn, place = self._random(_DRAW * _DRAWS), 0
        self._place = place + _DRAW
        return int.from_bytes(self._drawn[place : place + _DRAW])


new_id = IdSource()
"""The id source of this process."""
new_ids = new_id.many
"""Many ids at once."""


def as_text(task_id: bytes) -> str:
    """The 36 characters of an id."""
    text = task_id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def short_id(task_id: bytes) -> str:
    """An id in 15 characters, for lists and logs: its first 8 digits and its last 6.

    The first ones are the time, equal for all ids of 65 seconds, and lead to the few rows among
    which the last ones, which are random, tell the task.
    """
    text = task_id.hex()
    return f"{text[:8]}-{text[-6:]}"


def as_uuid(task_id: bytes) -> UUID:
    """The `UUID` of an id."""
    return UUID(bytes=task_id)


def as_bytes(task_id: UUID | str | bytes) -> bytes:
    """The 16 bytes of an id, however it was given; `ConfigError` if it is none."""
    if isinstance(task_id, UUID):
        return task_id.bytes
    if isinstance(task_id, bytes) and len(task_id) == 16:
        return task_id
    if isinstance(task_id, str) and _TEXT.fullmatch(task_id):
        return bytes.fromhex(task_id.replace("-", ""))
    raise ConfigError(
        f"{task_id!r} is not a task id: give a UUID, "
        "such as '0197f3c2-5b1e-7d44-9a01-3c5e6f708192'",
        option="id",
    )


def sought(task_id: UUID | str | bytes, noun: Noun = "task") -> bytes:
    """The 16 bytes of the id of a task, or a workflow, that is looked for.

    A text that is no id is `TaskNotFound`: it comes from a URL as often as from a program, and
    "there is no such task" is the answer to whoever typed it.
    """
    if isinstance(task_id, str) and not _TEXT.fullmatch(task_id):
        raise TaskNotFound(task_id, noun=noun)
    return as_bytes(task_id)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The running task, seen from what it sends."""

    task_id: bytes
    root_id: bytes
    """The task with which it all began: its own id, if nobody sent it from a task."""
    trace_context: str | None


class Running(Protocol):
    """Whatever stands for the running task."""

    @property
    def lineage(self) -> Lineage: ...

    def waits(self, waiting: bool, /) -> None:
        """Its code does nothing but wait for other tasks, or no longer."""


running: Final[ContextVar[Running | None]] = ContextVar("holdfast_running", default=None)


def current() -> Lineage | None:
    """The lineage of what is sent here and now; None outside a task."""
    task = running.get()
    return None if task is None else task.lineage
