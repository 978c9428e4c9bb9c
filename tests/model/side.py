"""One engine in the model test: it runs what the model runs, and shows all that it stores."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeAlias, TypeVar

from holdfast.core.limiting import NO_LIMITS
from holdfast.core.records import AttemptRecord, ClaimedTask, TaskRecord
from holdfast.store import rows
from holdfast.store.op import Key, Op, Statement, Steps, reads
from holdfast.store.protocol import Store
from tests.model.reference import Model
from tests.model.runs import Claim
from tests.support.stores import Lab

T = TypeVar("T")

Tables: TypeAlias = dict[str, dict[Any, Any]]

_TASK = tuple(field.name for field in fields(TaskRecord))
_ATTEMPT = tuple(field.name for field in fields(AttemptRecord))


class Side:
    """An engine, the keys by which it knows tasks, and the claims it has answered."""

    def __init__(self, lab: Lab, store: Store | None = None) -> None:
        self.lab = lab
        self.store = store or lab.store
        self.claims: dict[Claim, ClaimedTask] = {}
        self.book = NO_LIMITS
        """The limits, as a worker knows them."""

    @property
    def name(self) -> str:
        return self.lab.engine

    def run(self, op: Op[T]) -> T:
        return self.store.run(op)

    def key(self, claim: Claim) -> Key:
        """How a worker that made this claim, perhaps long ago, names the task."""
        return self.claims[claim].key

    def tables(self) -> Tables:
        """Every column of every row that the model knows of."""
        return self.lab.run(_tables(self.name))


def tables_of(model: Model) -> Tables:
    """The same of the model."""
    return {
        "tasks": model.tasks,
        "attempts": model.attempts,
        "leases": {
            token: (
                lease["worker_id"],
                lease["expires_at"],
                len(lease["task_ids"]),
                _carried(token, lease["task_ids"], model.tasks),
            )
            for token, lease in model.leases.items()
        },
        "edges": {
            edge: (row["on"], row["resolved"], row["satisfied"])
            for edge, row in model.edges.items()
        },
        "queues": model.queues,
    }


def difference(expected: Tables, found: Tables) -> list[str]:
    """What is not the same, one line for each row or column."""
    lines: list[str] = []
    for table, rows_ in expected.items():
        for key in rows_.keys() | found[table].keys():
            want, have = rows_.get(key), found[table].get(key)
            if want == have:
                continue
            if isinstance(want, dict) and isinstance(have, dict):
                lines += [
                    f"{table} {_short(key)} {name}: model {want[name]!r}, engine {have[name]!r}"
                    for name in want
                    if want[name] != have[name]
                ]
            else:
                lines.append(f"{table} {_short(key)}: model {want!r}, engine {have!r}")
    return lines


def _place(column: str) -> str:
    """Where a field of a task's record is stored."""
    noted = column in ("progress", "stage", "stage_meta", "output")
    return f"note.{column}" if noted else f"task.{column}"


@reads
def _tables(engine: str) -> Steps[Tables]:
    seq, notes, attempts = "id", "task_id", "holdfast_task_attempts AS row"
    if engine == "sqlite":
        # An attempt whose task is gone shows up with no task.
        seq, notes = "seq", "task_seq"
        attempts = (
            "(SELECT stored.*, task.id AS task_id FROM holdfast_task_attempts AS stored"
            " LEFT JOIN holdfast_tasks AS task ON task.seq = stored.task_seq) AS row"
        )
    answers = yield (
        _raw(
            f"SELECT task.{seq}, {', '.join(map(_place, _TASK))} FROM holdfast_tasks AS task"
            f" LEFT JOIN holdfast_task_notes AS note ON note.{notes} = task.{seq}"
        ),
        _raw(f"SELECT {', '.join(_ATTEMPT)} FROM {attempts}"),
        _raw("SELECT token, worker_id, expires_at, task_ids FROM holdfast_leases"),
        _raw(
            "SELECT parent_id, child_id, on_status, resolved, satisfied"
            " FROM holdfast_task_dependencies"
        ),
        _raw("SELECT queue_name, paused_at, paused_by FROM holdfast_queues"),
    )
    tasks = {row[0]: rows.task((*row[1:], row[0])) for row in answers[0]}
    by_key = {key if type(key) is int else rows.uuid(key): task for key, task in tasks.items()}
    stored = {task.id: {name: getattr(task, name) for name in _TASK} for task in by_key.values()}
    assert all(row[0] is not None for row in answers[1]), "attempts of a task that is gone"
    attempts_ = [rows.attempt(row) for row in answers[1]]
    leases: dict[bytes, Any] = {}
    for token_, worker, expires_at, task_ids in answers[2]:
        token, keys = rows.uuid(token_), rows.keys(task_ids)
        ids = {by_key[key].id for key in keys if key in by_key}
        leases[token] = (worker, expires_at, len(keys), _carried(token, ids, stored))
    return {
        "tasks": stored,
        "attempts": {
            (one.task_id, one.attempt): {name: getattr(one, name) for name in _ATTEMPT}
            for one in attempts_
        },
        "leases": leases,
        "edges": {
            (rows.uuid(parent), rows.uuid(child)): (on, bool(done), _optional(met))
            for parent, child, on, done, met in answers[3]
        },
        "queues": {queue: (at, by) for queue, at, by in answers[4]},
    }


def _raw(text: str) -> Statement:
    return Statement("raw: " + text)


def _optional(flag: bool | int | None) -> bool | None:
    return None if flag is None else bool(flag)


def _carried(token: bytes, ids: set[bytes], tasks: dict[bytes, Any]) -> frozenset[bytes]:
    """Those tasks of a lease that are still its own: the others it names for no purpose."""
    return frozenset(id for id in ids if id in tasks and tasks[id]["claim_token"] == token)


def _short(key: Any) -> str:
    if isinstance(key, bytes):
        return key.hex()[:6]
    if isinstance(key, tuple):
        return ", ".join(map(_short, key))
    return str(key)
