"""The page that asks for a token."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.web.context import Context
from holdfast.web.pages.template import alone

__all__ = ["login_page"]


def login_page(context: Context, *, next_path: str, problem: str = "") -> Response:
    """Asks for a token; `problem` says why the last one was refused."""
    return alone(
        context.request,
        "login.html",
        title="Log in",
        action=context.url("/login"),
        next=next_path,
        problem=problem,
    )
