"""Routes: which queue a task goes to, by its name.

Owns the rules and how one of them is chosen. Pure: what a rule draws among several queues follows
from the id of the task, so that a send that is repeated draws the same one, and no randomness is
needed. A rule decides only where the sender has not: `options(queue=…)` comes before every route,
and the task's own queue after them.

Of the rules that fit a name, the name itself comes first, then the pattern with the most
characters beside its stars, then the first by alphabet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from itertools import accumulate
from typing import Any, Final, NamedTuple

from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.options import checks
from holdfast.core.payload.codec import from_json, to_json

__all__ = ["NO_ROUTES", "Route", "RouteBook", "decode", "encode", "read_pattern", "read_queues"]

_PATTERN: Final = re.compile(r"[A-Za-z0-9_.:*-]+")
_LONGEST: Final = 255
_MOST_QUEUES: Final = 100
_MOST_WEIGHT: Final = 1_000_000
_MOST_REMEMBERED: Final = 10_000


class Route(NamedTuple):
    """One rule."""

    pattern: str
    """The name of a task, or a pattern in which `*` stands for any characters."""
    queues: Mapping[str, int]
    """Where to, and with what weight."""
    set_by: str | None = None
    updated_at: int = 0

    def draw(self, task_id: bytes) -> str:
        """The queue of the task with this id."""
        if len(self.queues) == 1:
            return next(iter(self.queues))
        # Loaded where it is needed: see `digest`.
        from hashlib import blake2b

        # Ids that callers make need not be random in any of their digits.
        number = int.from_bytes(blake2b(task_id, digest_size=8).digest())
        ends = list(accumulate(self.queues.values()))
        place = number % ends[-1]
        return next(queue for queue, end in zip(self.queues, ends, strict=True) if place < end)


class RouteBook:
    """All rules, as they stood at one version."""

    def __init__(self, version: str | None = None, routes: Iterable[Route] = ()) -> None:
        self.version = version
        self.routes = tuple(sorted(routes, key=lambda route: route.pattern))
        self._exact = {route.pattern: route for route in self.routes if "*" not in route.pattern}
        patterns = [route for route in self.routes if "*" in route.pattern]
        patterns.sort(key=lambda route: -len(route.pattern.replace("*", "")))
        self._patterns = [(re.compile(translate(route.pattern)), route) for route in patterns]
        self._remembered: dict[str, Route | None] = {}

    def __bool__(self) -> bool:
        return bool(self.routes)

    def route_of(self, task_name: str) -> Route | None:
        """The rule for a task, if there is one."""
        try:
            return self._remembered[task_name]
        except KeyError:
            pass
        found = self._exact.get(task_name)
        if found is None:
            fitting = (route for name, route in self._patterns if name.fullmatch(task_name))
            found = next(fitting, None)
        if len(self._remembered) < _MOST_REMEMBERED:
            self._remembered[task_name] = found
        return found


NO_ROUTES: Final = RouteBook()


def read_pattern(value: object) -> str:
    """A task's name, or a pattern of names."""
    if isinstance(value, str) and len(value) <= _LONGEST and _PATTERN.fullmatch(value):
        return value
    raise ConfigError(
        f"{value!r:.300} is no pattern of task names: give 1 to {_LONGEST} of the characters "
        "A-Z a-z 0-9 _ . : - and * (which stands for any characters)",
        option="pattern",
    )


def read_queues(value: object) -> dict[str, int]:
    """One queue, or several with their weights."""
    if isinstance(value, str):
        return {checks.queue_name(value): 1}
    if not isinstance(value, Mapping) or not value:
        raise ConfigError(
            f"queues={value!r:.200} is not usable: give the name of a queue, or several with "
            "their weights, as in {'images': 3, 'images-eu': 1}",
            option="queues",
        )
    given: Mapping[Any, Any] = value
    if len(given) > _MOST_QUEUES:
        raise ConfigError(
            f"{len(given)} queues are too many for one route: at most {_MOST_QUEUES}",
            option="queues",
        )
    return {checks.queue_name(name): _weight(name, weight) for name, weight in given.items()}


def _weight(name: str, weight: object) -> int:
    if type(weight) is int and 1 <= weight <= _MOST_WEIGHT:
        return weight
    raise ConfigError(
        f"the weight of queue {name!r} is {weight!r:.100}: give a whole number from 1 to "
        f"{_MOST_WEIGHT:,}, or leave the queue out",
        option="queues",
    )


def encode(queues: Mapping[str, int]) -> str:
    """Queues and weights as they are stored."""
    return to_json(dict(queues))


def decode(text: str | None) -> dict[str, int]:
    """Stored queues and weights; `PayloadError` if the text says something else."""
    try:
        found = None if text is None else from_json(text)
        if not isinstance(found, dict):
            raise ConfigError("not an object", option="queues")
        return read_queues(found)
    except (ValueError, RecursionError, ConfigError, PayloadError) as error:
        raise PayloadError(f"this is no route: {text!r:.200} ({error})") from error
