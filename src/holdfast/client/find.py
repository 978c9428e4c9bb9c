"""Tasks and workflows by what a person types: a whole id, a short one, or some digits of one.

Owns the forms an id may be given in. A short id, as lists and logs show it, is the first 8 digits
and the last 6 of an id. The first ones are its time, the same for all ids of 65 seconds; the last
ones are random, and tell them apart. No search reads more than a part of one index: what begins
with given digits is found directly, what only ends with them is looked for among the newest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from holdfast.core.errors import Noun, TaskNotFound
from holdfast.store.op import Op, Steps, reads
from holdfast.store.verbs import workflows
from holdfast.store.verbs.inspect import find_ids, statuses

__all__ = ["FORMS", "find", "find_workflows", "parse"]

FORMS: Final = (
    "give a UUID, such as 0197f3c2-5b1e-7d44-9a01-3c5e6f708192, its short form, 0197f3c2-708192, "
    "or 8 or more of its first digits, or 6 or more of its last"
)
_WHOLE: Final = 32
_LEAST_FIRST: Final = 8
_LEAST_LAST: Final = 6
_MOST_LAST: Final = 12
_NEWEST: Final = 100_000
"""How many ids are looked through for one of which only the end is given."""
_NEAR: Final = 1_000_000
"""How many for one of which the beginning is given, too: more than a busy minute has."""

_TWO_ENDS: Final = re.compile(
    r"([0-9a-f-]{8,})(?:…|\.{2,3})([0-9a-f]{4,12})|([0-9a-f]{8})-([0-9a-f]{6})"
)
_DASHED: Final = re.compile(
    r"[0-9a-f]{1,32}|[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-[0-9a-f]{0,12})?|([0-9a-f]{4}-)?[0-9a-f]{12}"
)


_Look = Callable[..., Op[list[bytes]]]


class Ends(NamedTuple):
    """What is known of an id."""

    first: str = ""
    last: str = ""


def parse(text: str) -> list[Ends]:
    """The readings of what somebody typed; none: it is no id."""
    typed = text.strip().lower()
    two = _TWO_ENDS.fullmatch(typed)
    if two is not None:
        first, last = (two[1], two[2]) if two[1] else (two[3], two[4])
        return [Ends(first.replace("-", "")[:_WHOLE], last)]
    if not _DASHED.fullmatch(typed):
        return []
    return list(_readings(typed.replace("-", "")))


def _readings(digits: str) -> Iterator[Ends]:
    if len(digits) > _WHOLE:
        return
    if len(digits) >= _LEAST_FIRST:
        yield Ends(first=digits)
    if _LEAST_LAST <= len(digits) <= _MOST_LAST:
        yield Ends(last=digits)


@reads
def find(text: str, limit: int) -> Steps[list[bytes]]:
    """The tasks that it may name, the greatest id first; `TaskNotFound` if it cannot name any."""
    readings = _readings_of(text)
    whole = readings[0].first
    if len(whole) == _WHOLE:
        return list((yield from statuses([bytes.fromhex(whole)])))
    return (yield from _look(readings, find_ids, limit))


@reads
def find_workflows(text: str, limit: int) -> Steps[list[bytes]]:
    """The same for workflows."""
    return (yield from _look(_readings_of(text, "workflow"), workflows.find_ids, limit))


def _readings_of(text: str, noun: Noun = "task") -> list[Ends]:
    readings = parse(text)
    if not readings:
        raise TaskNotFound(text, noun=noun)
    return readings


def _look(readings: list[Ends], ids: _Look, limit: int) -> Steps[list[bytes]]:
    found: dict[bytes, None] = {}
    for ends in readings:
        scan = _NEWEST if not ends.first else _NEAR if ends.last else limit
        found |= dict.fromkeys(
            (
                yield from ids(
                    bytes.fromhex(ends.first.ljust(_WHOLE, "0")),
                    bytes.fromhex(ends.first.ljust(_WHOLE, "f")),
                    ends.last,
                    scan=scan,
                    limit=limit,
                )
            )
        )
    return list(found)[:limit]
