"""`dashboard(app)`: the web app, put together from its routes.

Owns the way of a request: host and origin, the route, the visitor, the handler, and what is
answered when one of them refuses. Handlers never look at roles themselves. Nothing is opened
before the first request, so no lifespan is needed, and links begin with `scope["root_path"]`, so
any prefix will do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote
from uuid import UUID

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.client.control import Control
from holdfast.core.errors import ConfigError
from holdfast.web.access import AccessRule, Visitor, ask
from holdfast.web.api import routes as api_routes
from holdfast.web.api.answer import problem_answer
from holdfast.web.api.operation import Operation
from holdfast.web.context import NOBODY, Context, prefix_of
from holdfast.web.guard import Guard, check_host, check_site
from holdfast.web.login import Login
from holdfast.web.pages import routes as page_routes
from holdfast.web.pages.refusal_page import refusal_page
from holdfast.web.pages.shared_reads import forget
from holdfast.web.problem import Problem, Refusal, problem_of
from holdfast.web.route import WebRoute
from holdfast.web.token_gate import TokenGate
from holdfast.web.tokens import Tokens

if TYPE_CHECKING:
    from holdfast.app import Holdfast

__all__ = ["Dashboard", "dashboard"]

CONNECTIONS: Final = 4
"""Of the dashboard's own: however many visitors there are, the queue has the rest."""
STATEMENT_TIMEOUT: Final = 10.0
API: Final = "/api/"


