"""`app.control.workflows`: which workflows there are, where they stand, and what is done to them.

Owns nothing but the arguments. Verbs take one workflow and raise if it cannot be done; `…_all`
take a filter and answer for each. What is done is recorded (`app.control.audit`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack
from uuid import UUID

from holdfast.client import find as finding
from holdfast.client import workflow_verbs
from holdfast.client.access import Access
from holdfast.client.workflow_handle import WorkflowHandle
from holdfast.client.workflow_info import StepInfo, WorkflowInfo
from holdfast.client.workflow_questions import WorkflowWhy, chart_of, explain, graph, step_infos
from holdfast.client.workflow_verbs import Program, aperform, one, perform
from holdfast.core.errors import (
    ConfigError,
    IllegalTransition,
    TaskNotFound,
    UniqueConflict,
    UnreadableRow,
)
from holdfast.core.identity import as_bytes, sought
from holdfast.core.moment import optional_us
from holdfast.core.options import checks
from holdfast.core.status import WorkflowStatus
from holdfast.core.workflows.records import WorkflowFilter
from holdfast.store.op import Op
from holdfast.store.verbs import workflows
from holdfast.store.verbs.workflows import FoundWorkflows

__all__ = ["WorkflowControl", "WorkflowFilters", "WorkflowId", "WorkflowPage", "WorkflowReport"]

WorkflowId: TypeAlias = "UUID | str | WorkflowHandle[Any]"

_MOST: Final = 1000


class WorkflowFilters(TypedDict, total=False):
    """Which workflows a list shows."""

    status: WorkflowStatus | str | Iterable[WorkflowStatus | str]
    name: str
    tag: str
    submitted_from: datetime
    submitted_until: datetime
    parts: bool
    """Also those that are parts of others; default False."""


@dataclass(frozen=True, slots=True)
class WorkflowPage:
    """Some workflows, the newest first."""

    workflows: Sequence[WorkflowInfo]
    next: UUID | None
    """Give this as `before` for the next page; None: there is none."""
    unreadable: Sequence[UnreadableRow] = ()
    """Rows of this page that cannot be read: written by hand, by other code, or damaged."""


@dataclass(frozen=True, slots=True)
class WorkflowReport:
    """A workflow with all its steps, as they were when they were read."""

    info: WorkflowInfo
    steps: Sequence[StepInfo]
    """In the order in which they were built; those that were added behind them."""
    unreadable: Sequence[UnreadableRow] = ()


class WorkflowControl:
    """`app.control.workflows`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def list(
        self, *, before: UUID | str | None = None, limit: int = 50, **where: Unpack[WorkflowFilters]
    ) -> WorkflowPage:
        """One page of the workflows that fit, the newest first."""
        return _page(self._access.run(_listing(before, limit, where)))

    async def alist(
        self, *, before: UUID | str | None = None, limit: int = 50, **where: Unpack[WorkflowFilters]
    ) -> WorkflowPage:
        """One page of the workflows that fit, the newest first."""
        return _page(await self._access.arun(_listing(before, limit, where)))

    def count(self) -> Mapping[WorkflowStatus, int]:
        """How many of the newest 10,000 workflows are in each status; parts are not counted."""
        return self._access.run(workflows.count)

    async def acount(self) -> Mapping[WorkflowStatus, int]:
        """How many of the newest 10,000 workflows are in each status; parts are not counted."""
        return await self._access.arun(workflows.count)

    def find(self, text: str, *, limit: int = 10) -> Sequence[UUID]:
        """The workflows somebody may mean by a whole id, a short one, or digits of one."""
        found = self._access.run(partial(finding.find_workflows, text, limit))
        return [UUID(bytes=raw) for raw in found]

    async def afind(self, text: str, *, limit: int = 10) -> Sequence[UUID]:
        """The workflows somebody may mean by a whole id, a short one, or digits of one."""
        found = await self._access.arun(partial(finding.find_workflows, text, limit))
        return [UUID(bytes=raw) for raw in found]

    def get(self, workflow_id: WorkflowId) -> WorkflowInfo:
        """Everything that is stored about a workflow, but its steps; or `TaskNotFound`."""
        return WorkflowInfo.of(self._access.run(partial(one, _raw(workflow_id))))

    async def aget(self, workflow_id: WorkflowId) -> WorkflowInfo:
        """Everything that is stored about a workflow, but its steps; or `TaskNotFound`."""
        return WorkflowInfo.of(await self._access.arun(partial(one, _raw(workflow_id))))

    def show(self, workflow_id: WorkflowId, *, parts: bool = False) -> WorkflowReport:
        """A workflow with all its steps, and what each waits for; or `TaskNotFound`.

        `parts`: the steps of its first hundred parts, too.
        """
        found = self._access.run(partial(graph, _raw(workflow_id), parts=parts))
        return WorkflowReport(WorkflowInfo.of(found.whole), step_infos(found), found.unreadable)

    async def ashow(self, workflow_id: WorkflowId, *, parts: bool = False) -> WorkflowReport:
        """A workflow with all its steps, and what each waits for; or `TaskNotFound`."""
        found = await self._access.arun(partial(graph, _raw(workflow_id), parts=parts))
        return WorkflowReport(WorkflowInfo.of(found.whole), step_infos(found), found.unreadable)

    def why(self, workflow_id: WorkflowId) -> WorkflowWhy:
        """What a workflow waits for, or how it ended, in sentences."""
        return self._access.run(partial(explain, _raw(workflow_id)))

    async def awhy(self, workflow_id: WorkflowId) -> WorkflowWhy:
        """What a workflow waits for, or how it ended, in sentences."""
        return await self._access.arun(partial(explain, _raw(workflow_id)))

    def to_mermaid(self, workflow_id: WorkflowId) -> str:
        """The graph with the state of each step, as the text of a Mermaid flowchart."""
        return self._access.run(partial(chart_of, _raw(workflow_id)))

    async def ato_mermaid(self, workflow_id: WorkflowId) -> str:
        """The graph with the state of each step, as the text of a Mermaid flowchart."""
        return await self._access.arun(partial(chart_of, _raw(workflow_id)))

    def cancel(self, workflow_id: WorkflowId, *, cleanup: bool = True) -> WorkflowStatus:
        """Cancel what has not ended, running steps included; the status it has then.

        Steps that wait for an end (`.ended`, `wf.ended`) still run, unless `cleanup` is False.
        """
        return perform(self._access, workflow_verbs.cancel(_raw(workflow_id), cleanup=cleanup))

    async def acancel(self, workflow_id: WorkflowId, *, cleanup: bool = True) -> WorkflowStatus:
        """Cancel what has not ended, running steps included; the status it has then."""
        return await aperform(
            self._access, workflow_verbs.cancel(_raw(workflow_id), cleanup=cleanup)
        )

    def pause(self, workflow_id: WorkflowId, *, by: str | None = None) -> WorkflowStatus:
        """Hold what has not begun, until `resume`; what runs goes on."""
        return perform(self._access, workflow_verbs.pause(_raw(workflow_id), by=by))

    async def apause(self, workflow_id: WorkflowId, *, by: str | None = None) -> WorkflowStatus:
        """Hold what has not begun, until `resume`; what runs goes on."""
        return await aperform(self._access, workflow_verbs.pause(_raw(workflow_id), by=by))

    def resume(self, workflow_id: WorkflowId) -> WorkflowStatus:
        """Undo a pause; a failure that had caused it is accepted."""
        return perform(self._access, workflow_verbs.resume(_raw(workflow_id)))

    async def aresume(self, workflow_id: WorkflowId) -> WorkflowStatus:
        """Undo a pause; a failure that had caused it is accepted."""
        return await aperform(self._access, workflow_verbs.resume(_raw(workflow_id)))

    def resubmit(self, workflow_id: WorkflowId, *, fresh: bool = False) -> WorkflowStatus:
        """Run every step again that ended badly, and what was skipped below it.

        Steps that have completed stay as they are, handlers among them. `fresh` drops checkpoints.
        """
        return perform(self._access, workflow_verbs.resubmit(_raw(workflow_id), fresh=fresh))

    async def aresubmit(self, workflow_id: WorkflowId, *, fresh: bool = False) -> WorkflowStatus:
        """Run every step again that ended badly, and what was skipped below it."""
        return await aperform(self._access, workflow_verbs.resubmit(_raw(workflow_id), fresh=fresh))

    def delete(self, workflow_id: WorkflowId) -> bool:
        """Remove a workflow that has ended, with its steps and parts; False if there is none."""
        return perform(self._access, workflow_verbs.delete(_raw(workflow_id)))

    async def adelete(self, workflow_id: WorkflowId) -> bool:
        """Remove a workflow that has ended, with its steps and parts; False if there is none."""
        return await aperform(self._access, workflow_verbs.delete(_raw(workflow_id)))

    def cancel_all(
        self, *, cleanup: bool = True, **where: Unpack[WorkflowFilters]
    ) -> dict[UUID, WorkflowStatus | None]:
        """Cancel the workflows that fit and have not ended; the status of each then."""
        return perform(
            self._access, _each(where, _LIVE, partial(workflow_verbs.cancel, cleanup=cleanup))
        )

    async def acancel_all(
        self, *, cleanup: bool = True, **where: Unpack[WorkflowFilters]
    ) -> dict[UUID, WorkflowStatus | None]:
        """Cancel the workflows that fit and have not ended; the status of each then."""
        return await aperform(
            self._access, _each(where, _LIVE, partial(workflow_verbs.cancel, cleanup=cleanup))
        )

    def resubmit_all(
        self, *, fresh: bool = False, **where: Unpack[WorkflowFilters]
    ) -> dict[UUID, WorkflowStatus | None]:
        """Resubmit the workflows that fit and ended badly; the status of each, None if refused."""
        return perform(
            self._access, _each(where, _BAD, partial(workflow_verbs.resubmit, fresh=fresh))
        )

    async def aresubmit_all(
        self, *, fresh: bool = False, **where: Unpack[WorkflowFilters]
    ) -> dict[UUID, WorkflowStatus | None]:
        """Resubmit the workflows that fit and ended badly; the status of each, None if refused."""
        return await aperform(
            self._access, _each(where, _BAD, partial(workflow_verbs.resubmit, fresh=fresh))
        )

    def pause_all(self, **where: Unpack[WorkflowFilters]) -> dict[UUID, WorkflowStatus | None]:
        """Pause the workflows that fit and run; the status of each, None if refused."""
        return perform(self._access, _each(where, (WorkflowStatus.RUNNING,), workflow_verbs.pause))

    async def apause_all(
        self, **where: Unpack[WorkflowFilters]
    ) -> dict[UUID, WorkflowStatus | None]:
        """Pause the workflows that fit and run; the status of each, None if refused."""
        return await aperform(
            self._access, _each(where, (WorkflowStatus.RUNNING,), workflow_verbs.pause)
        )

    def resume_all(self, **where: Unpack[WorkflowFilters]) -> dict[UUID, WorkflowStatus | None]:
        """Resume the workflows that fit and are paused; the status of each, None if refused."""
        return perform(self._access, _each(where, (WorkflowStatus.PAUSED,), workflow_verbs.resume))

    async def aresume_all(
        self, **where: Unpack[WorkflowFilters]
    ) -> dict[UUID, WorkflowStatus | None]:
        """Resume the workflows that fit and are paused; the status of each, None if refused."""
        return await aperform(
            self._access, _each(where, (WorkflowStatus.PAUSED,), workflow_verbs.resume)
        )


