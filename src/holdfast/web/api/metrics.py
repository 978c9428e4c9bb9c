"""`/metrics`: the fleet in the text of Prometheus."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


async def metrics(context: Context) -> Response:
    """Metrics of the whole fleet, from the store's counters."""
    text = await context.control.stats.aprometheus()
    return Response(text.encode(errors="replace"), headers={"Content-Type": _TEXT})


ROUTES: Final = (
    WebRoute("/metrics", ("GET",), metrics, needs=Role.READ, name="metrics", kind="api"),
)
