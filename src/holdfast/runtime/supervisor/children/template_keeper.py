"""The template keeper: a worker goes on when the process dies that its children are made from.

Invariant: while the worker is not stopping, there is a template, or one is being started, or the
time for the next try is set.

Failure: a template may be killed at any moment (by the kernel, when memory is short). Its children
live on: they finish what they run and take more. Another is started, from the supervisor's main
thread, because the kernel ends a template with the thread that made it. If the application cannot
be imported any more, that is said, and tried again after growing pauses for as long as there is a
child to work; only a worker with neither children nor a template gives up.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from time import monotonic

from holdfast.core.pause import growing
from holdfast.runtime.supervisor.children.listening import Listening
from holdfast.runtime.supervisor.children.pool import ChildPool
from holdfast.runtime.supervisor.children.template_process import TemplateProcess
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.wire.messages import Broken, KnownTask, Manifest

log = logging.getLogger("holdfast.worker")

_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 30.0
_YOUNG = 10.0
"""Seconds that a template must have served before its death is no reason to wait."""
_MOST_FAILURES = 4
"""In a row, without any child left: then the worker ends."""


class TemplateKeeper:
    """`step` is for the supervisor's main thread, all else for the message loop's."""

    def __init__(
        self,
        template: TemplateProcess,
        tasks: Sequence[KnownTask],
        pool: ChildPool,
        ledger: Ledger,
        listening: Listening,
        *,
        failed: Callable[[str, BaseException], None],
        stir: Callable[[], None],
    ) -> None:
        self._pattern = template
        self._known = _names(tasks)
        self._pool = pool
        self._roster = ledger.roster
        self._listening = listening
        self._failed = failed
        self._stir = stir
        self._mutex = threading.Lock()
        self._starting: TemplateProcess | None = None
        self._ending: TemplateProcess | None = None
        self._try_at: float | None = None
        self._serving_since = monotonic()
        self._failures = 0
        self._problem = ""

    @property
    def pids(self) -> set[int | None]:
        """The processes whose ends are waited for here."""
        found = (self._starting, self._ending, self._pool.template)
        return {template.process.pid for template in found if template is not None}

    def step(self) -> None:
        """Start a template if one is missing and it is time to; give up if that is hopeless."""
        with self._mutex:
            if self._try_at is None or self._pool.closing:
                return
            if self._failures >= _MOST_FAILURES and not self._roster.all():
                self._try_at = None
                self._failed("template", RuntimeError(self._problem))
                return
            if monotonic() < self._try_at:
                return
            self._try_at = None
            try:
                self._starting = self._pattern.again()
            except OSError as error:
                self._retry(f"it could not be started: {error}")
                return
            self._listening.listen_to(self._starting)

    def ended(self, template: TemplateProcess) -> None:
        """A template is gone, the one in use or the one that was being started."""
        self._ending = template
        how = template.reap()
        self._ending = None
        with self._mutex:
            if self._pool.closing:
                return
            if template is self._pool.template:
                self._lost(how)
            elif template is self._starting:
                self._starting = None
                self._retry(f"the process that imports it has ended ({how})")
        self._stir()

    def _lost(self, how: str) -> None:
        self._pool.use(None)
        self._listening.orphaned()
        if monotonic() - self._serving_since >= _YOUNG:
            self._failures = 0
        log.error(
            "the process that children are made from has ended (%s): running tasks go on, and "
            "another one is started",
            how,
        )
        self._problem = f"the process that children are made from keeps ending ({how})"
        self._try_at = monotonic() + (self._pause() if self._failures else 0.0)
        self._failures += 1

    def heard(self, template: TemplateProcess, message: Manifest | Broken) -> None:
        """What came of an import."""
        with self._mutex:
            if template is not self._starting:
                return
            if isinstance(message, Broken):
                self._starting = None
                self._retry(message.text)
                return
            if not self._pool.use(template):
                # It is still the one that is being started, so `close` ends it.
                return
            self._starting = None
            self._serving_since = monotonic()
        if _names(message.tasks) != self._known:
            log.warning(
                "the application has other tasks than when this worker started: restart the worker"
            )
        log.info("children can be made again")

    def close(self) -> None:
        """Let go of one that is being started; called when nothing is heard any more."""
        with self._mutex:
            starting, self._starting = self._starting, None
            self._try_at = None
        if starting is not None:
            starting.end(patience=0)

    def _retry(self, problem: str) -> None:
        pause = self._pause()
        self._failures += 1
        self._problem = f"the application cannot be imported any more: {problem}"
        self._try_at = monotonic() + pause
        log.error("%s\nnext try in %.3g s", self._problem, pause)
        self._stir()

    def _pause(self) -> float:
        return growing(_FIRST_PAUSE, self._failures, _LONGEST_PAUSE)


def _names(tasks: Sequence[KnownTask]) -> set[tuple[str, int]]:
    return {(task.name, task.version) for task in tasks}
