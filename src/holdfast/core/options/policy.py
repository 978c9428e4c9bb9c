"""What should happen to a task, in the form that travels with it.

Owns `Policy` and its JSON, the `task_options` of a row. It holds everything a worker needs
to decide about a task whose code it does not have, so that any worker can recover any task.
Only what differs from the defaults is written; keys of newer code are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, get_type_hints

from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.options.retry import Retry
from holdfast.core.payload.codec import decode, split_object, to_json

__all__ = ["DEFAULT", "DEFAULT_TIMEOUT", "OnCrash", "OnShutdown", "Policy"]

OnCrash: TypeAlias = Literal["retry", "stall"]
OnShutdown: TypeAlias = Literal["resubmit", "stop", "continue"]

DEFAULT_TIMEOUT: Final = 3600.0
"""Seconds. There is always a timeout unless None is asked for: without one, a hung child
would keep its lease forever."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one task, checked where they were written."""

    retry: Retry | None = None
    timeout: float | None = DEFAULT_TIMEOUT
    max_heartbeat_interval: float | None = None
    on_shutdown: OnShutdown = "resubmit"
    on_crash: OnCrash = "retry"
    max_crashes: int = 3
    at_most_once: bool = False
    dead_letter: bool = True
    capture_output: bool = True

    @property
    def max_retries(self) -> int:
        """Retries that the policy grants; a row's own `max_retries` starts as this."""
        return self.retry.max_retries if self.retry is not None else 0

    @property
    def is_alone(self) -> bool:
        """Whether its runs get a process to themselves, because a crash ends more than the run."""
        return self.at_most_once or self.on_crash == "stall"

    def encode(self) -> str | None:
        """The JSON of what differs from the defaults; None if nothing does."""
        plain: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                plain[field.name] = value.as_dict() if isinstance(value, Retry) else value
        return to_json(plain) if plain else None

    @staticmethod
    def decode(text: str | None) -> Policy:
        """The policy of a row; `PayloadError` if its text is not one.

        Rows of one task share their text, so it is read once.
        """
        return DEFAULT if text is None else _decode(text)


DEFAULT: Final = Policy()
BY_NAME: Final = '{"by_name":true}'
"""The options of a task whose sender did not know its definition; who claims it puts in its own."""
_KINDS: Final[dict[str, Any]] = {**get_type_hints(Policy), "retry": dict[str, Any]}


@lru_cache(maxsize=1024)
def _decode(text: str) -> Policy:
    try:
        known: dict[str, Any] = {
            name: decode(part, _KINDS[name])
            for name, part in split_object(text).items()
            if name in _KINDS
        }
        if "retry" in known:
            known["retry"] = Retry.from_dict(known["retry"])
        return Policy(**known)
    except (PayloadError, ConfigError, TypeError) as error:
        raise PayloadError(f"these are not task options: {text!r:.200} ({error})") from error
