"""From a call to a handle, whatever the network does in between.

Owns what a sender gets back: the handle of the task there is now, or an error that carries
the call, so that `app.resend(error)` can make the same send again.

A submission carries its id and the digest of its content, so the store recognises a repeated one;
therefore a send whose COMMIT was not answered is simply made again, and lands once. Sends that
are made at the same time share a commit, which is tried for `send_timeout` seconds
(`store.group_commit`); then the caller gets `StoreUnavailable` and may resend. Sends that may
have to wait for another transaction's lock (a unique key, an id of the caller's choosing, a call
that was sent before) travel in a group of their own, so that they hold up no others.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, TypeAlias
from uuid import UUID

from holdfast.client.access import Access, Again
from holdfast.client.handle import Decode, TaskHandle, decoder_of_list
from holdfast.client.registry import Registry
from holdfast.client.sending.call import Form, PreparedCall
from holdfast.client.sending.send_options import SendOptions
from holdfast.core.errors import (
    ConfigError,
    HoldfastError,
    PayloadMismatch,
    StoreUnavailable,
    UniqueConflict,
)
from holdfast.core.records import Submission, SubmitAnswer, Submitted
from holdfast.core.tracing import SendTrace, Tracing
from holdfast.store.group_commit import MOST_TRIES, GroupCommit, Patience
from holdfast.store.op import Op, Steps, writes
from holdfast.store.verbs import routes
from holdfast.store.verbs.submit import submit

__all__ = ["Dispatch", "ManyArguments", "submit_all"]

ManyArguments: TypeAlias = "Sequence[Any] | Mapping[str, Any]"
"""The arguments of one call of `send_many`: by position, or by name."""
MOST_BYTES: Final = 8 * 1024 * 1024
CONTENDED_LEADERS: Final = 3
CHUNK: Final = 2_000
_NONE: Final[dict[str, Any]] = {}
_CREATED: Final = SubmitAnswer.CREATED
_AGAIN: Final = SubmitAnswer.AGAIN


class Dispatch:
    """Sends calls for one app."""

    def __init__(self, access: Access, registry: Registry) -> None:
        self.access = access
        self.registry = registry
        self.tracing: Tracing | None = None
        """Who watches sends and runs, if somebody does."""
        access.in_each_process(self._begin)

    def _begin(self) -> None:
        self._patience = Patience(self.access.config.send_timeout)
        self._plain = self._group(leaders=1)
        self._contended = self._group(leaders=CONTENDED_LEADERS)

    def _group(self, *, leaders: int) -> GroupCommit[Submission, Submitted]:
        return GroupCommit(
            self._commit_together,
            self.access.offload.submit,
            patience=self._patience,
            weight=_bytes,
            heaviest=MOST_BYTES,
            leaders=leaders,
        )

    def form_of(self, name: str, version: int | None, choice: SendOptions) -> Form:
        """The form of a task by its name: checked if it is defined here."""
        known = self.registry.find(name, version)
        if known is not None:
            return Form.of(known, choice)
        return Form.named(name, version, choice)

    def send(self, form: Form, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskHandle[Any]:
        """Send a call with these arguments."""
        if self.tracing is None:
            return self._send(self._fill(form, args, kwargs), form.decode)
        with self.tracing.send(form.queue, form.name, 1) as span:
            call = _carrying(span.context, self._fill(form, args, kwargs))
            handle = self._send(call, form.decode)
            span.sent([handle.id.bytes])
            return handle

    async def asend(
        self, form: Form, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskHandle[Any]:
        """Send a call with these arguments."""
        if self.tracing is None:
            return await self._asend(self._fill(form, args, kwargs), form.decode)
        with self.tracing.send(form.queue, form.name, 1) as span:
            call = _carrying(span.context, self._fill(form, args, kwargs))
            handle = await self._asend(call, form.decode)
            span.sent([handle.id.bytes])
            return handle

    def resend(self, call: PreparedCall) -> TaskHandle[Any]:
        """Send a call that was sent before."""
        return self._send(call, self._decoder(call.task_name, call.version), repeated=True)

    async def aresend(self, call: PreparedCall) -> TaskHandle[Any]:
        """Send a call that was sent before."""
        decode = self._decoder(call.task_name, call.version)
        return await self._asend(call, decode, repeated=True)

    def prepare_many(self, form: Form, calls: Iterable[ManyArguments]) -> list[PreparedCall]:
        """One call for each set of arguments."""
        self.access.check_open()
        if form.has_id:
            raise ConfigError("an id is for one task: leave it out of send_many", option="id")
        arguments = (
            # The tuple first: asking an abstract class takes long, and this runs for each of many.
            (given, _NONE) if type(given) is tuple else _arguments(given, place)
            for place, given in enumerate(calls)
        )
        return form.fill_many(arguments, self.access.config.max_payload)

    def send_all(
        self, calls: Sequence[PreparedCall], *, repeated: bool = False
    ) -> list[TaskHandle[Any]]:
        """Send calls in one transaction: all of them, or none."""
        if not calls:
            return []
        if self.tracing is None or repeated:
            return self._send_all(calls, repeated)
        with _watched(self.tracing, calls) as span:
            handles = self._send_all([_carrying(span.context, call) for call in calls], repeated)
            span.sent([handle.id.bytes for handle in handles])
            return handles

    def _send_all(self, calls: Sequence[PreparedCall], repeated: bool) -> list[TaskHandle[Any]]:
        try:
            answers = self._commit_all([call.submission for call in calls])
        except HoldfastError as error:
            error.call = tuple(calls)
            raise
        return self._handles(calls, answers, repeated)

    async def asend_all(
        self, calls: Sequence[PreparedCall], *, repeated: bool = False
    ) -> list[TaskHandle[Any]]:
        """Send calls in one transaction: all of them, or none."""
        if not calls:
            return []
        if self.tracing is None or repeated:
            return await self._asend_all(calls, repeated)
        with _watched(self.tracing, calls) as span:
            carrying = [_carrying(span.context, call) for call in calls]
            handles = await self._asend_all(carrying, repeated)
            span.sent([handle.id.bytes for handle in handles])
            return handles

    async def _asend_all(
        self, calls: Sequence[PreparedCall], repeated: bool
    ) -> list[TaskHandle[Any]]:
        try:
            answers = await self._acommit_all([call.submission for call in calls])
        except HoldfastError as error:
            error.call = tuple(calls)
            raise
        return self._handles(calls, answers, repeated)

    def handle(
        self, task_id: UUID, name: str, version: int, *, of_map: bool = False
    ) -> TaskHandle[Any]:
        """The handle of a task that is known to exist; of a map, its value is a list of results."""
        decode = self._decoder(name, version)
        if of_map and decode is not None:
            decode = decoder_of_list(decode)
        return TaskHandle(self.access, task_id.bytes, created=False, decode=decode)

    def _fill(self, form: Form, args: Sequence[Any], kwargs: Mapping[str, Any]) -> PreparedCall:
        self.access.check_open()
        return form.fill(args, kwargs, self.access.config.max_payload)

    def _send(
        self, call: PreparedCall, decode: Decode | None, *, repeated: bool = False
    ) -> TaskHandle[Any]:
        try:
            answer = self._commit(call.submission, contended=repeated or call.contended)
            return self._handle(call, answer, decode, repeated)
        except HoldfastError as error:
            error.call = call
            raise

    async def _asend(
        self, call: PreparedCall, decode: Decode | None, *, repeated: bool = False
    ) -> TaskHandle[Any]:
        try:
            answer = await self._acommit(call.submission, contended=repeated or call.contended)
            return self._handle(call, answer, decode, repeated)
        except HoldfastError as error:
            error.call = call
            raise

    def _commit(self, submission: Submission, *, contended: bool) -> Submitted:
        access = self.access
        if access.bound() is not None:
            with _settling(submission):
                return access.run(lambda: _submit_one(submission))
        access.enter()
        try:
            return (self._contended if contended else self._plain).send(submission)
        finally:
            access.leave()

    async def _acommit(self, submission: Submission, *, contended: bool) -> Submitted:
        if self.access.bound() is not None:
            with _settling(submission):
                return await self.access.arun(lambda: _submit_one(submission))
        self.access.check_open()
        return await (self._contended if contended else self._plain).asend(submission)

    def _commit_together(
        self, submissions: Sequence[Submission]
    ) -> Sequence[Submitted | Exception]:
        """Submit the tasks of several senders in one transaction."""
        routed = self.access.routing.route(submissions, self.access.attempt)
        answers = self.access.attempt(lambda: submit(routed))
        for answer in answers:
            if answer.answer is _AGAIN:
                return [
                    _never_settled(s) if a.answer is _AGAIN else a
                    for s, a in zip(submissions, answers, strict=True)
                ]
        return answers

    def _commit_all(self, submissions: Sequence[Submission]) -> list[Submitted]:
        access = self.access
        if access.bound() is not None:
            with _settling(submissions[0]):
                return access.run(lambda: _submit_along_routes(submissions))
        access.enter()
        try:
            return self._try_all(submissions)
        finally:
            access.leave()

    async def _acommit_all(self, submissions: Sequence[Submission]) -> list[Submitted]:
        access = self.access
        if access.bound() is not None:
            with _settling(submissions[0]):
                return await access.arun(lambda: _submit_along_routes(submissions))
        access.check_open()
        return await access.offload.run(lambda: self._try_all(submissions))

    def _try_all(self, submissions: Sequence[Submission]) -> list[Submitted]:
        deadline = time.monotonic() + self._patience.seconds
        tries = 0
        while True:
            try:
                routed = self.access.routing.route(submissions, self.access.attempt)
                answers = self.access.attempt(partial(submit_all, routed))
                self._patience.is_away = False
                return answers
            except Again:
                tries += 1
                if tries >= MOST_TRIES:
                    raise _never_settled(submissions[0]) from None
            except StoreUnavailable as error:
                tries += 1
                if time.monotonic() >= deadline:
                    raise
                self._patience.note(error)
                time.sleep(self._patience.pause(tries))

    def _handle(
        self, call: PreparedCall, answer: Submitted, decode: Decode | None, repeated: bool
    ) -> TaskHandle[Any]:
        created = answer.answer is _CREATED
        if not created:
            _refuse(call.submission, answer)
            created = _is_created(call, answer, repeated)
        return TaskHandle(self.access, answer.id, created=created, decode=decode)

    def _handles(
        self, calls: Sequence[PreparedCall], answers: Sequence[Submitted], repeated: bool
    ) -> list[TaskHandle[Any]]:
        access = self.access
        decode = self._decoder(calls[0].task_name, calls[0].version)
        return [
            TaskHandle(
                access,
                answer.id,
                created=answer.answer is _CREATED or _is_created(call, answer, repeated),
                decode=decode,
            )
            for call, answer in zip(calls, answers, strict=True)
        ]

    def _decoder(self, name: str, version: int) -> Decode | None:
        known = self.registry.find(name, version)
        return None if known is None else known.signature.decode_result


def _bytes(submission: Submission) -> int:
    """Roughly its bytes on the wire."""
    return len(submission.args) + len(submission.kwargs)


def _submit_one(submission: Submission) -> Op[Submitted]:
    """Submit one task along the routes; `Again` if the holder of its unique key ended in between.

    In the caller's transaction the routes are read by the operation that writes: SQLite lets a
    transaction that has read before it wrote wait for nobody.
    """
    op = submit([submission])
    return Op(_one(submission), op.mode, op.name)


def _one(submission: Submission) -> Steps[Submitted]:
    routed = yield from routes.routed([submission])
    (answer,) = yield from submit(routed)
    if answer.answer is _AGAIN:
        raise Again
    return answer


@writes
def _submit_along_routes(submissions: Sequence[Submission]) -> Steps[list[Submitted]]:
    return (yield from submit_all((yield from routes.routed(submissions))))


@writes
def submit_all(submissions: Sequence[Submission]) -> Steps[list[Submitted]]:
    """Submit all or none: a refusal of one rolls back the transaction."""
    answers: list[Submitted] = []
    # A step is refused if one that it waits for is not there, so a graph is not cut.
    size = max(CHUNK, len(submissions)) if any(s.depends_on for s in submissions) else CHUNK
    for start in range(0, len(submissions), size):
        part = submissions[start : start + size]
        found = yield from submit(part)
        for submission, answer in zip(part, found, strict=True):
            if answer.answer is not _CREATED:
                if answer.answer is _AGAIN:
                    raise Again
                _refuse(submission, answer)
        answers += found
    return answers


def _refuse(submission: Submission, answer: Submitted) -> None:
    """Raise what the store answered, if that was a refusal."""
    if answer.answer is SubmitAnswer.MISMATCH:
        raise PayloadMismatch(answer.id)
    if answer.answer is SubmitAnswer.CONFLICT:
        raise UniqueConflict(answer.id, name=submission.task_name, key=submission.unique_key)


def _never_settled(submission: Submission) -> HoldfastError:
    """What is raised when following the holder of a unique key has no end."""
    return StoreUnavailable(
        f"the holder of the unique key {submission.unique_key!r} of task "
        f"{submission.task_name!r} ended again and again while this was being sent: send again"
    )


@contextmanager
def _settling(submission: Submission) -> Iterator[None]:
    try:
        yield
    except Again:
        raise _never_settled(submission) from None


def _is_created(call: PreparedCall, answer: Submitted, repeated: bool) -> bool:
    """Whether a task that was there already is all the same the work of this very send."""
    if answer.answer is SubmitAnswer.EXISTING and answer.id == call.submission.id:
        # An id that was made for this send and exists already: the answer of our own first
        # try was lost, and the second has found what it did.
        return not call.own_id and not repeated
    return False


def _arguments(given: Any, place: int) -> tuple[Sequence[Any], Mapping[str, Any]]:
    if isinstance(given, Mapping):
        return (), given
    if isinstance(given, Sequence) and not isinstance(given, str | bytes | bytearray):
        return given, _NONE
    raise ConfigError(
        f"call {place} of send_many is {given!r:.100}: give the arguments of each call as a "
        "tuple, such as (1, 2) or (1,), or as a dict of names",
        option="calls",
    )


def _watched(tracing: Tracing, calls: Sequence[PreparedCall]) -> AbstractContextManager[SendTrace]:
    """Around many sends; those of one task and one queue, as they nearly always are."""
    first = calls[0].submission
    return tracing.send(first.queue_name, first.task_name, len(calls))


def _carrying(context: str | None, call: PreparedCall) -> PreparedCall:
    if context is None:
        return call
    return PreparedCall(call.submission._replace(trace_context=context), call.own_id)
