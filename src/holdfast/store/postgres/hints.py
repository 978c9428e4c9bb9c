"""Hints by NOTIFY: their channels, and how often one is worth its price.

Owns the rate. A commit that notifies takes a lock of the whole database, so sixteen
concurrent committers that all notify fall to less than half their speed. Therefore the
first hint for a queue leaves at once, inside the commit it is about, and what follows
within a short window is answered by one more at its end.

    carried = limiter.due(channel, queues)      # before: these go with the commit
    ...                                         # the commit
    limiter.owe(channel, the_others)            # after: these are sent when the window ends

A hint may be lost at every step; listeners poll.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TypeAlias

from holdfast.store import fork
from holdfast.store.op import Channel

WINDOW_S = 0.010
LINGER_S = 1.0
"""How long the sending thread waits for more before it ends."""
PARTING_S = 2.0
"""How long closing waits for the last hints."""
_LONGEST_NAME = 63
_LONGEST_PAYLOAD = 1_999
"""Characters, of up to four bytes each."""
_REMEMBERED = 1024

Note: TypeAlias = tuple[str, str]
"""A channel's name in the database, and the payload."""


def channel_name(channel: Channel, schema: str | None) -> str:
    """The channel's name in the database; stores in two schemas do not wake each other."""
    if schema is None:
        return channel.value
    name = f"{schema}.{channel.value}"
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(schema.encode()).hexdigest()[:16]
    return f"{schema[:30]}_{digest}.{channel.value}"


def short(payloads: Sequence[str]) -> Sequence[str]:
    """Payloads that NOTIFY takes: one that is too long becomes "look everywhere".

    The server refuses 8,000 bytes and more, and with them the transaction. No queue that we
    made has so long a name.
    """
    if all(len(payload) <= _LONGEST_PAYLOAD for payload in payloads):
        return payloads
    return [payload if len(payload) <= _LONGEST_PAYLOAD else "" for payload in payloads]


class Limiter:
    """Says which hints may leave now, and sends the others when they may."""

    def __init__(self, send: Callable[[Sequence[Note]], None], schema: str | None) -> None:
        self._send = send
        self._names = {channel: channel_name(channel, schema) for channel in Channel}
        self._closed = False
        self._start()
        fork.inherit(self)

    def _start(self) -> None:
        # The lock itself where nobody waits: a condition takes it in Python.
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._sent: dict[Note, float] = {}
        self._owed: dict[Note, float] = {}
        self._thread: threading.Thread | None = None

    def after_fork(self) -> None:
        """The parent still owes what it owes; its thread is not here."""
        self._start()

    def name(self, channel: Channel) -> str:
        """The channel's name in the database."""
        return self._names[channel]

    def due(self, channel: Channel, payloads: Sequence[str]) -> list[str]:
        """Those payloads that the coming commit should carry."""
        payloads = short(payloads)
        name = self._names[channel]
        now = monotonic()
        with self._lock:
            due = [p for p in dict.fromkeys(payloads) if now >= self._opens((name, p))]
            for payload in due:
                self._note((name, payload), now)
                self._owed.pop((name, payload), None)
            return due

    def owe(self, channel: Channel, payloads: Sequence[str]) -> None:
        """Send these when their window has ended, which may be now."""
        payloads = short(payloads)
        name = self._names[channel]
        with self._lock:
            if self._closed:
                return
            new = [hint for p in payloads if (hint := (name, p)) not in self._owed]
            for hint in new:
                self._owed[hint] = self._opens(hint)
            if self._owed and self._thread is None:
                self._thread = threading.Thread(
                    target=self._pay, name="holdfast-hints", daemon=True
                )
                self._thread.start()
            elif new:
                # Not for what is owed already: in a burst each wake-up would be for nothing.
                self._changed.notify()

    def close(self) -> None:
        """Send what is owed if that is quickly done, and end."""
        with self._changed:
            self._closed = True
            thread = self._thread
            self._changed.notify()
        if thread is not None:
            thread.join(PARTING_S)

    def _pay(self) -> None:
        while hints := self._collect():
            self._send(hints)

    def _collect(self) -> list[Note]:
        """Wait for hints that may leave; none when the thread should end."""
        with self._changed:
            while True:
                now = monotonic()
                hints = [hint for hint, opens in self._owed.items() if opens <= now or self._closed]
                if hints:
                    for hint in hints:
                        del self._owed[hint]
                        self._note(hint, now)
                    return hints
                if self._owed:
                    self._changed.wait(min(self._owed.values()) - now)
                elif self._closed or not self._changed.wait(LINGER_S):
                    self._thread = None
                    return []

    def _opens(self, hint: Note) -> float:
        return self._sent.get(hint, float("-inf")) + WINDOW_S

    def _note(self, hint: Note, now: float) -> None:
        if len(self._sent) >= _REMEMBERED:
            self._sent = {h: at for h, at in self._sent.items() if now - at < WINDOW_S}
        self._sent[hint] = now
