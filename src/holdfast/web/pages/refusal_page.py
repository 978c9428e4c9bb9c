"""The page that says why there is none: not found, not allowed, not possible now."""

from __future__ import annotations

from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast.web.problem import Problem

__all__ = ["refusal_page"]

_PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<h1>{title}</h1><p>{detail}</p></html>
"""


def refusal_page(request: Request, problem: Problem) -> Response:
    """What a visitor with a browser sees instead of a page."""
    text = _PAGE.format(title=escape(problem.title), detail=escape(problem.detail))
    return HTMLResponse(text, status_code=problem.status)
