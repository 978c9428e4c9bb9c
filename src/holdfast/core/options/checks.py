"""The checks of single options, shared by task definitions and by sends.

Owns the rules for names, priorities, tags, counts and flags. Each function takes what a
caller wrote and gives what is stored, or raises a `ConfigError` that names the option, the
value and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from holdfast.core.errors import ConfigError
from holdfast.core.moment import Span, span_us

__all__ = [
    "at_least",
    "choice",
    "flag",
    "one_line",
    "positive_us",
    "priority",
    "queue_name",
    "schedule_name",
    "stored_text",
    "tags",
    "task_name",
]

C = TypeVar("C", bound=str)

_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]+")
_TAG: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]+")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_LONGEST_LINE: Final = 1000
_LONGEST_TASK: Final = 255
_LONGEST_QUEUE: Final = 100
_LONGEST_SCHEDULE: Final = 255
_LONGEST_TAG: Final = 100
_MOST_TAGS: Final = 50


def task_name(value: object) -> str:
    """A task's name: 1 to 255 of `A-Z a-z 0-9 _ . : -`."""
    return _name(value, "name", "task name", _LONGEST_TASK)


def queue_name(value: object) -> str:
    """A queue's name: 1 to 100 of `A-Z a-z 0-9 _ . : -`."""
    return _name(value, "queue", "queue name", _LONGEST_QUEUE)


def schedule_name(value: object) -> str:
    """A schedule's name: 1 to 255 of `A-Z a-z 0-9 _ . : -`."""
    return _name(value, "name", "schedule name", _LONGEST_SCHEDULE)


def _name(value: object, option: str, what: str, longest: int) -> str:
    if isinstance(value, str) and len(value) <= longest and _NAME.fullmatch(value):
        return value
    raise ConfigError(
        f"{what} {value!r:.300} is not usable: give 1 to {longest} of the characters "
        "A-Z a-z 0-9 _ . : -",
        option=option,
    )


def priority(value: object) -> int:
    """A priority: 1 to 100, lower first."""
    if type(value) is int and 1 <= value <= 100:
        return value
    raise ConfigError(
        f"priority={value!r} is not usable: give a whole number from 1 (first) to 100 (last)",
        option="priority",
    )


def tags(value: object) -> tuple[str, ...]:
    """Tags: up to 50 short texts, each once, in the order given."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes):
        raise ConfigError(f"tags={value!r} is not usable: give a list of strings", option="tags")
    given: list[Any] = list(dict.fromkeys(value))
    for tag in given:
        if not isinstance(tag, str) or len(tag) > _LONGEST_TAG or not _TAG.fullmatch(tag):
            raise ConfigError(
                f"tag {tag!r:.300} is not usable: give 1 to {_LONGEST_TAG} characters on one line",
                option="tags",
            )
    if len(given) > _MOST_TAGS:
        raise ConfigError(f"{len(given)} tags are too many: at most {_MOST_TAGS}", option="tags")
    return tuple(given)


def stored_text(value: object, option: str) -> str:
    """Text that may stand in the database, to look for: no NUL, no half of a surrogate pair.

    A command line hands over bytes that are not UTF-8 as such halves.
    """
    if not isinstance(value, str):
        raise ConfigError(f"{option}={value!r:.300} is not a text", option=option)
    if _UNSTORABLE.search(value):
        raise ConfigError(
            f"{option}={value!r:.300} is not usable: it holds a NUL or is not UTF-8, so nothing "
            "that is stored can be equal to it",
            option=option,
        )
    return value


def one_line(value: object, option: str) -> str:
    """A short text for people, such as who does something: 1 to 1,000 characters on one line."""
    text = value if isinstance(value, str) else ""
    if text.strip() and len(text) <= _LONGEST_LINE and _TAG.fullmatch(text):
        return text
    raise ConfigError(
        f"{option}={value!r:.300} is not usable: give 1 to {_LONGEST_LINE:,} characters on one "
        "line, without control characters",
        option=option,
    )


def at_least(least: int, value: object, option: str, *, most: int = 1_000_000) -> int:
    """A whole number, not below `least`."""
    if type(value) is int and least <= value <= most:
        return value
    raise ConfigError(
        f"{option}={value!r:.100} is not usable: give a whole number from {least} to {most:,}",
        option=option,
    )


def flag(value: object, option: str) -> bool:
    """True or False, and nothing that merely resembles them."""
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{option}={value!r} is not usable: give True or False", option=option)


def choice(value: C, choices: tuple[C, ...], option: str) -> C:
    """One of a few words."""
    if value in choices:
        return value
    raise ConfigError(
        f"{option}={value!r} is unknown: use one of {', '.join(choices)}", option=option
    )


def positive_us(value: Span, option: str) -> int:
    """A duration longer than nothing, in microseconds."""
    us = span_us(value, option=option)
    if us == 0:
        raise ConfigError(f"{option}={value!r} must be longer than nothing", option=option)
    return us
