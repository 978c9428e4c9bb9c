"""The page that asks for a token."""

from __future__ import annotations

from html import escape
from typing import Final

from starlette.responses import HTMLResponse, Response

from holdfast.web.context import Context

__all__ = ["login_page"]

_PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Log in</title>
<h1>Log in</h1>
<form method="post" action="{action}">
<p role="alert">{problem}</p>
<input type="hidden" name="next" value="{next}">
<label>Token <input type="password" name="token" autocomplete="current-password" required></label>
<button>Log in</button>
</form></html>
"""


def login_page(context: Context, *, next_path: str, problem: str = "") -> Response:
    """Asks for a token; `problem` says why the last one was refused."""
    text = _PAGE.format(
        action=escape(context.url("/login")), next=escape(next_path), problem=escape(problem)
    )
    return HTMLResponse(text)
