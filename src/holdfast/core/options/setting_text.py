"""Settings that are given as text: in the environment, and after a flag.

Owns the reading of one value, and the sentence when it cannot be read. Each reader raises a
`ValueError` whose text completes "it must be …". Reads no environment itself.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import Field
from typing import Any, Final

from holdfast.core.errors import ConfigError
from holdfast.core.options.retention import Retention

__all__ = [
    "LONGEST_INTERVAL",
    "PREFIX",
    "flag",
    "in_environment",
    "names",
    "retention",
    "seconds",
    "seconds_or_never",
    "variable",
    "whole",
]

PREFIX: Final = "HOLDFAST_"
LONGEST_INTERVAL: Final = 31_536_000
"""Seconds of a lease, and between two looks of a worker, at the most: a year."""
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_NEVER: Final = frozenset({"none", "never"})


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def in_environment(
    settings: Iterable[Field[Any]], environment: Mapping[str, str], known: Container[str]
) -> dict[str, Any]:
    """The values of settings that are set in the environment, and not known from elsewhere."""
    return {
        each.name: _read(each.name, environment[variable(each.name)], each.metadata["read"])
        for each in settings
        if each.name not in known and environment.get(variable(each.name))
    }


def _read(name: str, text: str, reader: Callable[[str], Any]) -> Any:
    try:
        return reader(text)
    except ValueError as wanted:
        raise ConfigError(
            f"the environment variable {variable(name)} is {text!r}; it must be {wanted}",
            option=name,
        ) from None


def flag(value: str) -> bool:
    """Yes or no."""
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise ValueError("true or false")


def whole(value: str) -> int:
    """A whole number."""
    try:
        return int(value)
    except ValueError:
        raise ValueError("a whole number") from None


def seconds(value: str) -> float:
    """A number of seconds."""
    try:
        return float(value)
    except ValueError:
        raise ValueError("a number of seconds") from None


def seconds_or_never(value: str) -> float | None:
    """A number of seconds, or `never`."""
    return None if value.lower() in _NEVER else seconds(value)


def names(value: str) -> tuple[str, ...]:
    """Names with commas between them."""
    found = tuple(each.strip() for each in value.split(",") if each.strip())
    if not found:
        raise ValueError("names with commas between them")
    return found


def retention(value: str) -> Retention:
    """How long records are kept: `tasks=30d,logs=7d`; `dead=never` keeps them."""
    try:
        parts = dict(part.split("=", 1) for part in value.split(",") if part.strip())
        return Retention(
            **{
                kind.strip(): None if kept.strip().lower() in _NEVER else kept.strip()
                for kind, kept in parts.items()
            }
        )
    except (TypeError, ValueError, ConfigError):
        raise ValueError("of the form tasks=30d,logs=7d") from None
