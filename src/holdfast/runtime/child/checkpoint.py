"""Durable steps inside a task: a value that was stored is not computed again.

Owns the reading and writing of one run's checkpoints. Both are fenced by the run's claim: a
run that lost it gets `ClaimLost` here, before it does the next step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeVar

from holdfast.core.errors import ClaimLost, ConfigError, PayloadError
from holdfast.core.payload import codec
from holdfast.core.payload.signature import Signature
from holdfast.runtime.wire.messages import Job
from holdfast.store.protocol import Store
from holdfast.store.verbs import evidence

T = TypeVar("T")

_LONGEST_NAME: Final = 255


@dataclass(frozen=True, slots=True)
class Found:
    """A step that was made before, and its value (which may be None)."""

    value: Any


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, store: Store, job: Job, max_payload: int) -> None:
        self._store = store
        self._job = job
        self._limit = max_payload
        self._known: dict[str, str] = {}

    def find(self, name: str, function: Callable[..., Any]) -> Found | None:
        """The stored value of a step, if it has one."""
        _check(name)
        text = self._known.get(name)
        # The first start ever has no past, and what it stored itself is known here.
        if text is None and self._job.attempt > 1:
            read = self._store.attempt(
                lambda: evidence.read_checkpoint(self._job.key, self._job.token, name)
            )
            if read is None:
                raise ClaimLost(self._job.id, "checkpoint")
            text = read.value
            if text is not None:
                self._known[name] = text
        return None if text is None else Found(_decode(function, name, text))

    def keep(self, name: str, function: Callable[..., T], value: T) -> T:
        """Store the value of a step; gives it back as a later run will get it."""
        text = codec.encode_value(value, self._limit, name=f"checkpoint {name!r}")
        kept = _decode(function, name, text)
        written = self._store.attempt(
            lambda: evidence.write_checkpoint(self._job.key, self._job.token, name, text)
        )
        if not written:
            raise ClaimLost(self._job.id, "checkpoint")
        self._known[name] = text
        return kept


def _check(name: object) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or "\x00" in name:
        raise ConfigError(
            f"checkpoint name {name!r:.300} is not usable: give a text of 1 to {_LONGEST_NAME} "
            "characters",
            option="name",
        )


def _decode(function: Callable[..., T], name: str, text: str) -> T:
    signature = _signature(function)
    if signature is None:
        plain: T = codec.decode(text)
        return plain
    try:
        value: T = signature.decode_result(text)
    except PayloadError as error:
        raise PayloadError(
            f"checkpoint {name!r} holds a value that does not fit its step: {error}",
            path=error.path,
            problem="mismatch",
        ) from error
    return value


@lru_cache(maxsize=256)
def _signature(function: Callable[..., Any]) -> Signature | None:
    try:
        found = Signature(function, getattr(function, "__qualname__", repr(function)))
        found.resolve()
    except (TypeError, ValueError, ConfigError):
        # A builtin, or parameters that cannot travel: the value comes back as plain data.
        return None
    return found
