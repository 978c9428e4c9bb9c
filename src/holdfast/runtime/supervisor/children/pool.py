"""The pool: as many children as there should be.

Owns the making, replacing and ending of children. They are forked by the template, which
has imported the application; the supervisor never does. A child that died is replaced,
after a pause that grows if children keep exiting soon after their start. A child that has reached
its task limit takes nothing more, and is replaced when it has no tasks left. One that was asked for
and does not come up is killed and replaced, or the template is that does not make it; the next one
has twice as long.

A process whose task waits for other tasks is busy with nothing: while it waits there is one more
child in its place, so that tasks may wait for tasks with one process only. When the wait is over
there is one child too many for a moment; the first that is idle leaves.

Nothing outlives the worker: template and children die with the supervisor, by the kernel's own
means. A template that dies alone leaves its children at work (`template_keeper`).
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from math import inf
from time import monotonic

from holdfast.core.pause import growing
from holdfast.runtime import orphan_guard
from holdfast.runtime.orphan_guard import Witness
from holdfast.runtime.supervisor.children.template_process import TemplateProcess
from holdfast.runtime.supervisor.state.child_handle import ChildHandle, ChildState
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.wire import shared_page
from holdfast.runtime.wire.framing import MAX_FRAME, new_nonce
from holdfast.runtime.wire.messages import Fork, Kind, Leave

log = logging.getLogger("holdfast.worker")

_OUTPUT_PIPE = 1024 * 1024
_YOUNG = 1.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0
_LAST_PATIENCE = 2.0
_NO_MEANS = 1.0
START_PATIENCE = 30.0
_LONGEST_START = 600.0
"""Seconds in which a child has to say that it can take tasks: to import the application, if it was
spawned, and to run the hooks of its start."""
MOST_LENT = 16
"""How many children there are beyond `concurrency`, at the most, in the place of others whose tasks
wait."""


class ChildPool:
    """Any thread may call it. Its lock is taken before the ledger's, never while that is held."""

    def __init__(
        self,
        template: TemplateProcess,
        ledger: Ledger,
        wanted: dict[Kind, tuple[int, int]],
        *,
        joined: Callable[[ChildHandle], None],
        stuck: Callable[[ChildHandle], None],
        largest_frame: int = MAX_FRAME,
        start_patience: float = START_PATIENCE,
        worker_id: str = "",
    ) -> None:
        self._worker_id = worker_id
        self.template: TemplateProcess | None = template
        """None while there is none: it has died, and the next one is being started."""
        self._lifeline = template.lifeline
        self._lock = threading.RLock()
        self._roster = ledger.roster
        self._max_tasks_per_child = ledger.options.max_tasks_per_child
        self._wanted = wanted
        """For each kind: how many children, and how many tasks each runs at a time."""
        self._joined = joined
        self._stuck = stuck
        self._largest_frame = largest_frame
        self._next = 1
        self._born: dict[int, float] = {}
        self._early_deaths = 0
        self._start_patience = start_patience
        self._late_starts = 0
        self._not_before = 0.0
        self.closing = False

    def fill(self) -> None:
        """Make the children that are missing, and let go those that are one too many."""
        with self._lock:
            template = self.template
            if template is not None and not self.closing and monotonic() >= self._not_before:
                self._fill(template)

    def _fill(self, template: TemplateProcess) -> None:
        children = self._roster.all()
        for kind, (count, lanes) in self._wanted.items():
            alive = [m for m in children if m.kind == kind and m.state is not ChildState.LEAVING]
            lent = min(MOST_LENT, sum(m.is_lent for m in alive))
            for _ in range(count + lent - len(alive)):
                try:
                    self._make(template, kind, lanes)
                except OSError as error:
                    # No descriptors, or no memory: others may have given some back by then.
                    self._not_before = monotonic() + _NO_MEANS
                    log.error("no child can be made (%s); next try in %g s", error, _NO_MEANS)
                    return
            surplus = max(0, len(alive) - count - lent)
            for child in self._roster.let_go_idle(alive, surplus) if surplus else ():
                child.dismissed = True
                child.say(Leave())

    def _make(self, template: TemplateProcess, kind: Kind, lanes: int) -> None:
        number, self._next = self._next, self._next + 1
        memory = shared_page.create(lanes)
        try:
            ours, theirs = socket.socketpair()
            output, child_output = os.pipe()
        except OSError:
            os.close(memory)
            raise
        os.set_blocking(output, False)
        _enlarge(output)
        nonce = new_nonce()
        child = ChildHandle(
            number,
            kind,
            lanes,
            ours,
            shared_page.SharedPage(memory, lanes, guarded=True),
            output,
            nonce,
            self._stuck,
            self._largest_frame,
        )
        if kind == "process":
            child.most = self._max_tasks_per_child
        try:
            template.fork(
                Fork(number, kind, lanes, child.name, nonce, 3, self._worker_id),
                [theirs.fileno(), memory, child_output],
            )
        except OSError:
            # The template is gone; its end is noticed where it is read from.
            child.close()
            os.close(output)
            return
        finally:
            theirs.close()
            os.close(memory)
            os.close(child_output)
        self._born[number] = monotonic()
        self._roster.add(child)
        self._joined(child)

    def gone(self, child: ChildHandle) -> None:
        """A child is gone; one that died young makes the next ones wait."""
        with self._lock:
            lived = monotonic() - self._born.pop(child.number, 0.0)
            if child.greeted:
                self._late_starts = 0
            # A worker that stops before its children are ready takes them along: nothing is wrong.
            expected = child.killed or child.dismissed or self.closing
            if lived < _YOUNG and not child.served and not expected:
                self._early_deaths += 1
                pause = growing(_FIRST_PAUSE, self._early_deaths, _LONGEST_PAUSE)
                self._not_before = monotonic() + pause
                log.warning(
                    "%s died %.1f s after it was made; next try in %.1f s", child.name, lived, pause
                )
            else:
                self._early_deaths = 0
            self.fill()

    def end_late_starts(self) -> None:
        """Kill the children that should have come up by now."""
        with self._lock:
            patience = growing(self._start_patience, self._late_starts, _LONGEST_START)
            latest = monotonic() - patience
            late = [
                child
                for child in self._roster.all()
                if child.state is ChildState.STARTING
                and not child.killed
                and self._born.get(child.number, inf) < latest
            ]
            if not late or self.closing:
                return
            self._late_starts += 1
            for child in late:
                if child.pid is not None:
                    log.error(
                        "%s (pid %d) did not come up in %g s, and is killed: does a "
                        "`child_started` hook, or the import of the application, take long? "
                        "The next has %g s",
                        child.name,
                        child.pid,
                        patience,
                        growing(self._start_patience, self._late_starts, _LONGEST_START),
                    )
                    self.kill(child, on_purpose=True)
            if self.template is not None and any(child.pid is None for child in late):
                log.error(
                    "the template made no child in %g s, and is killed: another one is started",
                    patience,
                )
                self.template.process.kill()

    def retire(self, child: ChildHandle) -> None:
        """Let a child go when its hand is empty; its successor is made at once."""
        if self._roster.let_go(child):
            child.say(Leave())
        self.fill()

    def use(self, template: TemplateProcess | None) -> bool:
        """Make children from this template from now on, or from none; False if it is too late."""
        with self._lock:
            if self.closing:
                return False
            self.template = template
            self.fill()
            return True

    def close(self) -> None:
        """Make no more children."""
        with self._lock:
            self.closing = True

    def leave(self) -> None:
        """Ask every child that has nothing in hand to leave; none is replaced."""
        self.close()
        for child in self._roster.let_go_idle(self._roster.all()):
            child.say(Leave())

    def kill(self, child: ChildHandle, *, on_purpose: bool = False) -> None:
        """End a child now, with everything it started.

        `on_purpose`: one of its tasks is to end; the others are interrupted, at no cost to them.
        """
        child.killed = child.killed or on_purpose
        if child.is_reaped or child.state is ChildState.DEAD or child.pid is None:
            return
        orphan_guard.kill_child(child.pid)

    def kill_all(self) -> None:
        """End every child now."""
        self.close()
        for child in self._roster.all():
            self.kill(child)

    def end(self) -> None:
        """End template and children; returns when they are gone."""
        with self._lock:
            children, template = self._roster.all(), self.template
        pids = [m.pid for m in children if m.pid is not None]
        orphans = [m.pid for m in children if m.orphaned and m.pid]
        witness = Witness(pids)
        # Those of a template that is dead, or could not take its children along.
        for pid in pids if template is not None and not template.end() else orphans:
            orphan_guard.kill_group(pid)
        self._lifeline.cut()
        if not witness.wait(_LAST_PATIENCE):
            log.error(
                "of the processes %s some have not ended though they were killed: the kernel holds "
                "on to them (a file system that does not answer?)",
                ", ".join(map(str, pids)),
            )


def _enlarge(pipe: int) -> None:
    """A larger pipe, where that is allowed: a burst of output must not stop its task."""
    if sys.platform == "linux":
        import fcntl

        try:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _OUTPUT_PIPE)
        except OSError:
            pass