class Dashboard:
    """The web app of one Holdfast app: an ASGI app."""

    def __init__(
        self,
        app: Holdfast,
        *,
        access: AccessRule | None,
        tokens: Tokens | None = None,
        hosts: Collection[str] | None = None,
        hide: Iterable[str] = (),
    ) -> None:
        self.app = app
        self._access = access
        self._gate = None if tokens is None else TokenGate(tokens)
        self._hidden = frozenset((*hide, *app.config.redact_keys))
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self.routes = (*api_routes.ROUTES, *page_routes.ROUTES)
        if self._gate is not None:
            self.routes += Login(self._gate).routes
        self._names = {route.name: route.path for route in self.routes}
        by_path = _by_path(self.routes)
        self._fixed = {path: routes for path, routes in by_path.items() if "{" not in path}
        if len(self._names) != len(self.routes):
            raise ConfigError("two routes of the dashboard have one name")
        starlette = Starlette(
            routes=[
                Route(path, self._endpoint(routes), methods=_methods(routes))
                for path, routes in by_path.items()
            ],
            exception_handlers={HTTPException: self._no_route},
        )
        self._asgi: ASGIApp = Guard(starlette)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._asgi(scope, receive, send)

    @property
    def control(self) -> Control:
        """`app.control` on few connections of the dashboard's own, each statement bounded."""
        return self.app.control.beside(
            max_connections=CONNECTIONS, statement_timeout=STATEMENT_TIMEOUT
        )

    def _endpoint(self, routes: Iterable[WebRoute]) -> Callable[[Request], Awaitable[Response]]:
        by_method = {method: route for route in routes for method in _methods([route])}

        async def endpoint(request: Request) -> Response:
            route = by_method[request.method]
            meant = self._fixed.get(_below(request))
            if meant is not None and meant[0].path != route.path and _takes_an_id(route):
                # GET /tasks/cancel asks for no task "cancel".
                raise HTTPException(405, headers={"Allow": ", ".join(_methods(meant))})
            try:
                return await self._answer(request, route)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is answered and logged
                return self._refusal(request, route.kind == "api", problem_of(error))

        return endpoint

    async def _answer(self, request: Request, route: WebRoute) -> Response:
        check_host(request.headers, self._hosts)
        check_site(request.method, request.headers)
        visitor = await self._visitor(request, route)
        context = Context(
            request, route, self.app, self.control, visitor, self._names, self._hidden
        )
        try:
            return await route.handler(context)
        finally:
            if request.method not in ("GET", "HEAD"):
                forget(self.app)

    async def _visitor(self, request: Request, route: WebRoute) -> Visitor:
        if route.needs is None:
            return NOBODY
        visitor = await self._who(request)
        if visitor is None:
            raise self._closed(request)
        if not visitor.may(route.needs):
            raise Refusal(
                403,
                "forbidden",
                f"this needs the role {route.needs.word}; {visitor.name} has {visitor.role.word}",
                needs=route.needs.word,
            )
        if route.payloads and not visitor.payloads:
            raise Refusal(
                403, "payloads_hidden", f"{visitor.name} may not see payloads", needs="payloads"
            )
        return visitor

    async def _who(self, request: Request) -> Visitor | None:
        if self._gate is not None:
            return self._gate.visitor(request)
        return None if self._access is None else await ask(self._access, request)

    def _closed(self, request: Request) -> Refusal:
        if self._gate is not None:
            return Refusal(
                401,
                "unauthorized",
                "no token, or one that is not known: send `Authorization: Bearer TOKEN`",
                {"WWW-Authenticate": 'Bearer realm="holdfast"'},
            )
        if self._access is None:
            return Refusal(
                401,
                "closed",
                "this dashboard is closed: its host must say who may enter, with "
                "dashboard(app, access=…)",
            )
        return Refusal(401, "unauthorized", "the host of this dashboard does not let you in")

    def _refusal(self, request: Request, api: bool, problem: Problem) -> Response:
        if api:
            return problem_answer(problem)
        if problem.kind == "unauthorized" and self._gate is not None and request.method == "GET":
            query = request.url.query
            wanted = quote(_below(request) + (f"?{query}" if query else ""), safe="/")
            return RedirectResponse(f"{prefix_of(request)}/login?next={wanted}", status_code=303)
        answer = refusal_page(request, problem)
        answer.headers.update(problem.headers)
        return answer

    async def _no_route(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        path = _below(request)
        kind = "method_not_allowed" if error.status_code == 405 else "not_found"
        said = f"there is no {request.method} {path!r:.200} here"
        headers = dict(error.headers or {})
        if "Allow" in headers:
            # In the same order each time.
            headers["Allow"] = ", ".join(sorted(headers["Allow"].split(", ")))
            said += f", but {headers['Allow']}"
        elif request.method in ("GET", "HEAD") and not path.startswith(API):
            said = f"there is no page {path!r:.200}"
        problem = Problem(error.status_code, kind, said)
        is_api = path.startswith(API) or any(r.kind == "api" for r in self._fixed.get(path, ()))
        return self._refusal(request, is_api, replace(problem, headers=headers))


def dashboard(
    app: Holdfast,
    *,
    access: AccessRule | None = None,
    hosts: Collection[str] | None = None,
    hide: Iterable[str] = (),
) -> Dashboard:
    """The dashboard and the HTTP API of an app, as an ASGI app to mount in yours.

    Nobody is let in until `access` says who: it is called with the request (Starlette's) and
    answers None, "read", "operate", "admin", several words with "payloads", or a `Visitor`; it
    may be a coroutine function. `hosts` are the names in Host headers to answer to, if your server
    does not see to that. `hide` are keys of arguments and results whose values nobody is shown,
    beside `password`, `token` and the like.
    """
    return Dashboard(app, access=access, hosts=hosts, hide=hide)


def _by_path(routes: Iterable[WebRoute]) -> Mapping[str, list[WebRoute]]:
    """The routes of each path; Starlette's own choice would answer 405 for the second method.

    Those without parameters come first: what is said of another method is said of them.
    """
    found: dict[str, list[WebRoute]] = {}
    for route in sorted(routes, key=lambda route: "{" in route.path):
        found.setdefault(route.path, []).append(route)
    return found


def _below(request: Request) -> str:
    """The path that is asked for, below our prefix."""
    path: str = request.scope["path"]
    return path.removeprefix(request.scope.get("root_path", ""))


def _takes_an_id(route: WebRoute) -> bool:
    return isinstance(route.about, Operation) and UUID in route.about.path.values()


def _methods(routes: Iterable[WebRoute]) -> list[str]:
    found = [method for route in routes for method in route.methods]
    return [*found, "HEAD"] if "GET" in found and "HEAD" not in found else found
