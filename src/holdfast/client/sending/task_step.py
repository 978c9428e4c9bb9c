"""A task as a step of a workflow.

Owns how the builder of workflows, which knows no app, gets a `Submission` of a task's call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.client.sending.call import Form
from holdfast.client.sending.dispatch import Dispatch
from holdfast.core.payload.signature import Signature
from holdfast.core.records import Submission
from holdfast.core.workflows.stepable import StepForm

__all__ = ["TaskStepForm"]


class TaskStepForm(StepForm):
    """Calls of one task, with the options that were chosen for them."""

    def __init__(
        self,
        form: Form,
        dispatch: Dispatch,
        name: str,
        *,
        step_name: str,
        signature: Signature | None,
        hidden: str | None = None,
    ) -> None:
        self._form = form
        self._limit = dispatch.access.config.max_payload
        self.task_name = name
        self.step_name = step_name
        self.signature = signature
        self.hidden = hidden
        self.home = dispatch

    def submission(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], *, partial: bool
    ) -> Submission:
        return self._form.fill_step(args, kwargs, self._limit, partial=partial)

    def key_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        return self._form.key_of(args, kwargs)
