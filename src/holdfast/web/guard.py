"""What every answer carries, and what no request may be: the outermost layer of the web app.

Owns the security headers, the list of hosts we answer to, and the refusal of writes that another
site's page makes in a visitor's name. It decides by headers alone, before anybody is asked who the
visitor is, and never reads a body.

A page of another site can send a form or a script's request here, and the browser adds the
visitor's cookies. Browsers say where such a request comes from: in Sec-Fetch-Site, and in Origin.
What has neither comes from no browser (curl, a program), so nobody's cookies were added to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.core.text import one_line
from holdfast.web.problem import Problem, Refusal

__all__ = ["Guard", "check_host", "check_site"]

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Nothing inline, nothing from elsewhere. `data:` images cannot run anything."""
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Puts headers on every answer of the app inside it."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                # Only what says so itself (our stylesheets and scripts) may be kept.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._inner(scope, receive, guarded)


def check_host(headers: Headers, hosts: Collection[str] | None) -> None:
    """Refuse a request that was sent to a name which is not ours; None: the server knows better.

    A page of another site can let its own name lead to this address (DNS rebinding), and then it
    is of the same site as we. It cannot choose another Host header.
    """
    if hosts is None:
        return
    given = headers.getlist("host")
    if len(given) == 1 and host_name(given[0]) in hosts:
        return
    said = one_line(", ".join(given), 100) or "none"
    problem = Problem(
        421, "unknown_host", f"this is not the host {said}: start with --allow-host to answer to it"
    )
    raise Refusal(problem.status, problem.kind, problem.detail)


def host_name(host: str) -> str:
    """The name of a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()


def check_site(method: str, headers: Headers) -> None:
    """Refuse a write that a page of another site sends in the visitor's name."""
    if method in SAFE_METHODS:
        return
    sites = headers.getlist("sec-fetch-site")
    if sites:
        for site in sites:
            if site not in ("same-origin", "none"):
                raise _cross_site(f"Sec-Fetch-Site is {site!r:.50}")
        return
    origin = headers.get("origin")
    if origin is None:
        return
    try:
        place = urlsplit(origin).netloc
    except ValueError:
        place = ""
    if not place or place.lower() != headers.get("host", "").lower():
        raise _cross_site(f"Origin is {one_line(origin, 100)!r}")


def _cross_site(why: str) -> Refusal:
    return Refusal(
        403, "cross_site", f"a page of another site may not do this in your name ({why})"
    )
