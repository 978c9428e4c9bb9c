"""The composition root: `Holdfast`, the object a program makes one of.

Owns the putting together, and the names users call; every one of them is a line or two into
the client. Making an app opens nothing: the store is opened by the first use.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import cached_property, partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload
from uuid import UUID

from holdfast.client import one_task
from holdfast.client.access import Access, Using
from holdfast.client.awaited import Awaited
from holdfast.client.config import Config, Settings
from holdfast.client.decorator import TaskDecorator
from holdfast.client.handle import TaskHandle
from holdfast.client.named_task import NamedTask
from holdfast.client.registry import Registry, is_builder
from holdfast.client.schedule_decorator import ScheduleDecorator
from holdfast.client.sending.call import Form, PreparedCall
from holdfast.client.sending.dispatch import Dispatch
from holdfast.client.sending.send_options import PLAIN, CallOptions, SendOptions, choose
from holdfast.client.task import Task
from holdfast.client.wait import TASKS, aended, ended
from holdfast.client.workflow import (
    PreparedWorkflow,
    astart_prepared,
    start_prepared,
    workflow_handle,
)
from holdfast.client.workflow_decorator import WorkflowDecorator
from holdfast.client.workflow_function import WorkflowFunction, workflow_named
from holdfast.client.workflow_handle import WORKFLOWS, WorkflowHandle
from holdfast.client.workflow_verbs import one as one_workflow
from holdfast.core.errors import ConfigError, HoldfastError
from holdfast.core.hooks import AppHooks
from holdfast.core.identity import sought
from holdfast.core.records import TaskRecord
from holdfast.core.status import TaskStatus, WorkflowStatus
from holdfast.core.tracing import Tracing
from holdfast.core.workflows.inputs import is_map
from holdfast.core.workflows.records import WorkflowRecord
from holdfast.store.verbs.inspect import Ending

if TYPE_CHECKING:
    from holdfast.client.control import Control
    from holdfast.runtime.application import Application
    from holdfast.runtime.options import WorkerSettings
    from holdfast.runtime.worker import Worker

__all__ = ["Holdfast", "NamedTasks"]

H = TypeVar("H", bound="TaskHandle[Any] | WorkflowHandle[Any]")

_MOST_CALLERS = 20


class NamedTasks:
    """Sends tasks by name, with some options: what `app.options(…)` returns."""

    def __init__(self, dispatch: Dispatch, choice: SendOptions, version: int | None) -> None:
        self._dispatch = dispatch
        self._choice = choice
        self._version = version

    def send(self, name: str, /, *args: Any, **kwargs: Any) -> TaskHandle[Any]:
        """Send a call of the task of this name; its code need not be here."""
        return self._dispatch.send(self._form(name), args, kwargs)

    async def asend(self, name: str, /, *args: Any, **kwargs: Any) -> TaskHandle[Any]:
        """Send a call of the task of this name; its code need not be here."""
        return await self._dispatch.asend(self._form(name), args, kwargs)

    def _form(self, name: str) -> Form:
        return self._dispatch.form_of(name, self._version, self._choice)


class Holdfast:
    """An app: its tasks, and the database they are kept in.

    app = Holdfast()                                  # HOLDFAST_URL, else sqlite:///holdfast.db
    app = Holdfast("postgresql://localhost/mydb", schema="queue")
    """

    def __init__(self, url: str | None = None, **settings: Unpack[Settings]) -> None:
        self._made_in = _modules_of_callers()
        self._access = Access(Config.load(url, settings))
        self._registry = Registry()
        self._dispatch = Dispatch(self._access, self._registry)
        self._by_name = NamedTasks(self._dispatch, PLAIN, None)
        self.task = TaskDecorator(self._dispatch, self.config.default_timeout)
        """The decorator that makes a task of a function."""
        self.workflow = WorkflowDecorator(self._dispatch, self.config.default_timeout)
        """The decorator that makes a workflow of a function that builds one."""
        self.schedule = ScheduleDecorator()
        """Declares a schedule of a task, a workflow, or a call of one."""
        self.hooks = AppHooks()
        """Functions to be called around every task, and by workers: `@app.hooks.on_failure`."""

    @property
    def config(self) -> Config:
        """Every setting, as it was given, set in the environment, or by default."""
        return self._access.config

    @cached_property
    def control(self) -> Control:
        """What an operator does: `control.tasks`, `control.queues`."""
        from holdfast.client.control import Control

        return Control(self._access)

    @property
    def tasks(self) -> Registry:
        """The tasks that were defined on this app."""
        return self._registry

    def options(self, *, version: int | None = None, **options: Unpack[CallOptions]) -> NamedTasks:
        """Options for sends by name: `app.options(queue="fast").send("resize", "a.png")`."""
        return NamedTasks(self._dispatch, choose(PLAIN, **options), version)

    def send(self, name: str, /, *args: Any, **kwargs: Any) -> TaskHandle[Any]:
        """Send a task by its name, without having its code."""
        return self._by_name.send(name, *args, **kwargs)

    async def asend(self, name: str, /, *args: Any, **kwargs: Any) -> TaskHandle[Any]:
        """Send a task by its name, without having its code."""
        return await self._by_name.asend(name, *args, **kwargs)

    def named(self, name: str, *, version: int = 1) -> Task[..., Any]:
        """A task by its name, for steps and calls, without having its code."""
        known = self._registry.find(name, version)
        if known is not None:
            return Task(known, self._dispatch)
        return NamedTask(name, version, self._dispatch)

    def named_workflow(
        self, name: str, *, version: int | None = None
    ) -> WorkflowFunction[..., Any]:
        """A workflow of this app by its name; `UnknownTask` if its code is not here.

        `app.named_workflow("nightly").send_plain(["2026-11-15"], {})` starts it with arguments as
        JSON has them.
        """
        return workflow_named(self._dispatch, name, version)

    def resend(self, error: HoldfastError) -> TaskHandle[Any]:
        """Make a send that failed again, under the same id: one task, however often."""
        return self._dispatch.resend(_call_of(error))

    async def aresend(self, error: HoldfastError) -> TaskHandle[Any]:
        """Make a send that failed again, under the same id: one task, however often."""
        return await self._dispatch.aresend(_call_of(error))

    def resend_workflow(self, error: HoldfastError) -> WorkflowHandle[Any]:
        """Make a send of a workflow that failed again, under the same id: one, however often."""
        return start_prepared(self._dispatch, _workflow_of(error))

    async def aresend_workflow(self, error: HoldfastError) -> WorkflowHandle[Any]:
        """Make a send of a workflow that failed again, under the same id: one, however often."""
        return await astart_prepared(self._dispatch, _workflow_of(error))

    def resend_many(self, error: HoldfastError) -> list[TaskHandle[Any]]:
        """Make a `send_many` that failed again, under the same ids."""
        return self._dispatch.send_all(_calls_of(error), repeated=True)

    async def aresend_many(self, error: HoldfastError) -> list[TaskHandle[Any]]:
        """Make a `send_many` that failed again, under the same ids."""
        return await self._dispatch.asend_all(_calls_of(error), repeated=True)

    def trace_with(self, tracing: Tracing | None) -> None:
        """Have this watch every send of this process, and every run of workers that import the app.

        `holdfast.contrib.otel.instrument(app)` gives one for OpenTelemetry.
        """
        self._dispatch.tracing = tracing

    def using(self, connection: Any) -> Using:
        """Work inside the transaction of your own connection, for the length of a block.

        Takes connections of sqlite3, apsw, aiosqlite and psycopg (sync and async), sessions and
        connections of SQLAlchemy (sync and async), and Django's. You commit.
        """
        return self._access.using(connection)

    def handle(self, task_id: UUID | str) -> TaskHandle[Any]:
        """The handle of a task, by its id; `TaskNotFound` if there is none."""
        raw = sought(task_id)
        return self._handle(self._access.run(lambda: one_task.show(raw)))

    async def ahandle(self, task_id: UUID | str) -> TaskHandle[Any]:
        """The handle of a task, by its id; `TaskNotFound` if there is none."""
        raw = sought(task_id)
        return self._handle(await self._access.arun(lambda: one_task.show(raw)))

    def workflow_handle(self, workflow_id: UUID | str) -> WorkflowHandle[Any]:
        """The handle of a workflow, by its id; `TaskNotFound` if there is none."""
        raw = sought(workflow_id, "workflow")
        return self._workflow(self._access.run(partial(one_workflow, raw)))

    async def aworkflow_handle(self, workflow_id: UUID | str) -> WorkflowHandle[Any]:
        """The handle of a workflow, by its id; `TaskNotFound` if there is none."""
        raw = sought(workflow_id, "workflow")
        found = await self._access.arun(partial(one_workflow, raw))
        return self._workflow(found)

    def _workflow(self, record: WorkflowRecord) -> WorkflowHandle[Any]:
        known = self._registry.find(record.name, record.version)
        builds = known is not None and is_builder(known)
        decode = known.signature.decode_result if known is not None and builds else None
        return workflow_handle(self._dispatch, record.id, created=False, decode=decode)

    @overload
    def wait(
        self, handles: Iterable[TaskHandle[Any]], timeout: float | None = None
    ) -> list[TaskStatus]: ...
    @overload
    def wait(
        self, handles: Iterable[WorkflowHandle[Any]], timeout: float | None = None
    ) -> list[WorkflowStatus]: ...
    def wait(self, handles: Iterable[Any], timeout: float | None = None) -> list[Any]:
        """Sleep until all these tasks, or workflows, have ended; how each did, in their order."""
        wanted = list(handles)
        kind = _kind_of(wanted)
        found = dict(ended(self._access, {*map(_raw, wanted)}, timeout, kind))
        return [_status(found[_raw(handle)]) for handle in wanted]

    @overload
    async def await_(
        self, handles: Iterable[TaskHandle[Any]], timeout: float | None = None
    ) -> list[TaskStatus]: ...
    @overload
    async def await_(
        self, handles: Iterable[WorkflowHandle[Any]], timeout: float | None = None
    ) -> list[WorkflowStatus]: ...
    async def await_(self, handles: Iterable[Any], timeout: float | None = None) -> list[Any]:
        """Sleep until all these tasks, or workflows, have ended; how each did, in their order."""
        wanted = list(handles)
        news = aended(self._access, {*map(_raw, wanted)}, timeout, _kind_of(wanted))
        found = {id: ending async for id, ending in news}
        return [_status(found[_raw(handle)]) for handle in wanted]

    def as_completed(self, handles: Iterable[H], timeout: float | None = None) -> Iterator[H]:
        """These handles of tasks, or of workflows, each when that has ended, in whatever state."""
        by_id = {_raw(handle): handle for handle in handles}
        kind = _kind_of(by_id.values())
        for id, _ in ended(self._access, by_id.keys(), timeout, kind):
            yield by_id[id]

    async def aas_completed(
        self, handles: Iterable[H], timeout: float | None = None
    ) -> AsyncIterator[H]:
        """These handles of tasks, or of workflows, each when that has ended, in whatever state."""
        by_id = {_raw(handle): handle for handle in handles}
        kind = _kind_of(by_id.values())
        async for id, _ in aended(self._access, by_id.keys(), timeout, kind):
            yield by_id[id]

    def close(self) -> None:
        """Let what is under way end, and close the database. Closing twice is no error."""
        self._access.close()

    async def aclose(self) -> None:
        """Let what is under way end, and close the database. Closing twice is no error."""
        import asyncio

        await asyncio.to_thread(self._access.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<Holdfast {self.config.store.masked}>"

    def worker(self, *, target: str | None = None, **settings: Unpack[WorkerSettings]) -> Worker:
        """A worker for this app: `run()`, `start()` and `stop()`, or `run_until_idle()`.

        Its settings are those of `holdfast worker`: `concurrency`, `queues`, `grace`, … `target`
        is MODULE:APP, for an app that is not found by itself.
        """
        from holdfast import __version__
        from holdfast.runtime.worker import Worker

        return Worker(
            self,
            self.__holdfast__(),
            self._access.store,
            version=__version__,
            target=target,
            made_in=self._made_in,
            settings=settings,
        )

    def __holdfast__(self) -> Application:
        """What a worker needs to know of this app."""
        from holdfast.runtime.application import Application

        return Application(
            config=self.config,
            store_settings=self.config.store,
            tasks=list(self._registry),
            schedules=self.schedule.definitions(),
            hooks=self.hooks,
            tracing=self._dispatch.tracing,
            home=self._access,
            borrow=self._access.borrow,
        )

    def _handle(self, record: TaskRecord) -> TaskHandle[Any]:
        id, of_map = UUID(bytes=record.id), is_map(record.inputs)
        return self._dispatch.handle(id, record.task_name, record.version, of_map=of_map)


def _modules_of_callers() -> list[str]:
    """The modules of the code that is running, innermost first: one of them will keep the app."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and len(found) < _MOST_CALLERS:
        name = frame.f_globals.get("__name__")
        if isinstance(name, str) and name not in found:
            found.append(name)
        if frame.f_code.co_name == "<module>":
            break
        frame = frame.f_back
    return found


