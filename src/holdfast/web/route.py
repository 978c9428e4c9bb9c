"""One route of the web app: a path, what answers, and who may ask.

Owns no behaviour. The lists are `web/api/routes.py` and `web/pages/routes.py`; `web/dashboard.py`
puts them together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from starlette.responses import Response

from holdfast.web.access import Role

if TYPE_CHECKING:
    from holdfast.web.context import Context

__all__ = ["Handler", "Kind", "WebRoute"]

Handler: TypeAlias = "Callable[[Context], Awaitable[Response]]"
Kind: TypeAlias = Literal["page", "api"]
"""How a refusal is said: as a page, or as a problem in JSON."""


@dataclass(frozen=True, slots=True)
class WebRoute:
    """A path below the prefix, what answers there, and who may ask."""

    path: str
    """With parameters as Starlette writes them: `/tasks/{id}`."""
    methods: tuple[str, ...]
    handler: Handler
    needs: Role | None
    """The least role; None: anybody, without a login."""
    name: str
    kind: Kind
    payloads: bool = False
    """Whether the visitor must be allowed to see payloads, too."""
    about: Any = None
    """Of an API route: its part of the OpenAPI document (`web/api/operation.py`)."""
