"""What the runtime needs of an application, and no more.

Owns the seam between `Holdfast` and the worker: the two layers below the app do not know
each other, so the app hands over this value. `MODULE:APP` is an app if it can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import timedelta
from typing import Any, Protocol

from holdfast.core.hooks import OF_WORKER, AppHooks
from holdfast.core.options.definition import TaskDefinition
from holdfast.core.options.limit import encode
from holdfast.core.schedules.definition import ScheduleDefinition
from holdfast.core.tracing import Tracing
from holdfast.runtime.wire.messages import KnownSchedule, KnownTask, Manifest
from holdfast.store.callers.home import Home
from holdfast.store.protocol import Store
from holdfast.store.settings import StoreSettings

METHOD = "__holdfast__"
"""The method by which an app hands over its `Application`."""


class AppConfig(Protocol):
    """The app's settings: a dataclass with at least these."""

    @property
    def url(self) -> str: ...

    @property
    def max_payload(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An app, seen from its worker."""

    config: AppConfig
    store_settings: StoreSettings
    tasks: Sequence[TaskDefinition]
    schedules: Sequence[ScheduleDefinition]
    hooks: AppHooks
    tracing: Tracing | None
    """Who watches sends and runs, if somebody does."""
    home: Home
    """Where a connection of the user's has to lead for `complete_in`."""
    borrow: Callable[[Store], None]
    """Makes the app use this store from now on, in this process."""

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as plain data; under `store`, the fields of `StoreSettings`."""
        found = _plain(self.config)
        found["store"] = {k: v for k, v in _plain(self.store_settings).items() if k != "clock"}
        return found


def manifest(application: Application, name: str, threads: int) -> Manifest:
    """What the supervisor is told about an application."""
    everywhere = set(application.hooks.names)
    return Manifest(
        url=application.config.url,
        settings=application.settings,
        tasks=[
            KnownTask(
                name=task.name,
                version=task.version,
                queue=task.queue,
                kind=task.executor,
                max_concurrent=task.max_concurrent,
                task_options=task.task_options,
                hooks=sorted((everywhere - OF_WORKER) | set(task.hooks.names)),
                limits=encode(task.limits),
            )
            for task in application.tasks
        ],
        schedules=[KnownSchedule(**asdict(schedule)) for schedule in application.schedules],
        threads=threads,
        app_name=name,
        hooks=sorted(everywhere & OF_WORKER),
    )


def _plain(settings: Any) -> dict[str, Any]:
    named = {field.name: getattr(settings, field.name) for field in fields(settings) if field.init}
    return {
        name: _plain_dict(value) if is_dataclass(value) else value
        for name, value in named.items()
        if not callable(value)
    }


def _plain_dict(value: Any) -> dict[str, Any]:
    return {
        name: part.total_seconds() if isinstance(part, timedelta) else part
        for name, part in asdict(value).items()
    }
