"""Light or dark, as the visitor has chosen: a cookie, read where a page is rendered, so that
nothing flashes."""

from __future__ import annotations

from typing import Final

from starlette.responses import RedirectResponse, Response

from holdfast.web.context import Context
from holdfast.web.pages.came_from import came_from
from holdfast.web.pages.template import THEME_COOKIE, THEMES
from holdfast.web.problem import Refusal
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

_A_YEAR: Final = 365 * 86_400


async def choose(context: Context) -> Response:
    """Keep the choice, and go back to where it was made."""
    theme = ((await context.form()).get("theme") or [""])[-1]
    if theme not in THEMES:
        raise Refusal(422, "invalid", f"theme={theme!r:.50}: there are {', '.join(THEMES)}")
    answer = RedirectResponse(_back(context), status_code=303)
    answer.set_cookie(
        THEME_COOKIE,
        theme,
        max_age=_A_YEAR,
        path=context.prefix or "/",
        httponly=True,
        samesite="strict",
        secure=context.request.url.scheme == "https",
    )
    return answer


def _back(context: Context) -> str:
    """The page that the form was on, if it is one of ours."""
    came, home = came_from(context.request), context.url("/")
    return home if came is None or not came.startswith(home) else came


ROUTES: Final = (WebRoute("/theme", ("POST",), choose, needs=None, name="theme", kind="page"),)
