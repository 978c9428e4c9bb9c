"""What happened to every task, recorded by the database itself, and what may have happened.

Owns a table that triggers fill with each change of a task's row, and the rules that the
record must obey. It knows the lifecycle from the documentation only: nothing of Holdfast
decides here whether Holdfast was right, except for reading attempts.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from holdfast import Attempt, TaskHandle, TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.site import Site

TERMINAL = {"COMPLETED", "FAILED", "CANCELLED", "EXPIRED", "STALLED", "DROPPED"}
HELD = {"CLAIMED", "RUNNING"}
ON_ITS_WAY = 0.5
"""A server may come to a statement a little after the one who sent it has been killed."""

LEGAL = {
    # Steps of workflows: unblocked, skipped or cancelled; settled, once they have handed over.
    "WAITING": {"PENDING", "SCHEDULED", "CANCELLED", "EXPIRED", "COMPLETED", "FAILED"},
    "SCHEDULED": {"PENDING", "CANCELLED", "EXPIRED"},
    # RUNNING: claimed for a child, which is claimed and started in one.
    "PENDING": {"CLAIMED", "RUNNING", "SCHEDULED", "CANCELLED", "EXPIRED", "DROPPED"},
    "CLAIMED": {"RUNNING", "PENDING", "CANCELLED"},
    "RUNNING": {"PENDING", "SCHEDULED", "COMPLETED", "FAILED", "CANCELLED", "STALLED"},
}

_POSTGRES = """
CREATE TABLE test_audit (
    number bigserial PRIMARY KEY, id text, was text, becomes text, token text, attempt int
);
CREATE FUNCTION test_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO test_audit (id, was, becomes, token, attempt)
    VALUES (NEW.id, OLD.status, NEW.status, NEW.claim_token, NEW.attempt);
    RETURN NULL;
END $$;
CREATE TRIGGER test_audit AFTER UPDATE ON holdfast_tasks
FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION test_audit();
"""
_SQLITE = """
CREATE TABLE test_audit (
    number INTEGER PRIMARY KEY, id text, was text, becomes text, token text, attempt int
);
CREATE TRIGGER test_audit AFTER UPDATE ON holdfast_tasks WHEN OLD.status IS NOT NEW.status
BEGIN
    INSERT INTO test_audit (id, was, becomes, token, attempt)
    VALUES (NEW.id, OLD.status, NEW.status, NEW.claim_token, NEW.attempt);
END;
"""


class Step(NamedTuple):
    """One change of a row."""

    was: str
    becomes: str
    token: str | None
    attempt: int


@dataclass(frozen=True)
class Kill:
    """Processes of one worker were killed."""

    worker_id: str
    pids: frozenset[int]
    """The children that died."""
    whole: bool
    """The supervisor too, so that only the lease tells."""
    began: float
    """Just before the first of them was killed."""
    wall: float = field(default_factory=time.time)
    """When all of them had been."""


def watch(site: Site) -> None:
    """Record from now on every change of a task; the site's tables must exist."""
    _script(site, _SQLITE if site.app.config.store.engine == "sqlite" else _POSTGRES)


def steps(site: Site) -> dict[str, list[Step]]:
    """The changes of each task, by its id."""
    found: defaultdict[str, list[Step]] = defaultdict(list)
    for id, step in changes(site):
        found[id].append(step)
    return dict(found)


def changes(site: Site) -> list[tuple[str, Step]]:
    """The changes of all tasks, by their ids, in the order in which they were made."""
    text = "SELECT id, was, becomes, token, attempt FROM test_audit ORDER BY number"
    return [(str(id), Step(*rest)) for id, *rest in _rows(site, text)]


