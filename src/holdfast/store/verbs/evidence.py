"""What running tasks leave behind: notes, checkpoints, output and logs.

Owns every write about a run that is not its end. All of them are fenced by the run's own
token; a batch answers with the keys that it met. None changes the task's row, so that a task can
complete itself in a transaction that began before them (`complete_in` at REPEATABLE READ).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from holdfast.core.errors import UnreadableRow
from holdfast.core.identity import as_text
from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import (
    At,
    Changes,
    Column,
    Key,
    Keys,
    Mode,
    Op,
    Statement,
    Steps,
    Table,
    alone,
    apart,
    reads,
    writes,
)
from holdfast.store.verbs.claims import writable

LONGEST_OUTPUT = 1_048_576
"""Characters of a generator's output that are kept."""
MOST_PARTS = 1_000
_ANY_ATTEMPT = 2**31 - 1


class Checkpoint(NamedTuple):
    """The stored value of a step, as JSON; None if it has not been made."""

    value: str | None


@reads
def read_checkpoint(key: Key, token: bytes, name: str) -> Steps[Checkpoint | None]:
    """The value of one step of a running task; None if the claim is lost."""
    found = yield Statement("read_checkpoint", {"key": key, "token": token, "name": name})
    return Checkpoint(found[0][0]) if found else None


class StoredCheckpoint(NamedTuple):
    """A durable step that a task has made."""

    name: str
    value: str
    """As JSON; of a large one its beginning."""
    length: int
    """Of the whole, in characters."""


@reads
def checkpoints(
    id: bytes, *, longest: int = 4_000, limit: int = 100
) -> Steps[list[StoredCheckpoint]]:
    """The durable steps of a task, in the order of their names; those that can be read."""
    found = yield Statement("checkpoints", {"id": id, "longest": longest, "limit": limit})
    return [
        StoredCheckpoint(name, value, length)
        for name, value, length in found
        if isinstance(name, str) and isinstance(value, str)
    ]


@alone
def write_checkpoint(key: Key, token: bytes, name: str, value: str) -> Steps[bool]:
    """Keep the value of one step of a running task; False if the claim is lost."""
    found = yield Statement(
        "write_checkpoint", {"key": key, "token": token, "name": name, "value": value}
    )
    return bool(found)


@dataclass(frozen=True, slots=True)
class TaskNote:
    """What one running task says about itself; None leaves things as they are."""

    key: Key
    token: bytes
    progress: str | None = None
    stage: str | None = None
    meta: str | None = None
    """A stage comes with its own meta, or with none."""
    heartbeat: bool = False
    output: str | None = None
    """Appended to what there is."""


def write_notes(notes: Sequence[TaskNote]) -> Op[set[Key]]:
    """Write notes; the keys of the tasks that were met.

    A task may have two: of a claim that was lost and whose code has not ended yet, and of the
    claim that came after it.
    """
    parts = list(apart(notes, attrgetter("key")))
    return Op(_write_notes(parts), Mode.WRITE if len(parts) > 1 else Mode.ALONE, "write_notes")


@writes
def write_free_notes(
    keys: Sequence[Key], take: Callable[[set[Key]], Sequence[TaskNote]]
) -> Steps[set[Key]]:
    """Write the notes of those tasks that no other transaction holds; the keys of the held.

    `take` gives the notes of those that can be written, now that nobody can come in between.
    """
    free = yield from writable(keys)
    notes = take(free) if free else ()
    if notes:
        yield from write_notes(notes)
    return set(keys) - free


def _write_notes(parts: Sequence[Sequence[TaskNote]]) -> Steps[set[Key]]:
    met: set[Key] = set()
    for notes in parts:
        changes = Changes([(note.key, note.token, _said(note)) for note in notes])
        found = yield Statement("write_notes", {"changes": changes, "longest": LONGEST_OUTPUT})
        met.update(rows.key(row[0]) for row in found)
    return met


def _said(note: TaskNote) -> dict[str, str | bool | None]:
    return {
        "progress": note.progress,
        "stage": note.stage,
        "meta": note.meta,
        "beat": note.heartbeat,
        "output": note.output,
    }


@dataclass(frozen=True, slots=True)
class LogPart:
    """A piece of what one attempt printed; parts of an attempt are numbered by the writer."""

    key: Key
    token: bytes
    attempt: int
    part: int
    data: bytes


_LOG_COLUMNS = {
    "key": Column.KEY,
    "token": Column.UUID,
    "attempt": Column.INT,
    "part": Column.INT,
    "data": Column.BYTES,
}


@writes
def append_logs(parts: Sequence[LogPart]) -> Steps[set[tuple[Key, int, int]]]:
    """Store parts of logs; (key, attempt, part) of those that were stored.

    Good until the run has ended, and after that for the run that wrote the attempt row.
    """
    stored = yield Statement(
        "append_logs",
        table=Table(_LOG_COLUMNS, [(p.key, p.token, p.attempt, p.part, p.data) for p in parts]),
    )
    return {(rows.key(key), attempt, part) for key, attempt, part in stored}


class Printed(NamedTuple):
    """A stored piece of what an attempt printed."""

    attempt: int
    part: int
    written_at: int
    data: bytes


@reads
def read_log(
    task_id: bytes,
    *,
    attempt: int | None = None,
    after: tuple[int, int] = (0, -1),
    parts: int = MOST_PARTS,
) -> Steps[list[Printed]]:
    """What a task printed (in one attempt, or all), from behind (attempt, part) on."""
    if attempt is not None:
        after = max(after, (attempt, -1))
    found = yield Statement(
        "read_log",
        {
            "id": task_id,
            "after_attempt": after[0],
            "after_part": after[1],
            "last_attempt": _ANY_ATTEMPT if attempt is None else attempt,
            "parts": parts,
        },
    )
    return [Printed(*row) for row in found]


class Output(NamedTuple):
    """What a generator task has yielded so far."""

    status: TaskStatus
    attempt: int
    text: str | None


@reads
def read_output(task_id: bytes) -> Steps[Output | None]:
    """The output of a task; None if there is no such task."""
    found = yield Statement("read_output", {"id": task_id})
    if not found:
        return None
    status, attempt, text = found[0]
    if not rows.is_status(status):
        raise UnreadableRow("holdfast_tasks", as_text(task_id), "status", "is none of a task")
    return Output(TaskStatus(status), attempt, text)


class PrunedLogs(NamedTuple):
    """One page of the walk."""

    removed: int
    next: Key | None
    """Where the next page starts; None when the walk is over."""


@writes
def prune_logs(after: Key | None = None, *, before: int, page: int = 500) -> Steps[PrunedLogs]:
    """Forget, among one page of tasks, the logs last written to before `before`."""
    found = yield Statement("old_logs", {"after": after, "before": At(before), "page": page})
    old = [rows.key(key) for key, past in found if past]
    if old:
        yield Statement("delete_logs", {"keys": Keys(old)})
    return PrunedLogs(len(old), rows.key(found[-1][0]) if len(found) == page else None)
