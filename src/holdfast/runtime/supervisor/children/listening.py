"""What the message loop listens to, and what it leaves alone for a while.

Owns the selector. A child's socket is listened to unless the child said too much for now, has
hung up, or has broken the protocol; a full one is also watched for room. What rests is not lost: it
stays in the socket or pipe, and whoever writes into that waits. Other threads say here what else is
to be listened to.
"""

from __future__ import annotations

import selectors
from collections.abc import Iterator
from time import monotonic
from typing import Any, Final, Literal, TypeAlias

from holdfast.runtime.supervisor.children.template_process import TemplateProcess
from holdfast.runtime.supervisor.state.child_handle import ChildHandle, ChildState
from holdfast.runtime.supervisor.wake_pipe import WakePipe

Place: TypeAlias = Literal["socket", "output", "hung-up", "end"]
"""Of a child: its socket, the pipe its tasks print to; a socket that came to its
end; and the end of its process, if its template is dead."""

FOREVER: Final = 1e9
_LONGEST_WAIT: Final = 1.0


class Listening:
    """Any thread may use the first methods; the others are for the message loop's thread."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._resting: dict[tuple[ChildHandle, Place], float] = {}
        self._wake_pipe = WakePipe()
        self.unflushed: set[ChildHandle] = set()
        """Children whose sockets did not take all that they were sent."""
        self._newcomers: list[ChildHandle] = []
        self._new_templates: list[TemplateProcess] = []
        self.has_orphans = False
        """Whether the template of all children has died, and that has not been handled yet."""
        self.add(self._wake_pipe, None)

    def joined(self, child: ChildHandle) -> None:
        """A child was made."""
        self._newcomers.append(child)
        self.wake()

    def stuck(self, child: ChildHandle) -> None:
        """A child's socket is full: send the rest when it is not."""
        self.unflushed.add(child)
        self.wake()

    def listen_to(self, template: TemplateProcess) -> None:
        """Hear this template, too."""
        template.sock.setblocking(False)
        self._new_templates.append(template)
        self.wake()

    def orphaned(self) -> None:
        """The template of all children is dead: notice their ends without it."""
        self.has_orphans = True
        self.wake()

    def wake(self) -> None:
        """End the wait of the message loop."""
        self._wake_pipe.wake()

    def welcome(self) -> None:
        """Listen to what has been named since the last time."""
        while self._new_templates:
            template = self._new_templates.pop()
            self.add(template.sock, template)
        while self._newcomers:
            self.watch(self._newcomers.pop())

    def add(self, what: Any, data: object) -> None:
        """Listen to something that is no child's."""
        self._selector.register(what, selectors.EVENT_READ, data)

    def remove(self, what: Any) -> None:
        """Listen to it no longer, if it was listened to."""
        try:
            self._selector.unregister(what)
        except (KeyError, ValueError):
            pass

    def wait(self) -> Iterator[tuple[Any, bool]]:
        """Wait for something that can be read: its data, and whether it is that (or only room)."""
        for key, mask in self._selector.select(self._patience()):
            if key.data is None:
                self._wake_pipe.clear()
            else:
                yield key.data, bool(mask & selectors.EVENT_READ)

    def close(self) -> None:
        self._selector.close()

    def watch(self, child: ChildHandle) -> None:
        """Have the selector tell what is of interest about a child, and nothing else."""
        heard = room = printed = 0
        if child.state is not ChildState.DEAD:
            if child.breach is None and not self.rests(child, "socket", "hung-up"):
                heard = selectors.EVENT_READ
            if child in self.unflushed:
                room = selectors.EVENT_WRITE
            if not self.rests(child, "output"):
                printed = selectors.EVENT_READ
        self._select(child.sock, heard | room, (child, "socket"))
        self._select(child.output, printed, (child, "output"))

    def rests(self, child: ChildHandle, *places: Place) -> bool:
        return any((child, place) in self._resting for place in places)

    def rest(self, child: ChildHandle, place: Place, seconds: float) -> None:
        """Do not listen there for a while."""
        until = monotonic() + seconds
        if (child, place) in self._resting:
            self._resting[child, place] = max(until, self._resting[child, place])
        elif child.state is not ChildState.DEAD:
            self._resting[child, place] = until
            self.watch(child)

    def rested(self) -> list[tuple[ChildHandle, Place]]:
        """What has rested for long enough, and is listened to again."""
        if not self._resting:
            return []
        now = monotonic()
        found = [key for key, until in self._resting.items() if until <= now]
        for child, place in found:
            del self._resting[child, place]
            if place != "hung-up":
                self.watch(child)
        return found

    def forget(self, child: ChildHandle) -> None:
        """A child is dead: its descriptors will be closed."""
        self.unflushed.discard(child)
        self.watch(child)
        for place in ("socket", "output", "hung-up"):
            self._resting.pop((child, place), None)

    def _patience(self) -> float:
        if not self._resting:
            return _LONGEST_WAIT
        return min(_LONGEST_WAIT, max(0.0, min(self._resting.values()) - monotonic()))

    def _select(self, where: Any, wanted: int, data: tuple[ChildHandle, Place]) -> None:
        try:
            known = self._selector.get_key(where)
        except (KeyError, ValueError):
            if wanted:
                self._selector.register(where, wanted, data)
            return
        if not wanted:
            self._selector.unregister(where)
        elif known.events != wanted:
            self._selector.modify(where, wanted, data)
