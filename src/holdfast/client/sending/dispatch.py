"""From a call to a handle.

Owns what a sender gets back: the handle of the task there is now, or an error that carries
the call, so that `app.resend(error)` can make the same send again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

from holdfast.client.access import Access
from holdfast.client.handle import TaskHandle
from holdfast.client.registry import Registry
from holdfast.client.sending.call import Call, Form
from holdfast.client.sending.send_options import SendOptions
from holdfast.client.sending.sender import refuse
from holdfast.client.waiting.result import Decode
from holdfast.core.errors import ConfigError, HoldfastError
from holdfast.core.records import SubmitAnswer, Submitted

__all__ = ["Dispatch", "ManyArguments"]

ManyArguments: TypeAlias = "Sequence[Any] | Mapping[str, Any]"
"""The arguments of one call of `send_many`: by position, or by name."""
_NONE: Final[dict[str, Any]] = {}
_CREATED: Final = SubmitAnswer.CREATED


class Dispatch:
    """Sends calls for one app."""

    def __init__(self, access: Access, registry: Registry) -> None:
        self.access = access
        self.registry = registry

    def prepare(self, form: Form, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        """A call, checked and encoded."""
        self.access.check_open()
        return form.fill(args, kwargs, self.access.config.max_payload)

    def prepare_many(self, form: Form, calls: Iterable[ManyArguments]) -> list[Call]:
        """One call for each set of arguments."""
        self.access.check_open()
        if form.has_id:
            raise ConfigError("an id is for one task: leave it out of send_many", option="id")
        arguments = (
            # The tuple first: asking an abstract class is dear, and this runs for each of many.
            (given, _NONE) if type(given) is tuple else _arguments(given, place)
            for place, given in enumerate(calls)
        )
        return form.fill_many(arguments, self.access.config.max_payload)

    def form_of(self, name: str, version: int | None, choice: SendOptions) -> Form:
        """The form of a task by its name: checked if it is defined here."""
        known = self.registry.find(name, version)
        if known is not None:
            return Form.of(known, choice)
        return Form.named(name, version, choice)

    def send(self, call: Call, *, repeated: bool = False) -> TaskHandle[Any]:
        """Send a call."""
        try:
            answer = self.access.send(call.submission, contended=call.contended or repeated)
            return self._handle(call, answer, repeated)
        except HoldfastError as error:
            error.call = call
            raise

    async def asend(self, call: Call, *, repeated: bool = False) -> TaskHandle[Any]:
        """Send a call."""
        try:
            answer = await self.access.asend(call.submission, contended=call.contended or repeated)
            return self._handle(call, answer, repeated)
        except HoldfastError as error:
            error.call = call
            raise

    def send_all(self, calls: Sequence[Call], *, repeated: bool = False) -> list[TaskHandle[Any]]:
        """Send calls in one transaction: all of them, or none."""
        if not calls:
            return []
        try:
            answers = self.access.send_all([call.submission for call in calls])
        except HoldfastError as error:
            error.call = tuple(calls)
            raise
        return self._handles(calls, answers, repeated)

    async def asend_all(
        self, calls: Sequence[Call], *, repeated: bool = False
    ) -> list[TaskHandle[Any]]:
        """Send calls in one transaction: all of them, or none."""
        if not calls:
            return []
        try:
            answers = await self.access.asend_all([call.submission for call in calls])
        except HoldfastError as error:
            error.call = tuple(calls)
            raise
        return self._handles(calls, answers, repeated)

    def handle(self, task_id: UUID, name: str, version: int) -> TaskHandle[Any]:
        """The handle of a task that is known to exist."""
        return TaskHandle(
            self.access, task_id.bytes, created=False, decode=self._decoder(name, version)
        )

    def _handle(self, call: Call, answer: Submitted, repeated: bool) -> TaskHandle[Any]:
        created = answer.answer is _CREATED
        submission = call.submission
        if not created:
            refuse(submission, answer)
            created = _is_created(call, answer, repeated)
        decode = self._decoder(submission.task_name, submission.version)
        return TaskHandle(self.access, answer.id, created=created, decode=decode)

    def _handles(
        self, calls: Sequence[Call], answers: Sequence[Submitted], repeated: bool
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


def _is_created(call: Call, answer: Submitted, repeated: bool) -> bool:
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
