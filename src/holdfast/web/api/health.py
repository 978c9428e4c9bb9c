"""Whether this process lives, and whether its store answers. Nobody needs a role to ask."""

from __future__ import annotations

import logging
from typing import Final, Literal

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.core.redaction import redact
from holdfast.web.api.operation import operation
from holdfast.web.context import Context
from holdfast.web.problem import AGAIN_SOON, Refusal

__all__ = ["ROUTES"]

_log = logging.getLogger("holdfast.web")


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
    except HoldfastError as error:
        # What is wrong is logged, and shown to those who may read; this is open to all.
        _log.warning("not ready: %s", redact(str(error)))
        said = "the store does not answer; the server's log says why"
        raise Refusal(503, "not_ready", said, dict(AGAIN_SOON)) from None
    return ReadyDocument()


ROUTES: Final = (live, ready)
