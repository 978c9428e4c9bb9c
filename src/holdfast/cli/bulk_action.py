"""A verb applied to many tasks, and what became of each.

Owns the batches and the words. A task that a verb does not apply to is left as it is and
said so; it stops no other. Every batch is one transaction, so ten thousand tasks are twenty
commits, and a command that is interrupted has done whole batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias
from uuid import UUID

import click

from holdfast.cli.render import json_document
from holdfast.cli.session import Refused, Session
from holdfast.core.errors import UniqueConflict, UpstreamEnded
from holdfast.core.lifecycle import TRANSITIONS, Verb
from holdfast.core.moment import When
from holdfast.core.status import TaskStatus

CANCELLABLE: Final = (*TRANSITIONS[Verb.CANCEL].sources, *TRANSITIONS[Verb.REQUEST_CANCEL].sources)
RESUBMITTABLE: Final = TRANSITIONS[Verb.RESUBMIT].sources
DELETABLE: Final = TRANSITIONS[Verb.DELETE].sources

_BATCH: Final = 500
_UNKNOWN: Final = "no such task"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one task."""

    id: UUID
    done: bool
    status: TaskStatus | None
    """The one it has then; None: there is no such task, or no more."""
    message: str


Apply: TypeAlias = Callable[[Session, Sequence[UUID]], Iterable[Answer]]


def perform(session: Session, apply: Apply, ids: Sequence[UUID]) -> None:
    """Apply a verb to tasks, and say for each what happened; exit code 1 if any was refused."""
    answers: list[Answer] = []
    for start in range(0, len(ids), _BATCH):
        for answer in apply(session, ids[start : start + _BATCH]):
            answers.append(answer)
            if not session.screen.as_json:
                session.screen.line(f"{answer.id}  {answer.message}")
    refused = sum(not answer.done for answer in answers)
    if session.screen.as_json:
        session.screen.document({"tasks": [json_document.as_dict(answer) for answer in answers]})
    elif not answers:
        session.screen.remark("no task fits")
    elif len(answers) > 1:
        session.screen.remark(f"{len(answers) - refused:,} done, {refused:,} not")
    if refused:
        click.get_current_context().exit(Refused.exit_code)


def cancel(session: Session, ids: Sequence[UUID]) -> Iterator[Answer]:
    """End what has not begun; ask the workers of what runs."""
    for task, status in session.control.tasks.cancel(*ids).items():
        match status:
            case None:
                yield Answer(task, False, None, _UNKNOWN)
            case TaskStatus.CANCELLED:
                yield Answer(task, True, status, "cancelled")
            case TaskStatus.RUNNING:
                yield Answer(task, True, status, "running; its worker has been asked to end it")
            case _:
                yield Answer(task, False, status, f"not cancelled: it is {status.value}")


def resubmit(
    session: Session,
    ids: Sequence[UUID],
    *,
    keep_retries: bool = False,
    fresh: bool = False,
    run_at: datetime | None = None,
) -> Iterator[Answer]:
    """Let ended tasks run again."""
    again = partial(
        session.control.tasks.resubmit, keep_retries=keep_retries, fresh=fresh, run_at=run_at
    )
    try:
        done = again(*ids)
    except (UniqueConflict, UpstreamEnded) as error:
        if len(ids) == 1:
            # Nothing of the batch was written, and this is the task it was about.
            after = _statuses(session, ids)
            yield Answer(ids[0], False, after.get(ids[0]), f"not resubmitted: {error}")
            return
        for part in _parts(ids, error):
            yield from resubmit(
                session, part, keep_retries=keep_retries, fresh=fresh, run_at=run_at
            )
        return
    after = _statuses(session, ids)
    for task, was_done in done.items():
        yield _answer(task, was_done, after.get(task), "resubmitted")


def _parts(ids: Sequence[UUID], error: UniqueConflict | UpstreamEnded) -> list[list[UUID]]:
    """What to try after a batch was refused: those it was not about together, the rest alone."""
    alone = set(error.refused) if isinstance(error, UpstreamEnded) else set(ids)
    together = [task for task in ids if task not in alone]
    return [part for part in (together, *([task] for task in ids if task in alone)) if part]


def reschedule(
    session: Session,
    ids: Sequence[UUID],
    *,
    when: When | None,
    queue: str | None,
    priority: int | None,
) -> Iterator[Answer]:
    """Change the time, queue or priority of tasks that wait."""
    done = session.control.tasks.reschedule(*ids, when=when, queue=queue, priority=priority)
    after = _statuses(session, ids)
    for task, was_done in done.items():
        yield _answer(task, was_done, after.get(task), "rescheduled")


def delete(session: Session, ids: Sequence[UUID]) -> Iterator[Answer]:
    """Remove ended tasks with their attempts and logs."""
    before = _statuses(session, ids)
    for task, gone in session.control.tasks.delete(*ids).items():
        status = before.get(task)
        if gone:
            yield Answer(task, True, None, "deleted")
        elif status is None:
            yield Answer(task, False, None, _UNKNOWN)
        elif status.is_terminal:
            yield Answer(task, False, status, "not deleted: its workflow has not ended")
        else:
            text = f"not deleted: it is {status.value}, and only a task that has ended is deleted"
            yield Answer(task, False, status, text)


def delete_unreadable(session: Session, keys: Sequence[str]) -> None:
    """Remove rows that cannot be read, by their keys; exit code 1 if any is left."""
    done = session.control.tasks.delete_unreadable(*keys)
    if session.screen.as_json:
        rows = [{"key": key, "deleted": gone} for key, gone in done.items()]
        session.screen.document({"unreadable": rows})
    else:
        for key, gone in done.items():
            left = "not deleted: there is no such row, or it can be read"
            session.screen.line(f"{key}  {'deleted' if gone else left}")
    if not all(done.values()):
        click.get_current_context().exit(Refused.exit_code)


def of_dead_letters(apply: Apply) -> Apply:
    """The same verb, for dead letters only."""

    def apply_to_dead(session: Session, ids: Sequence[UUID]) -> Iterator[Answer]:
        found = session.control.tasks.show_many(*ids)
        dead = [task for task in ids if task in found and found[task].dead]
        yield from apply(session, dead)
        for task in ids:
            info = found.get(task)
            if info is None:
                yield Answer(task, False, None, _UNKNOWN)
            elif not info.dead:
                text = f"not a dead letter: it is {info.status.value}"
                yield Answer(task, False, info.status, text)

    return apply_to_dead


def _answer(task: UUID, done: bool, status: TaskStatus | None, past: str) -> Answer:
    if status is None:
        return Answer(task, False, None, _UNKNOWN)
    if not done:
        return Answer(task, False, status, f"not {past}: it is {status.value}")
    return Answer(task, True, status, f"{past}; it is {status.value}")


def _statuses(session: Session, ids: Sequence[UUID]) -> dict[UUID, TaskStatus]:
    return session.control.tasks.statuses(*ids)