_LIVE: Final = (WorkflowStatus.RUNNING, WorkflowStatus.PAUSED)
_BAD: Final = (WorkflowStatus.FAILED, WorkflowStatus.CANCELLED)


def _raw(given: WorkflowId) -> bytes:
    if isinstance(given, WorkflowHandle):
        return given.id.bytes
    return sought(given, "workflow")


def _listing(
    before: UUID | str | None, limit: int, where: WorkflowFilters
) -> Callable[[], Op[FoundWorkflows]]:
    wanted = _wanted(where)
    start = None if before is None else as_bytes(before)
    size = min(checks.at_least(1, limit, "limit"), _MOST)
    return partial(workflows.find, wanted, before=start, limit=size)


def _wanted(where: WorkflowFilters) -> WorkflowFilter:
    unknown = where.keys() - WorkflowFilters.__annotations__.keys()
    if unknown:
        names = ", ".join(sorted(WorkflowFilters.__annotations__))
        raise ConfigError(f"workflows cannot be listed by {min(unknown)!r}: use {names}")
    return WorkflowFilter(
        status=_statuses(where.get("status", ())),
        name=_text(where, "name"),
        tag=_text(where, "tag"),
        created_from=optional_us(where.get("submitted_from"), option="submitted_from"),
        created_until=optional_us(where.get("submitted_until"), option="submitted_until"),
        parts=checks.flag(where.get("parts", False), "parts"),
    )


