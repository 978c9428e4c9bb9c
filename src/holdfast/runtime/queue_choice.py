"""Which queues a worker serves, and in which order.

Owns the reading of `-q` and of the keyword `queues`.

    a,b            in this order: b only while a has nothing
    high:5,low:1   by weight
    images=4       at most four of its tasks in this worker at a time
    'tenant\\:42'   the queue tenant:42, which would otherwise be `tenant` with the weight 42

A queue's name may have colons in it. What can be read in two ways and makes sense in one only is
refused with both spellings, instead of serving a queue that nobody meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.core.errors import ConfigError
from holdfast.core.options import checks

Queues: TypeAlias = "str | Sequence[str] | Mapping[str, int]"
"""Text like `-q`; names, in their order; or names with their weights."""

_PART = re.compile(r"(?P<name>.*?[^\\])(?::(?P<weight>[0-9]+))?(?:=(?P<cap>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """One queue a worker serves."""

    name: str
    weight: int | None = None
    """Its share of the claims when several queues have work; None: strictly in order."""
    cap: int | None = None
    """How many of its tasks this worker has in hand at the most."""


def choose_queues(given: object) -> tuple[QueueChoice, ...]:
    """The queues of a worker, from whatever the caller gave."""
    if isinstance(given, str):
        return parse_queues(given)
    if isinstance(given, Mapping):
        return _checked(
            (
                QueueChoice(checks.queue_name(name), checks.at_least(1, weight, "weight"))
                for name, weight in given.items()
            ),
            f"queues={given!r}",
        )
    if isinstance(given, Iterable) and not isinstance(given, bytes):
        named = [
            one if isinstance(one, QueueChoice) else QueueChoice(checks.queue_name(one))
            for one in given
        ]
        return _checked(named, f"queues={given!r}")
    raise ConfigError(
        f"queues={given!r} is not usable: give a list of names, a mapping of names to weights, or "
        'text such as "high:5,low:1"',
        option="queues",
    )


def parse_queues(text: str) -> tuple[QueueChoice, ...]:
    """Read `a,b` (in this order), `high:5,low:1` (by weight), `images=4` (at most four)."""
    what = f"-q {text!r}"
    parts = [piece.strip() for piece in text.split(",")]
    found = [_choice(part) for part in parts if part]
    weighted = [choice for choice in found if choice.weight is not None]
    if weighted and (len(weighted) < len(found) or len({choice.name for choice in found}) < 2):
        first = weighted[0]
        name = f"{first.name}:{first.weight}"
        escaped = name.replace(":", "\\:")
        raise ConfigError(
            f"{what} is not clear: {name!r} would be the queue {first.name!r} with the weight "
            f"{first.weight}, but weights need at least two queues and one for each of them; if "
            f"it is a queue named {name!r}, write '{escaped}' (with the backslash)",
            option="queues",
        )
    return _checked(found, what)


def _choice(part: str) -> QueueChoice:
    read = _PART.fullmatch(part)
    if read is None:
        raise ConfigError(f"-q {part!r} names no queue", option="queues")
    name, weight, cap = read["name"].replace("\\:", ":"), read["weight"], read["cap"]
    return QueueChoice(
        checks.queue_name(name),
        None if weight is None else _positive(weight, part, "weight"),
        None if cap is None else _positive(cap, part, "limit"),
    )


def _checked(found: Iterable[QueueChoice], what: str) -> tuple[QueueChoice, ...]:
    choices = tuple(found)
    if not choices:
        raise ConfigError(f"{what} names no queue: give for example -q high,low", option="queues")
    seen: set[str] = set()
    for choice in choices:
        if choice.name in seen:
            raise ConfigError(f"{what} names the queue {choice.name!r} twice", option="queues")
        seen.add(choice.name)
    return choices


def _positive(text: str, part: str, what: str) -> int:
    if not text.isdecimal() or not text.isascii() or int(text) < 1:
        raise ConfigError(
            f"-q {part!r}: the {what} {text!r} is not a positive whole number", option="queues"
        )
    return int(text)
