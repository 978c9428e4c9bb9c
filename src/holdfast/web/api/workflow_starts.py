"""`POST /workflows`: start a workflow by its name.

Owns the body. The graph is built by the app's own code, here: a server that knows the database
alone can start none. What that code raises is no defect of the server, and is logged.
"""

from __future__ import annotations

import logging
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.client.workflow import WorkflowOptions
from holdfast.core.errors import HoldfastError, UnknownTask
from holdfast.web.access import Role
from holdfast.web.api.operation import operation
from holdfast.web.api.request_values import placed
from holdfast.web.api.sending import OF_UNIQUE, SentDocument, UniqueBody, payload_room
from holdfast.web.api.task_filter import Moment, Name
from holdfast.web.context import Context
from holdfast.web.problem import Refusal

__all__ = ["ROUTES"]

log = logging.getLogger("holdfast.web")


class StartOptionsBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one start changes of its workflow's options; what is absent is as the workflow says."""

    run_at: Moment | UnsetType = UNSET
    deadline: Annotated[float, Meta(gt=0, le=3_153_600_000)] | UnsetType | None = UNSET
    """Seconds that the whole may take."""
    tags: Annotated[list[str], Meta(max_length=50)] | UnsetType = UNSET
    unique: UniqueBody | UnsetType | None = UNSET

    @property
    def given(self) -> WorkflowOptions:
        """The same, for `workflow.options(…)`."""
        found: Any = {
            name: getattr(self, name)
            for name in StartOptionsBody.__struct_fields__
            if getattr(self, name) is not UNSET
        }
        if isinstance(self.unique, UniqueBody):
            found["unique"] = self.unique.made
        options: WorkflowOptions = found
        return options


class StartBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One call of a workflow."""

    name: Name
    version: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """None: the newest that the app knows."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    id: UUID | None = None
    """Yours: starting it again under the same id is one workflow, not two."""
    options: StartOptionsBody = msgspec.field(default_factory=StartOptionsBody)


@operation(
    "POST",
    "/workflows",
    tag="workflows",
    needs=Role.OPERATE,
    creates=True,
    refusals=[404, 409],
    limit=payload_room,
)
async def start_workflow(context: Context, body: StartBody) -> SentDocument:
    """Start a workflow that this server's app has, by its name.

    201 if it was started; 200 if one that was there already is the answer. The graph is built
    before this answers, and the whole is written in one transaction. With an `id` of yours the
    request may be repeated when its answer was lost.
    """
    try:
        workflow = context.app.named_workflow(body.name, version=body.version)
    except UnknownTask as error:
        said = f"{error}. A workflow is built by its code: serve with `holdfast web --app`"
        raise Refusal(404, "unknown_workflow", said) from None
    try:
        with placed(StartOptionsBody, OF_UNIQUE):
            options = body.options.given
            if body.id is not None:
                options["id"] = body.id
            chosen = workflow.options(**options)
            handle = await chosen.asend_plain(body.args, body.kwargs)
    except (HoldfastError, Refusal):
        raise
    except Exception as error:
        log.warning("workflow %r could not be built", body.name, exc_info=error)
        said = f"the code that builds it raised {type(error).__name__}; the server's log has more"
        raise Refusal(422, "not_built", said, path="args") from None
    if handle.created:
        async with context.acting():
            await context.control.audit.arecord(
                "send", f"workflow {handle.id}", detail={"name": body.name}
            )
    return SentDocument(id=handle.id, created=handle.created)


ROUTES: Final = (start_workflow,)
