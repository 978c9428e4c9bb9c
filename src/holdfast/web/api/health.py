"""Whether this process lives, and whether its store answers. Nobody needs a role to ask."""

from __future__ import annotations

from typing import Final

from starlette.responses import JSONResponse, Response

from holdfast.core.errors import HoldfastError
from holdfast.web.context import Context
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]


async def live(context: Context) -> Response:
    """This process answers."""
    return JSONResponse({"status": "live"})


async def ready(context: Context) -> Response:
    """The store answers."""
    try:
        await context.control.anow()
    except HoldfastError:
        # What is wrong is logged and shown to those who may read; this is open to all.
        return JSONResponse({"status": "the store does not answer"}, status_code=503)
    return JSONResponse({"status": "ready"})


ROUTES: Final = (
    WebRoute("/api/v1/health/live", ("GET",), live, needs=None, name="api-live", kind="api"),
    WebRoute("/api/v1/health/ready", ("GET",), ready, needs=None, name="api-ready", kind="api"),
)
