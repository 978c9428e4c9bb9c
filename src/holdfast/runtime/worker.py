"""`app.worker(...)`: a worker made from Python instead of the command line.

Owns the three ways to run one: `run` blocks like the command does, `start` and `stop` keep one
beside a web application, `run_until_idle` runs tasks in this very process, for tests.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from holdfast.core.errors import ConfigError
from holdfast.runtime import process_role
from holdfast.runtime.application import Application
from holdfast.runtime.options import WorkerOptions, WorkerSettings
from holdfast.runtime.signals import signals_to
from holdfast.store.protocol import Store

if TYPE_CHECKING:
    from holdfast.runtime.supervisor.supervisor import Supervisor


class Worker:
    """One worker for one app."""

    def __init__(
        self,
        app: object,
        application: Application,
        store: Callable[[], Store],
        *,
        version: str,
        target: str | None,
        made_in: Sequence[str],
        settings: WorkerSettings,
    ) -> None:
        # Checked here, where they were written, rather than when the worker starts.
        self._queues = WorkerOptions.load(settings, application.settings, os.environ).queues
        if target is not None and not isinstance(target, str):
            raise ConfigError(
                f'target={target!r} is not usable: give text such as "shop.tasks:app"',
                option="target",
            )
        self._app = app
        self._application = application
        self._store = store
        self._version = version
        self._target = target
        self._made_in = made_in
        self._settings = settings
        self._supervisor: Supervisor | None = None
        self._thread: threading.Thread | None = None

    def run(self) -> int:
        """Work until a signal to stop, or until `stop`; the exit code."""
        supervisor = self._launch()
        with signals_to(supervisor):
            return supervisor.run()

    def start(self) -> None:
        """Work beside what this process does; returns when the worker is at work."""
        if self._thread is not None:
            raise ConfigError("this worker has been started before: make another one")
        ready = threading.Event()
        problems: list[BaseException] = []

        def work() -> None:
            # Launched here, because the kernel ends the template with the thread that made it,
            # and the caller's may be a passing one.
            try:
                self._launch(ready.set).run()
            except BaseException as error:  # noqa: BLE001 - it is the caller's to see
                problems.append(error)
            finally:
                ready.set()

        self._thread = threading.Thread(target=work, name="holdfast-worker", daemon=True)
        self._thread.start()
        ready.wait()
        if problems:
            self._thread = None
            raise problems[0]

    def stop(self, timeout: float | None = None) -> None:
        """Ask the worker to stop, and wait until it has, its processes included."""
        if self._supervisor is not None:
            self._supervisor.stop()
        if self._thread is not None:
            self._thread.join(timeout)

    def run_until_idle(self) -> int:
        """Run what is ready in this process and thread; how many runs there were."""
        from holdfast.runtime.inline import Inline

        process_role.refuse_inline()
        names = [choice.name for choice in self._queues]
        return Inline(self._application, self._store()).run_until_idle(names)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _launch(self, ready: Any = lambda: None) -> Supervisor:
        from holdfast.runtime.launch import launch

        target = self._target or find_target(self._app, self._made_in)
        self._supervisor = launch(
            target,
            self._settings,
            version=self._version,
            ready=ready,
            # A relative entry means the directory of now.
            path=[str(Path(entry).absolute()) for entry in sys.path],
        )
        return self._supervisor


def find_target(app: object, made_in: Sequence[str] = ()) -> str:
    """MODULE:APP of an app: where a child can import it from.

    The module that made it comes first: others may only have imported it, and do things when they
    are imported that are no business of a worker. The program itself comes last.
    """
    names = [name for name in made_in if name not in _PROGRAM]
    names += [name for name in list(sys.modules) if name not in _PROGRAM]
    for name in (*dict.fromkeys(names), *_PROGRAM):
        module = sys.modules.get(name)
        for key, value in list(getattr(module, "__dict__", {}).items()):
            if value is app:
                importable = name if name not in _PROGRAM else _name_of_program(module)
                if importable is not None:
                    return f"{importable}:{key}"
    raise ConfigError(
        "the worker cannot import this app: keep it in a variable of a module, or give "
        'target="module:name"'
    )


_PROGRAM = ("__main__", "__mp_main__")
"""What the running program is called, instead of its module's name."""


def _name_of_program(module: object) -> str | None:
    """The name by which the running program can be imported, if there is one."""
    spec = getattr(module, "__spec__", None)
    if spec is not None:
        return str(spec.name) if spec.name not in _PROGRAM else None
    file = getattr(module, "__file__", None)
    stem = Path(str(file)).stem
    return stem if file and "." not in stem and stem not in _PROGRAM else None
