"""What is said of a step beside its call: its name, what it waits for, whether it may fail.

Owns the keywords of `wf.options(…)` and their checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias, TypedDict, cast

from holdfast.core.errors import ConfigError
from holdfast.core.options import checks
from holdfast.core.workflows.placeholder import reference_of
from holdfast.core.workflows.step import Step, StepEnd, Steps

__all__ = ["PLAIN", "Dependency", "StepChoice", "StepOptions", "read_options"]

_LONGEST_NAME: Final = 200
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]+")

Dependency: TypeAlias = "Step[Any] | Steps[Any] | StepEnd"
"""What `after` takes; a step by itself means its success."""


class StepOptions(TypedDict, total=False):
    """The keywords of `wf.options(…)`: what is said of a step, not of its task."""

    name: str
    """What it is called, instead of by its function."""
    after: Iterable[Dependency] | Dependency
    """What it waits for beside the values that it takes."""
    optional: bool
    """The whole may complete without it."""


class StepChoice(NamedTuple):
    """The same, checked."""

    name: str | None = None
    after: tuple[Dependency, ...] = ()
    optional: bool = False


PLAIN: Final = StepChoice()


def read_options(options: StepOptions) -> StepChoice:
    unknown = options.keys() - StepOptions.__annotations__
    if unknown:
        raise ConfigError(
            f"{min(unknown)!r} is not an option of a step: use name, after, optional; what is "
            "said of the task stands in task.options(…)",
            option=min(unknown),
        )
    name: object = options.get("name")
    if name is not None and not (
        isinstance(name, str) and len(name) <= _LONGEST_NAME and _NAME.fullmatch(name)
    ):
        raise ConfigError(
            f"name={name!r:.300} is not usable for a step: give 1 to {_LONGEST_NAME} characters "
            "on one line",
            option="name",
        )
    after: object = options.get("after", ())
    single = isinstance(after, Step | Steps | StepEnd) or reference_of(after) is not None
    if not single and (isinstance(after, str | bytes) or not isinstance(after, Iterable)):
        raise ConfigError(
            f"after={after!r:.100} is not usable: give a list of steps", option="after"
        )
    return StepChoice(
        options.get("name"),
        (cast("Dependency", after),) if single else tuple(cast("Iterable[Dependency]", after)),
        checks.flag(options.get("optional", False), "optional"),
    )
