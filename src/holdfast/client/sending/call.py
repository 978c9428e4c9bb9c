"""A call that was built and not yet sent.

Owns the way from a task, its options and its arguments to a `Submission`: everything is
encoded, checked and stamped here, so whatever fails does so before any write. A call is
plain data and keeps its id: sending it again is the same send.

Owns also the `enqueue_sha` of a task, by which the store knows two sends for the same send. A
send may be repeated under its id when its answer was lost; the repetition is recognised by this
digest, and anything else under the same id is a `PayloadMismatch`. So it covers what the caller
asked for, and nothing that differs between two tries: not the time of sending, not the machine.
"""

from __future__ import annotations

import reprlib
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple
from uuid import UUID

from holdfast.client.registry import is_builder
from holdfast.client.sending.send_options import SendOptions
from holdfast.core.digest import hex_digest
from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.identity import Lineage, current, new_id, new_ids
from holdfast.core.moment import Due, from_us
from holdfast.core.options import checks
from holdfast.core.options.concurrency_key import KeyTemplate
from holdfast.core.options.definition import TaskDefinition
from holdfast.core.options.policy import BY_NAME
from holdfast.core.options.unique import Unique, slot
from holdfast.core.payload.codec import encode_arguments, to_json
from holdfast.core.payload.signature import Signature
from holdfast.core.records import Submission

__all__ = ["Fingerprinter", "Form", "PreparedCall"]

_AT_ONCE: Final = Due()
_BLANK: Final = Submission(b"", "", 1, "default", 50, "", "", "", 0)
_MOST_SHOWN: Final = 5
# The fields of a submission before and behind those that differ between the calls of a form:
# the id before the first, the arguments, their digest and the time between the two.
_BEFORE: Final = slice(1, Submission._fields.index("args"))
_AFTER: Final = slice(Submission._fields.index("sent_at") + 1, None)


class PreparedCall(NamedTuple):
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
        """Whether sending it may have to wait for another open transaction."""
        return self.own_id or self.submission.unique_slot is not None

    def __repr__(self) -> str:
        return f"<PreparedCall {self.task_name} {self.id}>"


class Fingerprinter:
    """Digests of sends that differ in their arguments only, so the rest is encoded once.

    What is digested is one JSON array of all that was asked for; `good_until` is among it only
    if the caller gave it: a deadline computed from `good_for` moves with the clock.
    """

    __slots__ = ("_head", "_tail")

    def __init__(self, asked: Submission) -> None:
        before = (asked.task_name, asked.version, asked.queue_name, asked.priority)
        times = (asked.delay_us, asked.run_at, asked.good_until, asked.good_for_us)
        self._head = to_json(before)[:-1]
        rest: list[object] = [asked.task_options, asked.tags]
        if asked.concurrency_key is not None:
            rest.append(asked.concurrency_key)
        if asked.unique_until is not None or asked.unique_period_us is not None:
            rest += (asked.unique_until, asked.unique_period_us)
        self._tail = to_json((*times, *rest))[1:-1]

    def __call__(self, args: str, kwargs: str, unique_key: str | None = None) -> str:
        """The digest of one send: 64 hex digits."""
        arguments = to_json((args, kwargs))[1:-1]
        key = "null" if unique_key is None else to_json(unique_key)
        return hex_digest(f"{self._head},{arguments},{self._tail},{key}]")


