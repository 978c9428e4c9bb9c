"""One task in full.

Owns the page of `tasks show`. It begins with where the task stands, why, and what happens
next; then comes what it is, when what happened, its attempts, and what it was given and
gave. Values are cut to a readable length unless they were asked for in full.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from holdfast.cli.render import json_document, times
from holdfast.cli.render.next_step import next_step, policy_of, retries_left, retries_used
from holdfast.cli.render.screen import Screen
from holdfast.cli.render.table import Cell, TextColumn, Value
from holdfast.cli.render.task_list import STYLES, id_cell, moment_cell, progress_text, status_cell
from holdfast.client.explain import Why
from holdfast.client.info import Attempt, TaskInfo
from holdfast.client.task_questions import Dependency
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus
from holdfast.core.text import shorten

_VALUE: Final = 2_000
"""Characters of arguments, result and output that are shown unless all are asked for."""

_MOST_ATTEMPTS: Final = 20

_ATTEMPTS: Final = (
    TextColumn("#", right=True),
    TextColumn("outcome", whole=True),
    TextColumn("started", whole=True),
    TextColumn("took", right=True, whole=True),
    TextColumn("worker", whole=True, room=150),
    TextColumn("host", room=120),
    TextColumn("exit", whole=True),
    TextColumn("memory", right=True, whole=True, room=100),
    TextColumn("cpu", right=True, whole=True, room=130),
    TextColumn("error"),
)

_DEPENDENCIES: Final = (
    TextColumn("id", whole=True),
    TextColumn("status", whole=True),
    TextColumn("name"),
    TextColumn("needed on", whole=True),
    TextColumn("satisfied", whole=True),
)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Everything there is to show about one task."""

    info: TaskInfo
    attempts: Sequence[Attempt]
    dependencies: Sequence[Dependency]
    why: Why
    now: datetime


def show_task(screen: Screen, report: TaskReport, *, full: bool) -> None:
    """The page."""
    info = report.info
    if screen.as_json:
        screen.document(
            json_document.as_dict(
                info,
                attempts=report.attempts,
                dependencies=[
                    {**edge._asdict(), "parent_id": UUID(bytes=edge.parent_id)}
                    for edge in report.dependencies
                ],
                why=report.why.reasons,
                next_step=next_step(info, report.now),
                retries_left=retries_left(info),
            )
        )
        return
    screen.facts(_standing(report))
    screen.heading("task")
    screen.facts(_identity(info))
    screen.heading("times")
    screen.facts(_times(info, report.now))
    if report.dependencies:
        screen.heading("dependencies")
        screen.table(_DEPENDENCIES, [_dependency(edge) for edge in report.dependencies])
    _show_attempts(screen, report, None if full else _MOST_ATTEMPTS)
    limit = None if full else _VALUE
    for name, text in _values(info):
        screen.heading(name)
        screen.text(_cut(text, limit), indent="  ")
    if info.error is not None:
        _show_error(screen, "error", info.error, limit)
    elif not info.status.is_terminal:
        failed = next((made for made in reversed(report.attempts) if made.error), None)
        if failed is not None and failed.error is not None:
            _show_error(screen, f"error of attempt {failed.number}", failed.error, limit)


def _standing(report: TaskReport) -> list[tuple[str, Value]]:
    info = report.info
    words = f"{info.status.value} – {info.status.meaning.replace('`', '')}"
    return [
        ("id", str(info.id)),
        ("task", info.name if info.version == 1 else f"{info.name} v{info.version}"),
        ("status", Cell(words, STYLES[info.status])),
        *((("why" if place == 0 else ""), text) for place, text in enumerate(report.why.reasons)),
        ("next", next_step(info, report.now)),
        ("dead letter", "yes" if info.dead else None),
        ("log", f"holdfast tasks log {info.id}" if info.attempt else None),
        ("progress", None if info.progress is None else progress_text(info.progress)),
        ("stage", info.stage),
        ("stage data", None if info.meta is None else _json(info.meta)),
    ]


def _identity(info: TaskInfo) -> list[tuple[str, Value]]:
    policy = policy_of(info)
    return [
        ("name", info.name),
        ("version", info.version),
        ("queue", info.queue),
        ("priority", info.priority),
        ("tags", ", ".join(info.tags)),
        ("attempts", f"{info.attempt} started"),
        ("retries", retries_used(info)),
        ("crashes", f"{info.crash_count} of {policy.max_crashes} used"),
        ("timeout", _timeout(policy.timeout)),
        ("options", _json(info.options) if info.options else None),
        ("unique key", info.unique_key),
        ("concurrency key", info.concurrency_key),
        ("workflow", _text(info.workflow_id)),
        ("waits for", f"{info.waits_for} more to be satisfied" if info.waits_for else None),
        ("sent by task", _text(info.parent_id)),
        ("first task", _text(info.root_id)),
        ("schedule", info.schedule_name),
        ("tick", None if info.schedule_tick is None else times.stamp(info.schedule_tick)),
        ("trace", info.trace_context),
        ("claimed by", info.claimed_by_worker_id),
        ("process", _process(info)),
    ]


