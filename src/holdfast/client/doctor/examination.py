"""One examination: what is looked at, in which order, and what becomes of a look that fails.

Owns the measuring. Each look is an operation of its own, so that one that fails (a damaged table, a
right that is missing) costs its own answer and no other. It changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, TypeVar

from holdfast.client.access import Access
from holdfast.client.doctor import file, fleet, server
from holdfast.client.doctor.finding import Diagnosis, Finding, Severity, ordered
from holdfast.core.errors import SchemaMismatch, StoreError, UnreadableRow
from holdfast.core.moment import Span, from_us, length, span_us
from holdfast.core.records import TaskFilter
from holdfast.core.status import TaskStatus
from holdfast.core.workflows.records import WorkflowFilter
from holdfast.store.op import Op
from holdfast.store.sqlite.database_file import resolve
from holdfast.store.verbs import (
    diagnosis,
    newest,
    queues,
    statistics,
    timing,
    workers,
    workflows,
)

__all__ = ["examine"]

T = TypeVar("T")

_SECOND_US: Final = 1_000_000
_LATE_US: Final = 30 * _SECOND_US
_MOST_QUEUES: Final = 100
_ROWS: Final = 200
"""How many of the newest tasks, and of those in each state that goes on, are read."""
_GOES_ON: Final = (TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.CLAIMED)
_WORKFLOWS: Final = 50
"""Of how many of the newest that live the steps are read."""
_DEAD_CAP: Final = 10_000
_COUNTED_APART: Final = 17
"""The PostgreSQL that began to count checkpoints in a place of their own."""


def examine(access: Access, patience: Span) -> Diagnosis:
    """Look at everything there is."""
    patience_us = span_us(patience, option="patience")
    settings = access.config.store
    try:
        examination = _Examination(access, patience_us)
    except SchemaMismatch as error:
        finding = Finding(
            "schema",
            Severity.CRITICAL,
            str(error),
            "this code cannot use these tables; workers of this version refuse to start",
            "holdfast db status, then holdfast db migrate",
            {"found": error.found, "expected": error.expected},
        )
        now = from_us(time.time_ns() // 1000)
        engine = "PostgreSQL" if settings.is_server else "SQLite"
        return Diagnosis(now, settings.masked, engine, ("schema",), (finding,))
    return examination.run()


class _Examination:
    def __init__(self, access: Access, patience_us: int) -> None:
        self._access = access
        self._settings = access.config.store
        self._patience_us = patience_us
        self._unreadable: list[UnreadableRow] = []
        before = time.time_ns()
        self._now = self._ask(partial(timing.next_due)).now
        # By this machine, when the database read its clock, or as nearly as can be told.
        self._here = (before + time.time_ns()) // 2000
        self._facts: Mapping[str, str | None] = {}

    def run(self) -> Diagnosis:
        """All looks, one after another."""
        findings: list[Finding] = []
        looks = self._looks()
        for name, look in looks.items():
            try:
                findings += look()
            except StoreError as error:
                findings.append(
                    Finding(
                        "not-examined",
                        Severity.WARNING,
                        f"{name} could not be examined: {error}",
                        "what is wrong there is not known",
                        "see the message; this user may lack a right",
                        {"examined": name},
                    )
                )
        findings += fleet.judge_rows(_each_once(self._unreadable))
        engine = "PostgreSQL" if self._settings.is_server else "SQLite"
        return Diagnosis(
            from_us(self._now),
            self._settings.masked,
            f"{engine} {self._facts.get('version') or ''}".strip(),
            (*looks, "rows"),
            ordered(findings),
        )

    def _looks(self) -> dict[str, Callable[[], Iterator[Finding]]]:
        ours: dict[str, Callable[[], Iterator[Finding]]] = {"clock": self._clock}
        if self._settings.is_server:
            ours |= {
                "settings": self._server_settings,
                "connections and WAL": lambda: server.judge_load(self._facts),
                "checkpoints": self._checkpoints,
                "transactions": self._transactions,
                "vacuum": self._vacuum,
            }
        else:
            ours |= {"file": self._file}
        return ours | {
            "disk": self._disk,
            "workers": self._workers,
            "queues": self._queues,
            "tasks": self._tasks,
            "leases": self._leases,
            "schedules": self._schedules,
            "workflows": self._workflows,
            "dead letters": self._dead,
        }

    def _ask(self, make: Callable[[], Op[T]]) -> T:
        return self._access.run_own(make)

    def _clock(self) -> Iterator[Finding]:
        skew = (self._now - self._here) / _SECOND_US
        if self._settings.is_server:
            limit, severity = 5.0, Severity.WARNING if abs(skew) > 60 else Severity.NOTICE
            meaning = (
                "what is due is decided by the database's clock; times that this machine gives "
                "(run_at, good_until) mean something else there"
            )
            remedy = "keep both clocks right, with NTP"
        else:
            limit, severity = 2.0, Severity.CRITICAL if abs(skew) > 60 else Severity.WARNING
            meaning = "time stands still in the file until this machine's clock has caught up"
            remedy = (
                "set this machine's clock right, with NTP; if the time in the file is the wrong "
                "one, stop all processes and DELETE FROM holdfast_meta WHERE name = 'clock'"
            )
        if abs(skew) > limit:
            side = "ahead of" if skew > 0 else "behind"
            yield Finding(
                "clock-skew",
                severity,
                f"the database's clock is {length(abs(skew))} {side} this machine's",
                meaning,
                remedy,
                {"seconds": skew},
            )

    def _server_settings(self) -> Iterator[Finding]:
        self._facts = self._ask(partial(diagnosis.facts))
        yield from server.judge_settings(self._facts)

    def _checkpoints(self) -> Iterator[Finding]:
        counted = self._facts
        if server.major_version(self._facts) >= _COUNTED_APART:
            apart = self._ask(partial(diagnosis.checkpoint_counts))
            counted = {**counted, **apart}
        yield from server.judge_checkpoints(counted)

    def _transactions(self) -> Iterator[Finding]:
        before = self._now - self._patience_us
        held = self._ask(partial(diagnosis.cleanup_holders, before=before))
        yield from server.judge_cleanup(held, self._now)

    def _vacuum(self) -> Iterator[Finding]:
        tables = self._ask(partial(diagnosis.table_health))
        yield from server.judge_tables(tables, self._now)

    def _file(self) -> Iterator[Finding]:
        self._facts = self._ask(partial(diagnosis.facts))
        if not self._settings.in_memory:
            path = resolve(self._settings)
            yield from file.judge_file(
                file.measure_file(path, self._facts, durable=self._settings.durable)
            )

    def _disk(self) -> Iterator[Finding]:
        if not self._settings.is_server:
            place = None if self._settings.in_memory else resolve(self._settings)
        else:
            # A server elsewhere has its disk elsewhere.
            near = self._facts.get("is_near") == "true"
            place = self._facts.get("data_directory") if near else None
        if place:
            yield from file.judge_disk(place, file.measure_disk(place))

    def _workers(self) -> Iterator[Finding]:
        there = self._ask(partial(workers.list_workers, self._unreadable))
        waiting = self._ask(partial(queues.list_queues, set_aside=self._unreadable))
        yield from fleet.judge_workers(there, waiting, self._now)

    def _queues(self) -> Iterator[Finding]:
        there = self._ask(partial(workers.list_workers))
        waiting = self._ask(partial(queues.list_queues))
        yield from fleet.judge_queues(waiting, there, self._now, self._patience_us)

    def _tasks(self) -> Iterator[Finding]:
        there = self._ask(partial(workers.list_workers))
        names = [
            queue.queue_name
            for queue in self._ask(partial(queues.list_queues))
            if queue.pending and queue.paused_at is None
        ]
        kinds = self._ask(partial(diagnosis.pending_kinds, names[:_MOST_QUEUES]))
        yield from fleet.judge_kinds(kinds, there, self._now)
        # Those of each state that goes on, because a row that stops something is among them.
        wanted = [TaskFilter(), *(TaskFilter(status=frozenset({s})) for s in _GOES_ON)]
        for each in wanted:
            page = self._ask(partial(newest.newest, each, limit=_ROWS))
            self._unreadable += page.unreadable

    def _leases(self) -> Iterator[Finding]:
        before = self._now - _LATE_US
        found = self._ask(partial(diagnosis.expired_leases, before=before))
        there = self._ask(partial(workers.list_workers))
        yield from fleet.judge_leases(found, there, self._now)

    def _schedules(self) -> Iterator[Finding]:
        found = self._ask(partial(diagnosis.late_schedules, before=self._now - _LATE_US))
        yield from fleet.judge_schedules(found, self._now)

    def _workflows(self) -> Iterator[Finding]:
        found = self._ask(partial(workflows.find, WorkflowFilter(), limit=_ROWS))
        live = [whole.id for whole in found.workflows if not whole.status.is_terminal]
        stuck = self._ask(partial(diagnosis.stuck_steps, live[:_WORKFLOWS]))
        yield from fleet.judge_steps(stuck)

    def _dead(self) -> Iterator[Finding]:
        depths = self._ask(partial(statistics.depths, cap=_DEAD_CAP))
        yield from fleet.judge_dead({depth.queue_name: depth.dead for depth in depths})


def _each_once(found: list[UnreadableRow]) -> list[UnreadableRow]:
    return list({(row.table, row.key): row for row in found}.values())