def check_rows(site: Site, handles: Iterable[TaskHandle[Any]]) -> None:
    """Every task ended once, by legal steps, each claim under a token of its own."""
    recorded = steps(site)
    for handle in handles:
        path = recorded[str(handle.id)]
        for step in path:
            assert step.was not in TERMINAL, f"{handle.id} left {step.was}: {path}"
            assert step.becomes in LEGAL[step.was], f"{handle.id}: {step}"
        assert path[-1].becomes in TERMINAL, f"{handle.id} did not end: {path}"
        claims = [
            step.token
            for step in path
            if step.becomes == "CLAIMED" or (step.was, step.becomes) == ("PENDING", "RUNNING")
        ]
        assert len(set(claims)) == len(claims), f"{handle.id}: a token was used twice: {path}"
        for before, step in pairwise(path):
            assert before.becomes == step.was, f"{handle.id}: {before} then {step}"
            if step.becomes == "RUNNING":
                if step.was == "CLAIMED":
                    assert step.token == before.token, f"{handle.id} started without a claim"
                assert step.token is not None
                assert step.attempt == before.attempt + 1


def check_runs(
    site: Site,
    handles: Sequence[TaskHandle[Any]],
    kills: Sequence[Kill],
    *,
    names: Sequence[object],
    lease: float,
) -> None:
    """No task was lost, and none ran more often than kills can explain.

    The code of each task notes "begun" under its name, with the attempt.
    """
    ran: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for line in site.ledger.lines("begun"):
        ran[line.key][line.data] += 1
    for name, handle in zip(names, handles, strict=True):
        attempts, runs = handle.attempts(), ran[str(name)]
        assert handle.status() is TaskStatus.COMPLETED, handle.info()
        assert [a.number for a in attempts] == list(range(1, handle.info().attempt + 1))
        assert attempts[-1].outcome is AttemptOutcome.COMPLETED
        assert set(runs) <= {a.number for a in attempts}
        assert set(runs.values()) == {1}, f"{name}: one start, one run: {runs}"
        assert attempts[-1].number in runs, f"{name} is COMPLETED and did not run"
        for attempt in attempts[:-1]:
            if attempt.outcome is AttemptOutcome.INTERRUPTED and not runs[attempt.number]:
                continue
            kill = _cause(attempt, kills)
            limit = lease + 2.0 if kill.whole else 1.0
            took = attempt.finished_at.timestamp() - kill.wall
            assert took < limit, f"{name}: recovered {took:.2f} s after {kill}"


def most_held(site: Site, handles: Iterable[TaskHandle[Any]]) -> int:
    """How many of these were held by claims at a time, at the most."""
    chosen = {str(handle.id) for handle in handles}
    most = held = 0
    for id, was, becomes in _rows(site, "SELECT id, was, becomes FROM test_audit ORDER BY number"):
        if str(id) in chosen:
            held += (becomes in HELD) - (was in HELD)
            most = max(most, held)
    assert held == 0, f"{held} are held by claims still"
    return most


def check_rest(site: Site) -> None:
    """Nothing is in flight any more."""
    counts = site.app.control.tasks.count()
    left = {status: count for status, count in counts.items() if not status.is_terminal and count}
    assert not left, left


def _cause(attempt: Attempt, kills: Sequence[Kill]) -> Kill:
    """The kill that ended an attempt: the last that can have, because a worker may be killed while
    it starts tasks for a child that is dead already."""
    causes = [
        kill
        for kill in kills
        if kill.worker_id == attempt.worker_id
        and (kill.whole or attempt.worker_pid in kill.pids)
        and attempt.started_at.timestamp() <= kill.wall + ON_ITS_WAY
        and kill.began <= attempt.finished_at.timestamp()
    ]
    assert causes, f"no kill explains {attempt}"
    return causes[-1]


def _script(site: Site, text: str) -> None:
    for _ in _execute(site, text):
        pass


def _rows(site: Site, statement: str) -> list[tuple[Any, ...]]:
    return list(_execute(site, statement))


def _execute(site: Site, text: str) -> Iterator[tuple[Any, ...]]:
    address = site.app.config.store.address
    if site.app.config.store.engine == "sqlite":
        import apsw

        connection = apsw.Connection(address)
        connection.set_busy_timeout(10_000)
        try:
            yield from connection.execute(text)
        finally:
            connection.close()
        return
    import psycopg

    with psycopg.connect(address, autocommit=True) as other:
        cursor = other.execute(text.encode())
        if cursor.description:
            yield from cursor
