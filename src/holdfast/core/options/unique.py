"""One live task per key.

Owns the `Unique` option and the slot it occupies: a text that at most one task which has
not ended may hold. Keeping it so is the database's part.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final, get_args

from holdfast.core.errors import ConfigError
from holdfast.core.payload.codec import canonical, to_json
from holdfast.core.records import OnConflict

__all__ = ["Unique", "key_of", "slot"]

_ON_CONFLICT: Final = get_args(OnConflict)
_LONGEST_KEY: Final = 255


@dataclass(frozen=True, slots=True)
class Unique:
    """At most one task with this key exists that has not ended.

    Without a `key` the arguments are the key, exactly as they are sent: `f(1)` and `f(a=1)`
    are two. `on_conflict` says what a send does when the key is held: "return" gives the
    handle of the task that holds it, "replace" gives it the new arguments, "debounce" puts
    it off to the new time, with the new deadline, "raise" raises `UniqueConflict`. A holder that
    has started is never replaced or put off, but returned.
    """

    key: str | None = None
    on_conflict: OnConflict = "return"

    def __post_init__(self) -> None:
        key: object = self.key
        if key is not None and (not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY):
            raise ConfigError(
                f"Unique(key={key!r:.300}) must be a string of 1 to {_LONGEST_KEY} characters",
                option="key",
            )
        if isinstance(key, str) and ("\x00" in key or not _is_text(key)):
            raise ConfigError(f"Unique(key={key!r}) must be text without NUL", option="key")
        if self.on_conflict not in _ON_CONFLICT:
            raise ConfigError(
                f"Unique(on_conflict={self.on_conflict!r}) is unknown: "
                f"use one of {', '.join(_ON_CONFLICT)}",
                option="on_conflict",
            )


def slot(task_name: str, args_json: str, kwargs_json: str, key: str | None = None) -> str:
    """The slot of a call: its task and its key, for people to read, or a hash of its arguments."""
    if key is not None:
        # A task's name has no space in it, so this names one task and one key.
        return f"{task_name} {key}"
    # The order of keyword arguments and of dict keys must not make another slot.
    held = to_json(["call", task_name, canonical(args_json), canonical(kwargs_json)])
    return sha256(held.encode()).hexdigest()


def key_of(task_name: str, held: str) -> str:
    """The key of a slot as its author gave it, or the hash that stands for the arguments."""
    return held.removeprefix(f"{task_name} ")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