class Form:
    """Everything about a call but its arguments: filled in once for each send."""

    def __init__(
        self,
        blank: Submission,
        choice: SendOptions,
        unique: Unique | None = None,
        signature: Signature | None = None,
        key_template: KeyTemplate | None = None,
    ) -> None:
        due = choice.due or _AT_ONCE
        chosen: dict[str, Any] = {"delay_us": due.delay_us, "run_at": due.run_at}
        if choice.queue is not None:
            chosen["queue_name"] = choice.queue
        chosen["is_routable"] = choice.queue is None
        if choice.priority is not None:
            chosen["priority"] = choice.priority
        if choice.tags is not None:
            chosen["tags"] = to_json(choice.tags) if choice.tags else None
        if choice.good_until is not None or choice.good_for_us is not None:
            chosen |= {"good_until": choice.good_until, "good_for_us": choice.good_for_us}
        if choice.concurrency_key is not None:
            chosen["concurrency_key"] = choice.concurrency_key
        is_chosen = choice.concurrency_key is not None or choice.no_key
        self._key_template = None if is_chosen else key_template
        self._not_of_a_step = _not_of_a_step(choice)
        self._unique = None if choice.not_unique else choice.unique or unique
        if self._unique is not None:
            chosen["on_conflict"] = self._unique.on_conflict
            chosen["unique_until"] = self._unique.stored_until
            chosen["unique_period_us"] = self._unique.period_us
        blank = blank._replace(**chosen)
        self._name = self.name = blank.task_name
        self.queue: str = chosen.get("queue_name", blank.queue_name)
        """Where it is sent, unless a route says otherwise."""
        self._due = due
        self._good_until = choice.good_until
        self._signature = signature
        self.decode = None if signature is None else signature.decode_result
        """Reads the result of its calls; None where the task is not defined here."""
        self._is_builder = False
        self._id = choice.id
        self.has_id = choice.id is not None
        """Whether it can be filled in only once, because the caller chose the id."""
        self._digest = Fingerprinter(blank)
        # A send puts its own five fields between these: half the time of naming all fields.
        fields: tuple[Any, ...] = blank
        self._before, self._after = fields[_BEFORE], fields[_AFTER]

    @classmethod
    def of(cls, task: TaskDefinition, choice: SendOptions) -> Form:
        """For a task that is defined here, whose signature will be checked."""
        blank = _BLANK._replace(
            task_name=task.name,
            version=task.version,
            queue_name=task.queue,
            priority=task.priority,
            task_options=task.task_options,
            max_retries=task.policy.max_retries,
            tags=task.tags_json,
            good_for_us=task.good_for_us,
        )
        form = cls(blank, choice, task.unique, task.signature, task.key_template)
        form._is_builder = is_builder(task)
        return form

    @classmethod
    def named(cls, name: str, version: int | None, choice: SendOptions) -> Form:
        """For a task whose code is elsewhere; its worker will check the arguments, and knows its
        retries, time limits and other rules."""
        blank = _BLANK._replace(
            task_name=checks.task_name(name),
            version=1 if version is None else checks.at_least(1, version, "version"),
            task_options=BY_NAME,
        )
        return cls(blank, choice)

    def fill(self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> PreparedCall:
        """A call with these arguments; raises whatever is wrong with it."""
        return self._fill(args, kwargs, limit, self._id or new_id(), current())

    def fill_many(
        self, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]], limit: int
    ) -> list[PreparedCall]:
        """One call for each pair of arguments, each with an id of its own."""
        given = list(calls)
        lineage = current()
        filled: list[PreparedCall] = []
        try:
            for (args, kwargs), id in zip(given, new_ids(len(given)), strict=True):
                filled.append(self._fill(args, kwargs, limit, id, lineage))
        except PayloadError as error:
            place = len(filled)
            shown = f"call {place} of send_many, {_shown(self._name, *given[place])}"
            raise PayloadError(
                f"{shown}: {error}", path=error.path, problem=error.problem, place=place
            ) from error
        return filled

    def check_call(self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int) -> None:
        """Raise whatever is wrong with these arguments."""
        self._check(args, kwargs, *encode_arguments(args, kwargs, limit))

    def fill_step(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], limit: int, *, partial: bool
    ) -> Submission:
        """A step of a workflow: never unique, and under an id of its own. `partial`: some
        arguments are still to come, and what is there has been checked."""
        if self._not_of_a_step is not None:
            raise ConfigError(
                f"{self._not_of_a_step} is not for a step (of task {self._name!r}): give it to "
                "the workflow",
                option=self._not_of_a_step,
            )
        args_json, kwargs_json, special = encode_arguments(args, kwargs, limit)
        if not partial:
            self._check(args, kwargs, args_json, kwargs_json, special)
        now = time.time_ns() // 1_000
        if self._good_until is not None:
            self._check_times(self._good_until, now)
        sha = self._digest(args_json, kwargs_json)
        submission = Submission._make(
            (new_id(), *self._before, args_json, kwargs_json, sha, now, *self._after)
        )
        submission = submission._replace(
            on_conflict="return", unique_until=None, unique_period_us=None
        )
        return _below(submission, current())

    def key_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """The concurrency key that the task makes of these arguments."""
        return None if self._key_template is None else self._key_template.fill(args, kwargs)

    def _check(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        args_json: str,
        kwargs_json: str,
        special: bool,
    ) -> None:
        if self._signature is None:
            return
        if special:
            self._signature.check_types(args, kwargs, args_json, kwargs_json)
        else:
            self._signature.check(args_json, kwargs_json)

    def _fill(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        limit: int,
        id: bytes,
        lineage: Lineage | None,
    ) -> PreparedCall:
        if self._is_builder:
            raise ConfigError(
                f"{self._name!r} is a workflow, and a send by its name would be a task: call the "
                "send of its function, app.named_workflow(…).send_plain, `holdfast workflows "
                "send`, or POST /api/v1/workflows",
                option="name",
            )
        args_json, kwargs_json, special = encode_arguments(args, kwargs, limit)
        self._check(args, kwargs, args_json, kwargs_json, special)
        now = time.time_ns() // 1_000
        if self._good_until is not None:
            self._check_times(self._good_until, now)
        key = unique_slot = None
        if self._unique is not None:
            key = self._unique.key
            unique_slot = slot(self._name, args_json, kwargs_json, key)
        sha = self._digest(args_json, kwargs_json, unique_slot)
        submission = Submission._make(
            (id, *self._before, args_json, kwargs_json, sha, now, *self._after)
        )
        if self._key_template is not None:
            turn = self._key_template.fill(args, kwargs)
            submission = submission._replace(concurrency_key=turn)
        if unique_slot is not None:
            submission = submission._replace(unique_key=key or unique_slot, unique_slot=unique_slot)
        if lineage is not None:
            submission = _below(submission, lineage)
        return PreparedCall(submission, self.has_id)

    def _check_times(self, good_until: int, now: int) -> None:
        until = f"good_until={from_us(good_until).isoformat()}"
        if good_until <= now:
            raise ConfigError(f"{until} has passed: the task would never run", option="good_until")
        begins = now + (self._due.delay_us or 0) if self._due.run_at is None else self._due.run_at
        if good_until <= begins:
            raise ConfigError(
                f"{until} is not after the time it is to run, {from_us(begins).isoformat()}: "
                "the task would never run",
                option="good_until",
            )


def _below(submission: Submission, lineage: Lineage | None) -> Submission:
    """The same, sent from a running task."""
    if lineage is None:
        return submission
    return submission._replace(
        parent_id=lineage.task_id,
        root_id=lineage.root_id,
        trace_context=lineage.trace_context,
    )


def _not_of_a_step(choice: SendOptions) -> str | None:
    """An option that belongs to a send of its own, if one was chosen."""
    if choice.unique is not None:
        return "unique"
    return "id" if choice.id is not None else None


def _shown(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The call as it would be written, each argument cut to a glance."""
    parts = [reprlib.repr(value) for value in args[:_MOST_SHOWN]]
    parts += [f"{key}={reprlib.repr(value)}" for key, value in islice(kwargs.items(), _MOST_SHOWN)]
    more = ", …" if len(args) + len(kwargs) > len(parts) else ""
    return f"{name}({', '.join(parts)}{more})"