def _raw(handle: TaskHandle[Any] | WorkflowHandle[Any]) -> bytes:
    return handle.id.bytes


def _kind_of(handles: Iterable[object]) -> Awaited[Any]:
    kinds = {WORKFLOWS if isinstance(handle, WorkflowHandle) else TASKS for handle in handles}
    if len(kinds) > 1:
        raise ConfigError("tasks and workflows are not waited for at once: do one after the other")
    return kinds.pop() if kinds else TASKS


def _status(ending: Ending | WorkflowStatus) -> TaskStatus | WorkflowStatus:
    return ending.status if isinstance(ending, Ending) else ending


def _call_of(error: HoldfastError) -> PreparedCall:
    if isinstance(error.call, PreparedCall):
        return error.call
    if isinstance(error.call, PreparedWorkflow):
        raise ConfigError("this error comes from the send of a workflow: use resend_workflow")
    if error.call is not None:
        raise ConfigError("this error comes from send_many: use resend_many")
    raise ConfigError(f"{type(error).__name__} does not come from a send, so nothing can be resent")


def _workflow_of(error: HoldfastError) -> PreparedWorkflow:
    if isinstance(error.call, PreparedWorkflow):
        return error.call
    raise ConfigError(f"{type(error).__name__} does not come from the send of a workflow")


def _calls_of(error: HoldfastError) -> tuple[PreparedCall, ...]:
    if isinstance(error.call, tuple) and not isinstance(error.call, PreparedCall):
        return error.call
    raise ConfigError(f"{type(error).__name__} does not come from send_many: use resend")
