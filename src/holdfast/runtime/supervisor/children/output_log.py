"""What a task printed: the first half megabyte as it comes, the last when it ends.

Owns the bounds of a log. A task that prints without end costs one megabyte, and the gap in
between is marked; when memory is short (`scarce`) it costs far less.

What children print while no task of theirs is speaking (hooks of the worker, background threads,
exit functions, tasks whose output is not captured) is stored nowhere: `StrayOutput` is its way into
the worker's log, line by line, with the child's name and a bound on how many lines a second each
child may have.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from holdfast.core.text import one_line
from holdfast.runtime.supervisor.task_log import LineLimit

log = logging.getLogger("holdfast.output")

HEAD = 512 * 1024
TAIL = 512 * 1024
SCARCE = 32 * 1024
_PER_SECOND: Final = 100
_LONGEST: Final = 8192


class OutputLog:
    """The output of one attempt."""

    __slots__ = ("_cut", "_head_left", "_tail", "_waiting", "parts")

    def __init__(self) -> None:
        self.parts = 0
        self._head_left = HEAD
        self._waiting = bytearray()
        self._tail = bytearray()
        self._cut = 0

    def __len__(self) -> int:
        """How many bytes are held."""
        return len(self._waiting) + len(self._tail)

    def add(self, data: bytes | memoryview, *, scarce: bool = False) -> None:
        """More output."""
        most = SCARCE if scarce else TAIL
        if scarce and len(self._waiting) >= most:
            self._head_left = 0
        if self._head_left:
            self._waiting += data[: self._head_left]
            taken = min(len(data), self._head_left)
            self._head_left -= taken
            data = data[taken:]
        if data:
            self._tail += data
            over = len(self._tail) - most
            # Trimmed in large steps, so that a flood of short lines costs little.
            if over > most:
                del self._tail[:over]
                self._cut += over

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def live(self) -> bytes:
        """What can be shown now; each byte once."""
        data = bytes(self._waiting)
        self._waiting.clear()
        return data

    def rest(self) -> bytes:
        """What is left when the task has ended."""
        data = self.live()
        over = max(0, len(self._tail) - TAIL)
        cut = self._cut + over
        if cut:
            data += b"\n[... %d bytes left out ...]\n" % cut
        return data + bytes(self._tail[over:])


@dataclass(slots=True)
class _Speaker:
    held: bytearray = field(default_factory=bytearray)
    limit: LineLimit = field(default_factory=lambda: LineLimit(_PER_SECOND))


class StrayOutput:
    """Used by the message loop's thread only."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._speakers: dict[str, _Speaker] = {}

    def printed(self, name: str, data: bytes) -> None:
        """A child printed this, and no task of it did."""
        speaker = self._speakers.setdefault(name, _Speaker())
        _left_out(name, speaker.limit.turn(self._clock()))
        if speaker.limit.is_over:
            # Counted only: what is left running may print millions of them.
            speaker.limit.admits(data.count(b"\n"))
            speaker.held = bytearray(data[data.rfind(b"\n") + 1 :][-_LONGEST:])
            return
        speaker.held += data
        *lines, rest = speaker.held.split(b"\n")
        if len(rest) > _LONGEST:
            lines, rest = [*lines, rest], bytearray()
        speaker.held = rest
        for line in lines:
            self._say(name, speaker, line)

    def gone(self, name: str) -> None:
        """A child is dead: what it began to say is all there is."""
        speaker = self._speakers.pop(name, None)
        if speaker is None:
            return
        if speaker.held:
            self._say(name, speaker, speaker.held)
        _left_out(name, speaker.limit.turn(-1))

    def _say(self, name: str, speaker: _Speaker, line: bytearray) -> None:
        _left_out(name, speaker.limit.turn(self._clock()))
        if speaker.limit.admits() and log.isEnabledFor(logging.INFO):
            text = one_line(line.decode("utf-8", "replace"), _LONGEST)
            fields = {"event": "output", "child": name}
            log.info("%s: %s", name, text, extra={"holdfast": fields})


def _left_out(name: str, number: int) -> None:
    if number:
        fields = {"event": "left_out", "kind": "output", "child": name, "lines": number}
        log.info("%s: … and %s more line(s)", name, f"{number:,}", extra={"holdfast": fields})
