"""A worker's watcher: found by its name, and kept from doing harm.

Owns the import of it (`--watcher MODULE:FUNCTION`), which is the only code of a user's that the
worker's own process runs, and the rule that whatever it raises is logged once and dropped.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterable
from time import time_ns

from holdfast.core.errors import ConfigError
from holdfast.core.records import ClaimedTask
from holdfast.core.text import one_line
from holdfast.core.watching import ClaimFacts, EndedFacts, Handled, WorkerWatcher

log = logging.getLogger("holdfast.worker")

_EXAMPLE = "for example holdfast.contrib.otel_worker:watch"
_MOST_COMPLAINTS = 20


class WorkerWatch:
    """What the duties of a worker tell, if somebody listens."""

    def __init__(self, watcher: WorkerWatcher | None = None) -> None:
        self._watcher = watcher
        self._complained: set[str] = set()

    def begin(self) -> int:
        """A claim or a write begins: give this back when it is over. 0: nobody watches."""
        return 0 if self._watcher is None else time_ns()

    def claimed(
        self, queue: str, began: int, tasks: Callable[[], Iterable[Handled]], error: str | None
    ) -> None:
        """A claim was answered, or failed."""
        watcher = self._watcher
        if watcher is not None and began:
            took = max(0, time_ns() - began)
            self._tell(lambda: watcher.claimed(ClaimFacts(queue, began, took, [*tasks()], error)))

    def ended(self, began: int, tasks: Callable[[], Iterable[Handled]], error: str | None) -> None:
        """Ends were written, or could not be."""
        watcher = self._watcher
        if watcher is not None and began:
            took = max(0, time_ns() - began)
            self._tell(lambda: watcher.ended(EndedFacts(began, took, [*tasks()], error)))

    def _tell(self, told: Callable[[], None]) -> None:
        try:
            told()
        except Exception as error:  # noqa: BLE001 - a watcher must not harm what it watches
            what = one_line(f"{type(error).__name__}: {error}", 300)
            if what not in self._complained and len(self._complained) < _MOST_COMPLAINTS:
                self._complained.add(what)
                log.warning("the worker's watcher failed, and the worker goes on: %s", what)


def handled(task: ClaimedTask) -> Handled:
    """What is told of a task."""
    return Handled(task.id, task.task_name, task.queue_name, task.trace_context)


def load_watch(name: str | None) -> WorkerWatch:
    """The watcher that MODULE:FUNCTION makes; one that tells nobody, for None."""
    if name is None:
        return WorkerWatch()
    if not isinstance(name, str):
        raise _unusable(name, f"give MODULE:FUNCTION as text, {_EXAMPLE}")
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name.isidentifier():
        raise _unusable(name, f"give MODULE:FUNCTION, {_EXAMPLE}")
    place = os.getcwd()  # noqa: PTH109 - sys.path holds strings
    if place not in sys.path:
        sys.path.insert(0, place)
    try:
        function = getattr(importlib.import_module(module_name), function_name)
        watcher = function()
    except ConfigError:
        raise
    except Exception as error:
        raise _unusable(name, f"{type(error).__name__}: {error}") from error
    if not all(callable(getattr(watcher, verb, None)) for verb in ("claimed", "ended")):
        raise _unusable(
            name,
            f"{function_name}() gave {type(watcher).__name__}, which has no claimed() and ended(): "
            "return what holdfast.contrib.otel_worker.watch() gives",
        )
    return WorkerWatch(watcher)


def _unusable(name: object, why: str) -> ConfigError:
    return ConfigError(f"watcher={name!r:.200} is not usable: {why}", option="watcher")
