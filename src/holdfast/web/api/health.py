"""Whether this process lives, and whether its store answers. Nobody needs a role to ask."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.web.api.operation import operation
from holdfast.web.context import Context
from holdfast.web.problem import AGAIN_SOON, Refusal

__all__ = ["ROUTES"]


class LiveDocument(msgspec.Struct, kw_only=True):
    """This process answers."""

    status: Literal["live"] = "live"


class ReadyDocument(msgspec.Struct, kw_only=True):
    """The database answers."""

    status: Literal["ready"] = "ready"


@operation("GET", "/health/live", tag="health", needs=None)
async def live(context: Context) -> LiveDocument:
    """Say that this process answers."""
    return LiveDocument()


@operation("GET", "/health/ready", tag="health", needs=None)
async def ready(context: Context) -> ReadyDocument:
    """Say whether the database answers."""
    try:
        await context.control.anow()
    except HoldfastError:
        # What is wrong is logged, and shown to those who may read; this is open to all.
        said = "the store does not answer; the server's log says why"
        raise Refusal(503, "not_ready", said, dict(AGAIN_SOON)) from None
    return ReadyDocument()


ROUTES: Final = (live, ready)
