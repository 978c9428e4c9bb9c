"""Who operates, and the record of it.

Owns the answer to "who did this": `app.control.acting(by=…, origin=…)` says it for a block of code
(a thread, or an asyncio task and those it starts); without it, the user of the operating system.
What `recorded` wraps is written down in the transaction that does it, if it did anything.
"""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Final, Self, TypeVar
from uuid import UUID

from holdfast.core.errors import ConfigError
from holdfast.core.options import checks
from holdfast.core.payload.codec import to_json
from holdfast.core.text import clean
from holdfast.store.op import Mode, Op, Steps
from holdfast.store.verbs.audit_entries import NewEntry, add_entry

__all__ = [
    "Acting",
    "Effect",
    "actor_here",
    "choosing",
    "effect_on",
    "recorded",
    "system_user",
    "who_acts",
]

T = TypeVar("T")

IDS_RECORDED: Final = 100
"""How many ids the record of one action names."""
_LONGEST: Final = 1000
_LONGEST_DETAIL: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Actor:
    by: str
    origin: str | None
    filter: str | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """What an action came to."""

    count: int
    """How many tasks, queues, … it changed; nothing is written down for none."""
    subject: str
    detail: object = None


_actor: ContextVar[_Actor | None] = ContextVar("holdfast_acting", default=None)


class Acting:
    """What `app.control.acting(…)` returns: a context manager, sync and async."""

    def __init__(self, by: str, origin: str | None, filter: str | None) -> None:  # noqa: A002
        for option, value in (("by", by), ("origin", origin), ("filter", filter)):
            if value is not None and not isinstance(value, str):
                raise ConfigError(f"{option}={value!r} is not a text", option=option)
        if not by.strip():
            raise ConfigError("by is empty: say who acts", option="by")
        cut = [None if text is None else clean(text, _LONGEST) for text in (by, origin, filter)]
        self._actor = _Actor(cut[0] or "", cut[1], cut[2])
        self._entered: list[Token[_Actor | None]] = []

    def __enter__(self) -> Self:
        self._entered.append(_actor.set(self._actor))
        return self

    def __exit__(self, *_: object) -> None:
        _actor.reset(self._entered.pop())

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


def system_user() -> str:
    """The user of the operating system."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container may run under a number that has no name.
        import os

        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def actor_here() -> str:
    """Who acts, here and now."""
    return _here().by


def who_acts(by: str | None) -> str:
    """Who is said to act, or else who does: what is written beside the thing and in the record."""
    return actor_here() if by is None else checks.one_line(by, "by")


def _here() -> _Actor:
    return _actor.get() or _Actor(system_user(), f"program on {socket.gethostname()}")


def choosing(by_what: str) -> Acting:
    """The same who acts already, with what the tasks were chosen by."""
    actor = _here()
    return Acting(actor.by, actor.origin, actor.filter or by_what)


def effect_on(ids: Sequence[bytes], changes: dict[str, object] | None = None) -> Effect:
    """What was done to these tasks."""
    names = [str(UUID(bytes=raw)) for raw in ids]
    if len(names) == 1:
        return Effect(1, f"task {names[0]}", changes)
    detail = {**(changes or {}), "ids": names[:IDS_RECORDED]}
    return Effect(len(names), f"{len(names):,} tasks", detail)


def recorded(
    verb: str,
    make: Callable[[], Op[T]],
    effect: Callable[[T], Effect],
    *,
    by: str | None = None,
) -> Callable[[], Op[T]]:
    """The same operation, which writes down that it was done, by whom (who acts here, unless `by`
    is somebody else) and to how many."""
    actor = _here()
    who = clean(actor.by if by is None else by, _LONGEST)

    def steps() -> Steps[T]:
        answer = yield from make()
        done = effect(answer)
        if done.count:
            detail = None if done.detail is None else clean(to_json(done.detail), _LONGEST_DETAIL)
            yield from add_entry(
                NewEntry(
                    who,
                    actor.origin,
                    verb,
                    clean(done.subject, _LONGEST),
                    actor.filter,
                    done.count,
                    detail,
                )
            )
        return answer

    return lambda: Op(steps(), Mode.WRITE, verb)
