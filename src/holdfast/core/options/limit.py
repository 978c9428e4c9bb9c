"""How much of something may be at work: `Limit`, as its author writes it and as it is stored.

Owns the option and its JSON, and the reading of rates. What a limit leaves free at a moment is
`core.limiting`; that nobody exceeds it is the database's part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, TypeAlias

from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.payload.codec import from_json, to_json

__all__ = ["Limit", "Limits", "Rate", "Rule", "Rules", "decode", "encode", "read", "rules"]

Limits: TypeAlias = "Limit | Sequence[Limit]"
_MOST: Final = 1_000_000_000
_MOST_LIMITS: Final = 10
_RATE: Final = re.compile(r"\s*([0-9]{1,10})\s*/\s*([a-z]+)\s*")
_UNITS: Final = {
    "s": 1,
    "second": 1,
    "seconds": 1,
    "m": 60,
    "minute": 60,
    "minutes": 60,
    "h": 3600,
    "hour": 3600,
    "hours": 3600,
    "d": 86400,
    "day": 86400,
    "days": 86400,
}


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many at a time (`concurrency`), and so many in a time (`rate`), in the whole
    fleet.

    A rate is smooth: "60/minute" is one each second. `burst` is how many may begin at once after
    a quiet time. `per_key` limits the calls of each concurrency key.
    """

    concurrency: int | None = None
    rate: str | None = None
    burst: int = 1
    per_key: Limit | None = None

    def __post_init__(self) -> None:
        if self.concurrency is not None:
            _whole(self.concurrency, "concurrency")
        _whole(self.burst, "burst")
        if self.rate is not None:
            _every_us(self.rate)
        elif self.burst != 1:
            raise ConfigError(
                f"Limit(burst={self.burst}) needs a rate: give rate='100/minute', or leave out "
                "burst",
                option="burst",
            )
        per_key: object = self.per_key
        if per_key is not None and not isinstance(per_key, Limit):
            raise ConfigError(
                f"Limit(per_key={per_key!r:.200}) is not usable: give per_key=Limit(…)",
                option="per_key",
            )
        if isinstance(per_key, Limit) and per_key.per_key is not None:
            raise ConfigError("a limit per key has no keys of its own", option="per_key")
        if self.concurrency is None and self.rate is None and per_key is None:
            raise ConfigError(
                "Limit() limits nothing: give concurrency, rate or per_key", option="limit"
            )

    def __str__(self) -> str:
        """As an operator reads it: `10 at a time, 100/minute (burst 10), per key 1 at a time`."""
        parts: list[str] = []
        if self.concurrency is not None:
            parts.append(f"{self.concurrency:,} at a time")
        if self.rate is not None:
            more = f" (burst {self.burst:,})" if self.burst != 1 else ""
            parts.append(f"{self.rate}{more}")
        if self.per_key is not None:
            parts.append(f"per key {self.per_key}")
        return ", ".join(parts)


class Rate(NamedTuple):
    """One begins every so many µs; so many may begin at once after a quiet time."""

    every_us: float
    burst: int


class Rule(NamedTuple):
    """What a counter is held against."""

    capacity: int | None = None
    rates: tuple[Rate, ...] = ()

    def __bool__(self) -> bool:
        return self.capacity is not None or bool(self.rates)


NO_RULE: Final = Rule()


class Rules(NamedTuple):
    """All limits of one queue or task: of the whole, and of each key."""

    whole: Rule = NO_RULE
    each: Rule = NO_RULE


def read(value: object, option: str = "limit") -> tuple[Limit, ...]:
    """What was given as a limit: one, several, or None."""
    if value is None:
        return ()
    given: list[Any] = [value]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        given = list(value)
    for each in given:
        if not isinstance(each, Limit):
            raise ConfigError(
                f"{option}={each!r:.200} is not usable: give Limit(…), or a list of them",
                option=option,
            )
    if len(given) > _MOST_LIMITS:
        raise ConfigError(
            f"{option} has {len(given)} limits: give at most {_MOST_LIMITS}", option=option
        )
    return tuple(given)


def rules(limits: Sequence[Limit]) -> Rules:
    """What several limits mean together: the least concurrency, and every rate."""
    return Rules(_rule(limits), _rule([each.per_key for each in limits if each.per_key]))


def _rule(limits: Sequence[Limit]) -> Rule:
    capacities = [each.concurrency for each in limits if each.concurrency is not None]
    rates = [Rate(_every_us(each.rate), each.burst) for each in limits if each.rate is not None]
    return Rule(min(capacities, default=None), tuple(rates))


def encode(limits: Sequence[Limit]) -> str | None:
    """Limits as they are stored; None if there are none."""
    return to_json([_as_dict(each) for each in limits]) if limits else None


def decode(text: str | None) -> tuple[Limit, ...]:
    """Stored limits; `PayloadError` if the text is none."""
    if text is None:
        return ()
    try:
        found = from_json(text)
        if not isinstance(found, list):
            raise TypeError("not a list")
        return read([_from_dict(each) for each in found])
    except (ValueError, TypeError, RecursionError, ConfigError, PayloadError) as error:
        raise PayloadError(f"these are no limits: {text!r:.200} ({error})") from error


_NAMES: Final = frozenset(field.name for field in fields(Limit))


def _as_dict(limit: Limit) -> dict[str, Any]:
    plain = {field.name: getattr(limit, field.name) for field in fields(limit)}
    if limit.per_key is not None:
        plain["per_key"] = _as_dict(limit.per_key)
    return {
        field.name: plain[field.name]
        for field in fields(limit)
        if plain[field.name] != field.default
    }


def _from_dict(plain: Any) -> Limit:
    if not isinstance(plain, dict):
        raise TypeError("a limit is an object")
    known = {name: value for name, value in plain.items() if name in _NAMES}
    if known.get("per_key") is not None:
        known["per_key"] = _from_dict(known["per_key"])
    return Limit(**known)


def _whole(value: object, option: str) -> None:
    if type(value) is not int or not 1 <= value <= _MOST:
        raise ConfigError(
            f"Limit({option}={value!r:.100}) is not usable: give a whole number from 1 to "
            f"{_MOST:,}",
            option=option,
        )


def _every_us(rate: object) -> float:
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    unit = None if found is None else _UNITS.get(found[2])
    if found is None or unit is None or not 1 <= int(found[1]) <= _MOST:
        raise ConfigError(
            f"Limit(rate={rate!r:.100}) is not usable: give a number and a unit, as in '10/s', "
            "'100/minute', '1000/h' or '5/day'",
            option="rate",
        )
    return unit * 1_000_000 / int(found[1])
