"""The page that says why there is none: not found, not allowed, not possible now."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from holdfast.web.pages.came_from import came_from
from holdfast.web.pages.template import alone
from holdfast.web.problem import Problem

__all__ = ["refusal_page"]


def refusal_page(request: Request, problem: Problem) -> Response:
    """What a visitor with a browser sees instead of a page."""
    return alone(
        request,
        "refusal.html",
        title=problem.title,
        status=problem.status,
        problem=problem,
        sentence=problem.detail[:1].upper() + problem.detail[1:],
        back=_back(request),
        soon=problem.status == 503 and request.method == "GET",
    )


def _back(request: Request) -> str:
    """Where the visitor came from, if that is a page of ours."""
    came = came_from(request)
    if came is None or came.partition("?")[0] == request.scope["path"]:
        return ""
    return came
