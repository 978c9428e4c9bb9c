"""What can be a step of a workflow, as the builder sees it.

Owns the nominal type of it: tasks and workflow functions are defined above, and keep their
signature here as a `ParamSpec`, so that a type checker sees a wrong argument of a step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from holdfast.core.payload.signature import Signature
from holdfast.core.records import Submission

if TYPE_CHECKING:
    # It brings cron, which few programs need.
    from holdfast.core.schedules.definition import ScheduledCall

__all__ = ["StepForm", "Stepable"]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class StepForm(ABC):
    """How calls of one task, with its options, become steps."""

    task_name: str
    step_name: str
    """What its steps are called unless their author says: the function's name."""
    signature: Signature | None
    """None where the code is elsewhere: then nothing is checked before it runs."""
    hidden: str | None = None
    """See `StepPlan.hidden`."""
    home: object
    """Through which app it is sent; all steps of a workflow must agree."""

    @abstractmethod
    def submission(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool
    ) -> Submission:
        """A call with these arguments. `partial`: some are still to come, so types are not
        checked."""

    @abstractmethod
    def key_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """The concurrency key that the task makes of its arguments, placeholders among them."""

    @property
    def result_kind(self) -> Any:
        """The type of what a step of it gives."""
        return Any if self.signature is None else self.signature.result_kind


class Stepable(Generic[P, R_co]):
    """A task or a workflow: what `wf.step` and `wf.map` take."""

    def __step_form__(self) -> StepForm:
        """How its calls become steps; for Holdfast's own use."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The name it is stored under."""
        raise NotImplementedError

    def __check_call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Whether these are its arguments, all of them; for Holdfast's own use."""
        raise NotImplementedError

    def __scheduled_call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ScheduledCall:
        """A call of it as each tick of a schedule sends it; for Holdfast's own use."""
        raise NotImplementedError