def _times(info: TaskInfo, now: datetime) -> list[tuple[str, Value]]:
    heartbeat = info.last_heartbeat
    moments = [
        ("sent", info.sent_at),
        ("submitted", info.submitted_at),
        ("claimable from", info.enqueued_at),
        ("run at", info.run_at),
        ("good until", info.good_until),
        ("claimed", info.claimed_at),
        ("first started", info.first_started_at),
        ("started", info.started_at),
        ("heartbeat", None if heartbeat is None else heartbeat.at),
        ("next retry", info.next_retry_at),
        ("cancel requested", info.cancel_requested_at),
        ("ended", info.finished_at),
        ("last change", info.updated_at),
    ]
    return [(name, None if at is None else times.both(at, now)) for name, at in moments]


def _show_attempts(screen: Screen, report: TaskReport, most: int | None) -> None:
    made = report.attempts if most is None else report.attempts[-most:]
    rows = [_attempt(attempt, report.now) for attempt in made]
    info = report.info
    if info.status is TaskStatus.RUNNING and info.started_at is not None:
        rows.append(_current(info, info.started_at, report.now))
    if rows:
        screen.heading("attempts")
        screen.table(_ATTEMPTS, rows)
    earlier = len(report.attempts) - len(made)
    if earlier:
        screen.remark(f"{earlier:,} earlier attempt(s) not shown: --full shows all")


def _dependency(edge: Dependency) -> list[Value]:
    satisfied = {None: "open", True: "yes", False: "no"}[edge.satisfied]
    return [
        id_cell(UUID(bytes=edge.parent_id)),
        "deleted" if edge.status is None else status_cell(edge.status),
        edge.task_name,
        edge.on,
        satisfied,
    ]


def _attempt(attempt: Attempt, now: datetime) -> list[Value]:
    outcome = attempt.outcome.value + (", retried" if attempt.will_retry else "")
    return [
        attempt.number,
        Cell(outcome, piped=outcome.replace(", ", "+")),
        moment_cell(attempt.started_at, now),
        _span(attempt.duration),
        attempt.worker_id,
        _host(attempt.worker_hostname, attempt.worker_pid),
        _exit(attempt),
        _memory(attempt.peak_memory_kb),
        None if attempt.cpu_time is None else _span(attempt.cpu_time),
        _summary(attempt),
    ]


def _current(info: TaskInfo, started_at: datetime, now: datetime) -> list[Value]:
    return [
        info.attempt,
        status_cell(info.status),
        moment_cell(started_at, now),
        _span(now - started_at),
        info.claimed_by_worker_id,
        _host(info.worker_hostname, info.worker_pid),
        *(None, None, None, None),
    ]


def _values(info: TaskInfo) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if info.args or info.kwargs:
        lines = [_json(value) for value in info.args]
        lines += [f"{name} = {_json(value)}" for name, value in info.kwargs.items()]
        found.append(("arguments", "\n".join(lines)))
    if info.output:
        found.append(("output", info.output))
    if info.status is TaskStatus.COMPLETED:
        found.append(("result", _json(info.result, indent=2)))
    return found


def _show_error(screen: Screen, heading: str, error: TaskError, limit: int | None) -> None:
    screen.heading(heading)
    screen.facts(
        [
            ("code", str(error.error_code)),
            ("exception", error.exception),
            ("message", error.message),
            ("data", None if error.data is None else _cut(_json(error.data), limit)),
            *(("caused by", cause) for cause in error.causes),
        ]
    )
    if error.traceback:
        screen.heading("traceback")
        screen.text(error.traceback, indent="  ")


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _cut(text: str, limit: int | None) -> str:
    return text if limit is None else shorten(text, limit)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _timeout(seconds: float | None) -> str:
    return "never" if seconds is None else times.length(timedelta(seconds=seconds))


def _process(info: TaskInfo) -> str | None:
    if info.worker_pid is None:
        return None
    name = f" ({info.worker_process_name})" if info.worker_process_name else ""
    return f"{info.worker_pid} on {info.worker_hostname}{name}"


def _span(span: timedelta) -> Cell:
    return Cell(times.length(span), piped=f"{span.total_seconds():.3f}s")


def _host(host: str | None, pid: int | None) -> str | None:
    return host if pid is None else f"{host or ''}:{pid}"


def _exit(attempt: Attempt) -> str | None:
    if attempt.exit_signal is not None:
        try:
            return signal.Signals(attempt.exit_signal).name
        except ValueError:
            return f"signal={attempt.exit_signal}"
    return None if attempt.exit_code is None else str(attempt.exit_code)


def _memory(kilobytes: int | None) -> Cell | None:
    if kilobytes is None:
        return None
    return Cell(f"{kilobytes / 1024:,.1f} MB", piped=f"{kilobytes}KiB")


def _summary(attempt: Attempt) -> str | None:
    if attempt.error is None:
        return attempt.failed_reason or attempt.error_code
    return str(attempt.error).partition("\n")[0][:200]
