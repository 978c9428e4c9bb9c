"""One program with its database: the client's side here, workers in processes of their own.

A program is a module of `tests/e2e/programs` or `tests/faults/programs`, written as a user
writes one: `app = Holdfast()`, which takes its database from HOLDFAST_URL. Here it is loaded
afresh for each site, so that every site has an app on a database of its own.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, Unpack
from unittest import mock

from holdfast import Attempt, Holdfast, TaskHandle, TaskStatus
from holdfast.client.sending.send_options import CallOptions
from holdfast.store.op import Op
from holdfast.store.open import open_store
from holdfast.store.verbs.evidence import read_log
from tests.support.deadline import until
from tests.support.ledger import Ledger
from tests.support.worker import REPOSITORY, WorkerProcess

Engine = Literal["sqlite", "postgresql"]
T = TypeVar("T")

_numbers = count(1)


class Site:
    """Where one program runs."""

    def __init__(self, program: str, url: str, directory: Path) -> None:
        self.program = program
        self.url = url
        self.directory = directory
        self.ledger = Ledger(directory)
        self.module = self._load()
        """The program itself, for what cannot be sent by name: `site.module.mark.send_many`."""
        self.app: Holdfast = self.module.app
        self._undo = ExitStack()
        self._undo.callback(self.app.close)

    # --- workers ---------------------------------------------------------------------------

    def worker(self, *arguments: str, **environment: str) -> WorkerProcess:
        """A worker, which is killed when the site is closed."""
        return self._undo.enter_context(
            WorkerProcess(
                self.directory,
                f"{self.program}:app",
                *arguments,
                environment=self.environment | environment,
            )
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOLDFAST_URL": self.url,
            "PYTHONPATH": str(REPOSITORY),
            **self.ledger.environment,
        }

    # --- tasks -----------------------------------------------------------------------------

    def send(self, name: str, *args: Any, **kwargs: Any) -> TaskHandle[Any]:
        return self.app.send(name, *args, **kwargs)

    def options(self, **options: Unpack[CallOptions]) -> Any:
        return self.app.options(**options)

    def run(self, op: Callable[[], Op[T]]) -> T:
        """Ask the store something that the client has no word for."""
        with ExitStack() as undo:
            store = open_store(self.app.config.store)
            undo.callback(store.close)
            return store.attempt(op)

    def printed(self, handle: TaskHandle[Any], attempt: int | None = None) -> bytes:
        """What a task printed."""
        data, after = b"", (0, -1)
        while True:
            found = self.run(partial(read_log, handle.id.bytes, attempt=attempt, after=after))
            if not found:
                return data
            data += b"".join(part.data for part in found)
            after = (found[-1].attempt, found[-1].part)

    def begun(self, *names: object, within: float = 20.0) -> None:
        """Wait until the code that notes these names has begun."""
        wanted = set(map(str, names))
        until(
            lambda: wanted <= {line.key for line in self.ledger.lines("begun")},
            within=within,
            what=f"{wanted} to begin",
        )

    def close(self) -> None:
        self._undo.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _load(self) -> Any:
        name = f"{self.program}_{next(_numbers)}"
        path = REPOSITORY / f"{self.program.replace('.', '/')}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        with mock.patch.dict(os.environ, self.environment):
            sys.modules[name] = module
            spec.loader.exec_module(module)
        return module


def ended(handle: TaskHandle[Any], within: float = 20.0) -> TaskStatus:
    """Wait for the end of a task; how it ended."""
    return handle.wait(within)


def only_attempt(handle: TaskHandle[Any]) -> Attempt:
    """The one attempt that a task had."""
    (attempt,) = handle.attempts()
    return attempt