def _text(where: WorkflowFilters, option: Literal["name", "tag"]) -> str | None:
    given = where.get(option)
    return None if given is None else checks.stored_text(given, option)


def _statuses(
    given: WorkflowStatus | str | Iterable[WorkflowStatus | str],
) -> frozenset[WorkflowStatus]:
    names = [given] if isinstance(given, str) else given
    try:
        return frozenset(WorkflowStatus(name) for name in names)
    except ValueError as error:
        known = ", ".join(WorkflowStatus)
        raise ConfigError(f"{error}: there are {known}", option="status") from None


def _page(found: FoundWorkflows) -> WorkflowPage:
    start = None if found.next is None else UUID(bytes=found.next)
    return WorkflowPage([*map(WorkflowInfo.of, found.workflows)], start, found.unreadable)


def _each(
    where: WorkflowFilters,
    statuses: Iterable[WorkflowStatus],
    verb: Callable[[bytes], Program[WorkflowStatus]],
) -> Program[dict[UUID, WorkflowStatus | None]]:
    """Apply a verb to the workflows that fit, of which those in other statuses are passed over."""
    wanted = _wanted(where)
    able = frozenset(statuses)
    wanted = WorkflowFilter(
        wanted.status & able if wanted.status else able,
        wanted.name,
        wanted.tag,
        wanted.created_from,
        wanted.created_until,
        wanted.parts,
    )
    ids: list[bytes] = []
    page = FoundWorkflows([], None)
    while wanted.status:
        page = yield partial(workflows.find, wanted, before=page.next, limit=_MOST)
        ids += [record.id for record in page.workflows]
        if page.next is None:
            break
    done: dict[UUID, WorkflowStatus | None] = {}
    for workflow_id in ids:
        try:
            done[UUID(bytes=workflow_id)] = yield from verb(workflow_id)
        except (IllegalTransition, TaskNotFound, UniqueConflict):
            # It has moved on since it was found, or another one has its unique key by now.
            done[UUID(bytes=workflow_id)] = None
    return done
