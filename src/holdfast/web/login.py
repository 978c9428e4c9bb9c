"""Logging in with a token, and out again.

Owns the cookie: SameSite=Strict, HttpOnly, below our prefix, Secure where the connection is. It
holds the token, which the server has only as a hash.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import RedirectResponse, Response

from holdfast.web.context import Context
from holdfast.web.pages.login_page import login_page
from holdfast.web.route import WebRoute
from holdfast.web.token_gate import TokenGate
from holdfast.web.tokens import COOKIE

__all__ = ["Login"]

_KEPT_S: Final = 12 * 3600
_LONGEST_FORM: Final = 10_000


class Login:
    """The pages that know the tokens."""

    def __init__(self, gate: TokenGate) -> None:
        self._gate = gate
        self.routes = (
            WebRoute("/login", ("GET",), self.show, needs=None, name="login", kind="page"),
            WebRoute("/login", ("POST",), self.enter, needs=None, name="login-enter", kind="page"),
            WebRoute("/logout", ("POST",), self.leave, needs=None, name="logout", kind="page"),
        )

    async def show(self, context: Context) -> Response:
        """Ask for the token."""
        return login_page(context, next_path=context.request.query_params.get("next", ""))

    async def enter(self, context: Context) -> Response:
        """Take the token, or say that it is not known."""
        fields = await context.form(limit=_LONGEST_FORM)
        token = fields.get("token", [""])[0].strip()
        next_path = fields.get("next", [""])[0]
        if self._gate.holder(context.request, token) is None:
            answer = login_page(context, next_path=next_path, problem="This token is not known.")
            answer.status_code = 401
            return answer
        answer = RedirectResponse(_inside(context, next_path), status_code=303)
        answer.set_cookie(
            COOKIE,
            token,
            max_age=_KEPT_S,
            path=context.prefix or "/",
            secure=context.request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer

    async def leave(self, context: Context) -> Response:
        """Forget the token in this browser."""
        answer = RedirectResponse(context.url("/login"), status_code=303)
        answer.delete_cookie(COOKIE, path=context.prefix or "/")
        return answer


def _inside(context: Context, path: str) -> str:
    """A link to this path of ours, and to no other site."""
    # A browser takes "//host" and "/\\host" for another site.
    if not path.startswith("/") or path[1:2] in ("/", "\\") or not path.isprintable():
        return context.url("/")
    return context.prefix + path
