"""What the verbs ask: their statements, taken from the verbs themselves.

Owns one call of every verb on a worker's or the maintenance's way. The statements are
recorded by driving the operation with canned answers, so a verb that asks something new is
explained as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.decide import decide
from holdfast.core.limiting import LimitBook, queue_scope
from holdfast.core.options.limit import Limit, encode
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Failed
from holdfast.core.records import HEAD, TaskFilter
from holdfast.core.result import TaskError
from holdfast.store.op import Key, Op, Row, Statement, drive
from holdfast.store.verbs import (
    cancel,
    claims,
    evidence,
    finish,
    inspect,
    leases,
    limited_claims,
    limits,
    newest,
    operate,
    retention,
    timing,
)

TOKEN = bytes(range(16))
BOOM = TaskError("X", "boom")
QUEUE = "q1"
KNOWN = ["known@1"]
LIMITED = queue_scope(QUEUE)
LIMIT = Limit(concurrency=200, per_key=Limit(concurrency=5))


class Counters:
    """A task as `decide` sees it."""

    retry_count = 0
    max_retries = 0
    crash_count = 0


def record(op: Op[Any], answers: Mapping[str, Sequence[Row]]) -> list[Statement]:
    """The statements of an operation that gets these answers, by the statement's name."""
    said: list[Statement] = []

    def execute(asked: Statement) -> Sequence[Row]:
        said.append(asked)
        return answers.get(asked.name, ())

    drive(op, execute)
    return said


def statements(keys: Sequence[Key]) -> dict[str, Statement]:
    """Every statement of the verbs below, by name; `keys` name some tasks."""
    change = decide(Counters(), Failed(BOOM), Policy(), lambda: 0.5)
    ids = [key if isinstance(key, bytes) else key.to_bytes(16) for key in keys]
    leased = (
        keys[0], ids[0], "RUNNING", 1, 0, 0, 0, None, None, 1, "w", "h", "known", QUEUE, True,
    )  # fmt: skip
    task_ids: object = ids if isinstance(keys[0], bytes) else str(list(keys))
    ended = (keys[0], ids[0], "FAILED", 1, 1, 1, "h", "p", QUEUE, None, "known", 0)
    answers: dict[str, Sequence[Row]] = {
        "end": [ended],
        "expired_lease": [(TOKEN, "w", task_ids)],
        "leased_tasks": [leased],
        "prunable": [(key, id, True) for key, id in zip(keys, ids, strict=True)],
        "deletable": list(zip(keys, ids, strict=True)),
        "lease_keys": [(TOKEN, task_ids)],
        "lock": [(key,) for key in keys],
        "free_tasks": [(key,) for key in keys],
        "next_due": [(None, 0)],
        "unknown_pending": [(ids[0], keys[0])],
        "claim_gate": [(None, 0, 1)],
        "lock_counters": [(LIMITED, 0, 0, 0)],
        "limited_candidates": [(key, "known", 1, 1, id) for key, id in zip(keys, ids, strict=True)],
        "keyed_candidates": [(keys[0], "known", "k", 1, 1, ids[0], False)],
        "read_counters": [(f"{LIMITED} k", 0, 0, 0)],
        "try_counters": [(f"{LIMITED} k", 0, 0, 0)],
        "read_limits": [(LIMITED, None, encode([LIMIT]), None, 1)],
    }
    request = claims.Request(
        token=TOKEN, worker_id="w", queue=QUEUE, known=KNOWN, wanted=100, lease_us=1, after=HEAD
    )
    book = LimitBook.of(None, {LIMITED: (LIMIT,)})
    operations: list[Op[Any]] = [
        claims.claim(request),
        limited_claims.claim(request, book),
        limited_claims.claim_keys(request, book),
        limits.recount(LIMITED),
        claims.horizon(QUEUE),
        claims.ready_queues([QUEUE, "other"]),
        claims.start([claims.Begin(key, TOKEN, 1, "p") for key in keys], hostname="h"),
        claims.release([claims.Hold(key, TOKEN) for key in keys], queues=[QUEUE]),
        claims.release_token(TOKEN, queue=QUEUE),
        finish.complete([finish.Completion(key, TOKEN, "null", 1) for key in keys]),
        finish.complete(
            [finish.Completion(key, TOKEN, "null", 1) for key in keys], skip_locked=True
        ),
        finish.end([finish.RunChange(key, TOKEN, change) for key in keys]),
        evidence.write_notes([evidence.TaskNote(key, TOKEN, heartbeat=True) for key in keys]),
        cancel.cancel(ids),
        inspect.statuses(ids),
        inspect.find_ids(ids[0], ids[-1], "708192", scan=100, limit=2),
        newest.newest(TaskFilter()),
        timing.promote(),
        timing.next_due(),
        timing.expire(),
        timing.drop(QUEUE, known=KNOWN, before=1),
        claims.renew([TOKEN], lease_us=1),
        claims.clean([TOKEN]),
        leases.recover(lambda abandoned: change),
        retention.prune(before=1, dead_before=1),
        leases.suspects(),
        operate.delete(ids),
    ]
    found: dict[str, Statement] = {}
    for op in operations:
        for asked in record(op, answers):
            found.setdefault(asked.name, asked)
    return found
