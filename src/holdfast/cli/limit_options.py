"""The options of a command that sets a limit, of a queue or of a task.

Owns their names and what they say together; whether a limit makes sense is `Limit`'s to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

import click

from holdfast.core.options.limit import Limit

_OPTIONS: Final = (
    click.option("--concurrency", type=int, help="At most so many at a time, in the whole fleet."),
    click.option("--rate", help="So many begin in a time: 10/s, 100/minute, 1000/h, 5/day."),
    click.option("--burst", type=int, help="So many may begin at once after a quiet time."),
    click.option("--key-concurrency", type=int, help="As --concurrency, for each concurrency key."),
    click.option("--key-rate", help="As --rate, for each concurrency key."),
    click.option("--key-burst", type=int, help="As --burst, for each concurrency key."),
    click.option("--none", "remove", is_flag=True, help="No limit any more."),
)
_WHOLE: Final = ("concurrency", "rate", "burst")


@dataclass(frozen=True, slots=True)
class GivenLimit:
    """What the options said."""

    whole: dict[str, Any]
    each: dict[str, Any]
    remove: bool

    @property
    def is_given(self) -> bool:
        """Whether anything was said; if not, nothing changes."""
        return bool(self.remove or self.whole or self.each)

    @property
    def limit(self) -> Limit | None:
        """The limit; `ConfigError` if it makes no sense."""
        if self.remove:
            return None
        return Limit(**self.whole, per_key=Limit(**self.each) if self.each else None)


def limit_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options; the command receives what they said as `given`."""

    @wraps(function)
    def command(*args: Any, **options: Any) -> None:
        whole = {name: options.pop(name) for name in _WHOLE}
        each = {name: options.pop(f"key_{name}") for name in _WHOLE}
        whole, each = _said(whole), _said(each)
        remove = options.pop("remove")
        if remove and (whole or each):
            raise click.UsageError("give --none, or a limit, not both")
        function(*args, given=GivenLimit(whole, each, remove), **options)

    decorated: Callable[..., None] = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def _said(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
