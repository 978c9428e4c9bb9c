"""A verb applied to many tasks, and what became of each.

Owns the batches and the words. A task that a verb does not apply to is left as it is and
said so; it stops no other. Every batch is one transaction, so ten thousand tasks are twenty
commits, and a command that is interrupted has done whole batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias
from uuid import UUID

import click

from holdfast.cli.render import json_document, times
from holdfast.cli.session import CommandSession, NotDone
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
class ActionResult:
    """What became of one task."""

    id: UUID
    done: bool
    status: TaskStatus | None
    """The one it has then; None: there is no such task, or no more."""
    message: str


Apply: TypeAlias = Callable[[CommandSession, Sequence[UUID]], Iterable[ActionResult]]


def perform(session: CommandSession, apply: Apply, ids: Sequence[UUID]) -> None:
    """Apply a verb to tasks, and say for each what happened; exit code 1 if any was refused."""
    answers: list[ActionResult] = []
    try:
        for start in range(0, len(ids), _BATCH):
            for answer in apply(session, ids[start : start + _BATCH]):
                answers.append(answer)
                if not session.screen.as_json:
                    session.screen.line(f"{answer.id}  {answer.message}")
    except KeyboardInterrupt:
        done = sum(answer.done for answer in answers)
        session.screen.remark(
            f"interrupted: {done:,} of {len(ids):,} done, perhaps those after them, too; the same "
            "command goes on with the rest"
        )
        raise
    refused = sum(not answer.done for answer in answers)
    if session.screen.as_json:
        session.screen.document({"tasks": [json_document.as_dict(answer) for answer in answers]})
    elif not answers:
        session.screen.remark("no task fits")
    elif len(answers) > 1:
        session.screen.remark(f"{len(answers) - refused:,} done, {refused:,} not")
    if refused:
        click.get_current_context().exit(NotDone.exit_code)


def cancel(session: CommandSession, ids: Sequence[UUID]) -> Iterator[ActionResult]:
    """End what has not begun; ask the workers of what runs."""
    for task, status in session.control.tasks.cancel(*ids).items():
        match status:
            case None:
                yield ActionResult(task, False, None, _UNKNOWN)
            case TaskStatus.CANCELLED:
                yield ActionResult(task, True, status, "cancelled")
            case TaskStatus.RUNNING:
                yield ActionResult(
                    task, True, status, "running; its worker has been asked to end it"
                )
            case _:
                yield ActionResult(task, False, status, f"not cancelled: it is {status.value}")


def resubmit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a resubmit, which are the keywords of `resubmission`."""
    for option in (
        times.delay,
        click.option("--fresh", is_flag=True, help="Forget the checkpoints."),
        click.option("--keep-retries", is_flag=True, help="Do not give the retries anew."),
    ):
        command = option(command)
    return command


def resubmission(
    session: CommandSession, *, keep_retries: bool, fresh: bool, delay: times.Given | None
) -> Apply:
    """Let ended tasks run again."""
    at = None if delay is None else times.after(delay, session.control.now())
    again = partial(
        session.control.tasks.resubmit, keep_retries=keep_retries, fresh=fresh, run_at=at
    )
    return partial(_resubmit, again)


def _resubmit(
    again: Callable[..., dict[UUID, bool]], session: CommandSession, ids: Sequence[UUID]
) -> Iterator[ActionResult]:
    try:
        done = again(*ids)
    except (UniqueConflict, UpstreamEnded) as error:
        if len(ids) == 1:
            # Nothing of the batch was written, and this is the task it was about.
            after = session.control.tasks.statuses(*ids)
            yield ActionResult(ids[0], False, after.get(ids[0]), f"not resubmitted: {error}")
            return
        for part in _parts(ids, error):
            yield from _resubmit(again, session, part)
        return
    yield from _results(session, done, "resubmit", "resubmitted")


def _parts(ids: Sequence[UUID], error: UniqueConflict | UpstreamEnded) -> list[list[UUID]]:
    """What to try after a batch was refused: those it was not about together, the rest alone."""
    alone = set(error.refused) if isinstance(error, UpstreamEnded) else set(ids)
    together = [task for task in ids if task not in alone]
    return [part for part in (together, *([task] for task in ids if task in alone)) if part]


def reschedule(
    session: CommandSession,
    ids: Sequence[UUID],
    *,
    when: When | None,
    queue: str | None,
    priority: int | None,
) -> Iterator[ActionResult]:
    """Change the time, queue or priority of tasks that wait."""
    done = session.control.tasks.reschedule(*ids, when=when, queue=queue, priority=priority)
    yield from _results(session, done, "reschedule", "rescheduled")


def delete(session: CommandSession, ids: Sequence[UUID]) -> Iterator[ActionResult]:
    """Remove ended tasks with their attempts and logs."""
    yield from _deleted(session, session.control.tasks.delete(*ids))


def delete_dead(session: CommandSession, ids: Sequence[UUID]) -> Iterator[ActionResult]:
    """Remove dead letters; steps of workflows stay with those, and are listed no more."""
    yield from _deleted(session, session.control.dead_letters.delete(*ids))


def _deleted(session: CommandSession, done: Mapping[UUID, bool]) -> Iterator[ActionResult]:
    after = session.control.tasks.statuses(*done)
    why = session.control.tasks.why_not("delete", *(task for task in done if not done[task]))
    for task, gone in done.items():
        status = after.get(task)
        if gone and status is not None:
            text = "no dead letter now; it stays with its workflow"
            yield ActionResult(task, True, status, text)
        elif gone:
            yield ActionResult(task, True, None, "deleted")
        elif status is None:
            yield ActionResult(task, False, None, _UNKNOWN)
        else:
            text = f"not deleted: {why[task]}"
            if not status.is_terminal:
                text += ", and only a task that has ended is deleted"
            yield ActionResult(task, False, status, text)


def delete_unreadable(session: CommandSession, keys: Sequence[str]) -> None:
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
        click.get_current_context().exit(NotDone.exit_code)


def of_dead_letters(apply: Apply) -> Apply:
    """The same verb, for dead letters only."""

    def apply_to_dead(session: CommandSession, ids: Sequence[UUID]) -> Iterator[ActionResult]:
        found = session.control.tasks.show_many(*ids)
        dead = [task for task in ids if task in found and found[task].dead]
        yield from apply(session, dead)
        for task in ids:
            info = found.get(task)
            if info is None:
                yield ActionResult(task, False, None, _UNKNOWN)
            elif not info.dead:
                text = f"not a dead letter: it is {info.status.value}"
                yield ActionResult(task, False, info.status, text)

    return apply_to_dead


def _results(
    session: CommandSession, done: Mapping[UUID, bool], verb: str, past: str
) -> Iterator[ActionResult]:
    after = session.control.tasks.statuses(*done)
    why = session.control.tasks.why_not(verb, *(task for task in done if not done[task]))
    for task, was_done in done.items():
        status = after.get(task)
        if status is None:
            yield ActionResult(task, False, None, _UNKNOWN)
        elif was_done:
            yield ActionResult(task, True, status, f"{past}; it is {status.value}")
        else:
            yield ActionResult(task, False, status, f"not {past}: {why[task]}")
