"""A call that was built and not yet sent.

Owns the way from a task, its options and its arguments to a `Submission`: everything is
encoded, checked and stamped here, so whatever fails does so before any write. A call is
plain data and keeps its id: sending it again is the same send.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from holdfast.client.choice import Choice
from holdfast.core import option
from holdfast.core.definition import TaskDefinition
from holdfast.core.errors import ConfigError
from holdfast.core.fingerprint import fingerprint
from holdfast.core.identity import new_id
from holdfast.core.lineage import running
from holdfast.core.moment import Due, from_us
from holdfast.core.payload import encode_arguments, to_json
from holdfast.core.records import Submission
from holdfast.core.unique import slot

__all__ = ["Call", "prepare", "prepare_unknown"]

_AT_ONCE: Final = Due()


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one task, ready to be sent; `error.call` of a send that failed."""

    submission: Submission
    own_id: bool
    """The id was chosen by the caller, so it may exist already."""

    @property
    def id(self) -> UUID:
        """The id under which it is sent."""
        return UUID(bytes=self.submission.id)

    @property
    def task_name(self) -> str:
        """The task it calls."""
        return self.submission.task_name

    @property
    def version(self) -> int:
        """The version of the task it calls."""
        return self.submission.version

    @property
    def contended(self) -> bool:
        """Whether sending it may have to wait for somebody else's open transaction."""
        return self.own_id or self.submission.unique_slot is not None

    def __repr__(self) -> str:
        return f"<Call {self.task_name} {self.id}>"


def prepare(
    task: TaskDefinition,
    choice: Choice,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    limit: int,
    clock_ns: Callable[[], int] = time.time_ns,
) -> Call:
    """Encode and check a call of a task that is defined here."""
    args_json, kwargs_json = encode_arguments(args, kwargs, limit)
    task.signature.check(args_json, kwargs_json)
    tags = task.tags_json if choice.tags is None else _tags(choice.tags)
    unique = None if choice.not_unique else choice.unique or task.unique
    good_for_us = choice.good_for_us
    if good_for_us is None and choice.good_until is None:
        good_for_us = task.good_for_us
    return _build(
        choice,
        clock_ns() // 1_000,
        task_name=task.name,
        version=task.version,
        queue_name=choice.queue or task.queue,
        priority=choice.priority or task.priority,
        args=args_json,
        kwargs=kwargs_json,
        task_options=task.task_options,
        tags=tags,
        good_for_us=good_for_us,
        max_retries=task.policy.max_retries,
        unique=unique,
    )


def prepare_unknown(
    name: str,
    version: int,
    choice: Choice,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    limit: int,
    *,
    task_options: str | None = None,
    clock_ns: Callable[[], int] = time.time_ns,
) -> Call:
    """Encode a call of a task whose code is elsewhere; its worker checks the arguments."""
    args_json, kwargs_json = encode_arguments(args, kwargs, limit)
    return _build(
        choice,
        clock_ns() // 1_000,
        task_name=option.task_name(name),
        version=option.at_least(1, version, "version"),
        queue_name=choice.queue or "default",
        priority=choice.priority or 50,
        args=args_json,
        kwargs=kwargs_json,
        task_options=task_options,
        tags=None if choice.tags is None else _tags(choice.tags),
        good_for_us=choice.good_for_us,
        max_retries=0,
        unique=choice.unique,
    )


def _build(choice: Choice, now: int, *, unique: Any, good_for_us: int | None, **asked: Any) -> Call:
    due = choice.due or _AT_ONCE
    good_until = choice.good_until
    _check_times(due, good_until, now)
    unique_key = unique_slot = None
    if unique is not None:
        unique_slot = slot(asked["task_name"], asked["args"], asked["kwargs"], unique.key)
        unique_key = unique.key or unique_slot
    max_retries = asked.pop("max_retries")
    sha = fingerprint(
        delay_us=due.delay_us,
        run_at=due.run_at,
        good_until=good_until,
        good_for_us=good_for_us,
        unique_key=unique_slot,
        **asked,
    )
    if good_until is None and good_for_us is not None:
        # Counted from when it may run; a step of a workflow counts anew when it is unblocked.
        good_until = (due.run_at or now + (due.delay_us or 0)) + good_for_us
    parent = running.get()
    return Call(
        Submission(
            id=choice.id or new_id(),
            enqueue_sha=sha,
            sent_at=now,
            delay_us=due.delay_us,
            run_at=due.run_at,
            good_until=good_until,
            good_for_us=good_for_us,
            max_retries=max_retries,
            unique_key=unique_key,
            unique_slot=unique_slot,
            on_conflict="return" if unique is None else unique.on_conflict,
            parent_id=None if parent is None else parent.task_id,
            root_id=None if parent is None else parent.root_id,
            trace_context=None if parent is None else parent.trace_context,
            **asked,
        ),
        own_id=choice.id is not None,
    )


def _check_times(due: Due, good_until: int | None, now: int) -> None:
    if good_until is None:
        return
    if good_until <= now:
        raise ConfigError(
            f"good_until={from_us(good_until).isoformat()} has passed: the task would never run",
            option="good_until",
        )
    begins = due.run_at if due.run_at is not None else now + (due.delay_us or 0)
    if good_until <= begins:
        raise ConfigError(
            f"good_until={from_us(good_until).isoformat()} is not after the time it is to run, "
            f"{from_us(begins).isoformat()}: the task would never run",
            option="good_until",
        )


def _tags(tags: Sequence[str]) -> str | None:
    return to_json(tags) if tags else None
