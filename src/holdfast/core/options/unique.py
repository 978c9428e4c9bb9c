"""One task per key: while it lives, until it has begun, or once and for all.

Owns the `Unique` option and the slot it occupies: a text that at most one task may hold. Keeping
it so, and freeing it as the task goes from state to state, is the database's part; no timer does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from holdfast.core.digest import hex_digest
from holdfast.core.errors import ConfigError
from holdfast.core.moment import Span
from holdfast.core.options import checks
from holdfast.core.payload.codec import canonical, to_json
from holdfast.core.records import OnConflict

__all__ = ["Unique", "UniqueUntil", "in_period", "key_of", "slot"]

UniqueUntil: TypeAlias = Literal["started", "ended", "deleted"]

_ON_CONFLICT: Final = get_args(OnConflict)
_UNTIL: Final[tuple[UniqueUntil, ...]] = get_args(UniqueUntil)
_PERIOD_MARK: Final = "@"
"""What the name of a task cannot begin with."""
_LONGEST_KEY: Final = 255
_SHORTEST_PERIOD_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Unique:
    """At most one task with this key.

    `until` says when the key is free again: when the task has "started", when it has "ended" (the
    default), or when it has been "deleted", by an operator or by retention: an idempotency key
    that outlives the run.

    With a `period` (seconds, a timedelta, or text such as "1h") there is one task for each key and
    period. Periods are whole multiples since 1970 UTC by the database's clock, so those of an hour
    begin on the hour; a task belongs to the period in which it is to run. Such a key is held until
    the task is deleted, and no other `until` can be given with it.

    Without a `key` the arguments are the key, exactly as they are sent: `f(1)` and `f(a=1)`
    are two. `on_conflict` says what a send does when the key is held: "return" gives the
    handle of the task that holds it, "replace" gives it the new arguments, "debounce" puts
    it off to the new time, with the new deadline, "raise" raises `UniqueConflict`. A holder that
    has started is never replaced or put off, but returned.
    """

    key: str | None = None
    on_conflict: OnConflict = "return"
    period: Span | None = None
    until: UniqueUntil | None = None
    """When the key is free again; None becomes "ended", and with a period "deleted"."""

    def __post_init__(self) -> None:
        self._check_key()
        if self.on_conflict not in _ON_CONFLICT:
            raise ConfigError(
                f"Unique(on_conflict={self.on_conflict!r}) is unknown: "
                f"use one of {', '.join(_ON_CONFLICT)}",
                option="on_conflict",
            )
        if self.period is not None:
            self._check_period(self.period)
        if self.until is None:
            object.__setattr__(self, "until", "ended" if self.period is None else "deleted")
        else:
            checks.choice(self.until, _UNTIL, "until")

    @property
    def period_us(self) -> int | None:
        """The period in microseconds."""
        return None if self.period is None else checks.positive_us(self.period, "period")

    @property
    def stored_until(self) -> Literal["started", "deleted"] | None:
        """`until` as it stands with the task: nothing for the usual."""
        return None if self.until is None or self.until == "ended" else self.until

    def _check_period(self, period: Span) -> None:
        us = checks.positive_us(period, "period")
        if us < _SHORTEST_PERIOD_US:
            raise ConfigError(
                f"Unique(period={period!r}) is too short: give at least a second", option="period"
            )
        if self.until not in (None, "deleted"):
            raise ConfigError(
                f"Unique(until={self.until!r}) contradicts period={period!r}: one for each period "
                "means that the end of the first does not make room for a second; leave one out",
                option="until",
            )

    def _check_key(self) -> None:
        key: object = self.key
        if key is not None and (not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY):
            raise ConfigError(
                f"Unique(key={key!r:.300}) must be a string of 1 to {_LONGEST_KEY} characters",
                option="key",
            )
        if isinstance(key, str) and ("\x00" in key or not _is_text(key)):
            raise ConfigError(f"Unique(key={key!r}) must be text without NUL", option="key")


def slot(task_name: str, args_json: str, kwargs_json: str, key: str | None = None) -> str:
    """The slot of a call: its task and its key, for people to read, or a hash of its arguments."""
    if key is not None:
        # A task's name has no space in it, so this names one task and one key.
        return f"{task_name} {key}"
    # The order of keyword arguments and of dict keys must not make another slot.
    held = to_json(["call", task_name, canonical(args_json), canonical(kwargs_json)])
    return hex_digest(held)


def key_of(task_name: str, held: str) -> str:
    """The key of a slot as its author gave it, or the hash that stands for the arguments."""
    if held.startswith(_PERIOD_MARK):
        held = held.partition(" ")[2]
    return held.removeprefix(f"{task_name} ")


def in_period(slot: str, at: int, period_us: int) -> str:
    """The slot of a call that is to run at this time; `submit` makes the same in the database."""
    return f"{_PERIOD_MARK}{at // period_us}/{period_us} {slot}"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
