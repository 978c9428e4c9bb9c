"""Every page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

ROUTES: Final[Sequence[WebRoute]] = ()
