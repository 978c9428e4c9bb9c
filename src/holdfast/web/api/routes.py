"""Every route of the HTTP API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.web.api import health
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

ROUTES: Final[Sequence[WebRoute]] = (*health.ROUTES,)
