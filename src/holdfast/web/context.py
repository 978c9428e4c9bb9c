"""What a handler is given: the request, who asks, the app, and how links are written.

Owns links (always from the prefix that the host mounts us at), the reading of forms, and the name
under which an action is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import ClientDisconnect, Request

from holdfast.client.acting import Acting
from holdfast.client.control import Control
from holdfast.core.text import one_line
from holdfast.web.access import Role, Visitor
from holdfast.web.payload_view import PayloadView
from holdfast.web.problem import Refusal
from holdfast.web.route import WebRoute

if TYPE_CHECKING:
    from holdfast.app import Holdfast

__all__ = ["NOBODY", "Context", "prefix_of"]

NOBODY: Final = Visitor("nobody", Role.READ)
"""Who asks where nobody needs to log in. Never given to a route that needs a role."""
LONGEST_FORM: Final = 1_000_000
BODY_PATIENCE: Final = 30.0
"""Seconds that a body may take."""
_MOST_FIELDS: Final = 10_000


class Context:
    """One request, let in."""

    def __init__(
        self,
        request: Request,
        route: WebRoute,
        app: Holdfast,
        control: Control,
        visitor: Visitor,
        names: Mapping[str, str],
        hidden_keys: Collection[str] = (),
    ) -> None:
        self.request = request
        self.route = route
        self.app = app
        """The host's app: for sends."""
        self.control = control
        """`app.control` on connections of the dashboard's own: few, and each statement bounded."""
        self.visitor = visitor
        self._names = names
        self.payloads = PayloadView(visitor.payloads, (*hidden_keys, *app.config.redact_keys))
        """What the visitor sees of arguments, results and what tasks print."""

    @property
    def prefix(self) -> str:
        """Where we are mounted; empty at the root."""
        return prefix_of(self.request)

    def url(self, path: str, /, **query: Any) -> str:
        """A link to a path of ours, which begins with a slash: `url("/tasks", status="failed")`.

        None is left out; a list gives its name several times.
        """
        link = self.prefix + quote(path, safe="/:@!$&'()*+,;=~")
        asked = {name: value for name, value in query.items() if value is not None}
        return f"{link}?{urlencode(asked, doseq=True)}" if asked else link

    def url_for(self, route: str, /, **params: Any) -> str:
        """A link to a route by its name; what is no parameter of its path becomes the query."""
        path = self._names[route]
        for name in list(params):
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", quote(str(params.pop(name)), safe=""))
        asked = {name: value for name, value in params.items() if value is not None}
        link = self.prefix + path
        return f"{link}?{urlencode(asked, doseq=True)}" if asked else link

    @property
    def origin(self) -> str:
        """From where the visitor asks."""
        client = self.request.client
        return "web" if client is None else f"web from {one_line(client.host, 100)}"

    def acting(self, filter: str | None = None) -> Acting:  # noqa: A002
        """Do what is in this block in the visitor's name, by this choice of tasks."""
        return self.control.acting(by=self.visitor.name, origin=self.origin, filter=filter)

    async def body(self, limit: int) -> bytes:
        """The body; refused before it is read if it says to be longer, and while it is read."""
        stated = self.request.headers.get("content-length", "0")
        if not (stated.isascii() and stated.isdigit()):
            raise Refusal(400, "bad_request", "Content-Length is not a number")
        if len(stated) > 15 or int(stated) > limit:
            raise _too_large(limit)
        read = bytearray()
        try:
            async with asyncio.timeout(BODY_PATIENCE):
                async for piece in self.request.stream():
                    read += piece
                    if len(read) > limit:
                        raise _too_large(limit)
        except TimeoutError:
            said = f"the body did not come within {BODY_PATIENCE:.0f} s"
            raise Refusal(408, "too_slow", said, {"Connection": "close"}) from None
        except ClientDisconnect:
            raise Refusal(400, "bad_request", "the connection was closed") from None
        return bytes(read)

    async def form(self, limit: int = LONGEST_FORM) -> dict[str, list[str]]:
        """The fields of a form (application/x-www-form-urlencoded), each with its values."""
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("", "application/x-www-form-urlencoded"):
            raise Refusal(415, "unsupported_type", f"a form is not sent as {kind!r:.100}")
        try:
            pairs = parse_qsl(
                (await self.body(limit)).decode(),
                keep_blank_values=True,
                max_num_fields=_MOST_FIELDS,
                errors="strict",
            )
        except ValueError:
            raise Refusal(400, "bad_request", "the form cannot be read: it is not UTF-8") from None
        fields: dict[str, list[str]] = {}
        for name, value in pairs:
            fields.setdefault(name, []).append(value)
        return fields


def prefix_of(request: Request) -> str:
    """Where we are mounted; empty at the root."""
    root: str = request.scope.get("root_path", "")
    return quote(root.rstrip("/"), safe="/")


def _too_large(limit: int) -> Refusal:
    return Refusal(413, "too_large", f"the body is larger than {limit:,} bytes", limit=limit)
