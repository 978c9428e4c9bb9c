"""The dashboard inside other applications, at a path: FastAPI, Starlette, Django, Flask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast import ConfigError, Holdfast
from holdfast.web import dashboard, mounted
from holdfast.web.access import Role, Visitor
from holdfast.web.context import Context
from holdfast.web.dashboard import Dashboard
from tests.web.client import WebClient

PREFIX = "/inner/tasks"


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Dashboard]:
    """A dashboard that knows its visitor by a header."""

    def who(request: Any) -> Visitor | None:
        name = request.headers.get("x-user")
        return Visitor(name, Role.ADMIN) if name else None

    with Holdfast(f"sqlite:///{tmp_path / 'tasks.db'}") as app:
        app.send("any")
        yield dashboard(app, access=who)


def in_starlette(app: ASGIApp) -> ASGIApp:
    return Starlette(routes=[Mount("/inner", routes=[Mount("/tasks", app)])])


def in_fastapi(app: ASGIApp) -> ASGIApp:
    from fastapi import FastAPI

    outer = FastAPI(openapi_url=None)
    outer.mount(PREFIX, app)
    return outer


def in_django(app: ASGIApp) -> ASGIApp:
    import django
    from django.conf import settings
    from django.core.asgi import get_asgi_application

    # There is one Django in a process, which another test may have configured.
    if not settings.configured:
        settings.configure()
        django.setup()
    settings.ROOT_URLCONF = __name__
    settings.ALLOWED_HOSTS = ["*"]
    settings.SECRET_KEY = "x" * 50
    return mounted(PREFIX, app, beside=get_asgi_application())


urlpatterns: list[Any] = []
"""Django's, of which there are none."""


@pytest.mark.parametrize("mount", [in_starlette, in_fastapi, in_django])
def test_inside_an_asgi_application(mount: Callable[[ASGIApp], ASGIApp], inside: Dashboard) -> None:
    with WebClient(mount(inside)) as client:
        assert client.get(f"{PREFIX}/api/v1/tasks").status_code == 401
        answer = client.get(f"{PREFIX}/api/v1/tasks", headers={"x-user": "ada"})
        assert (answer.status_code, len(answer.json()["tasks"])) == (200, 1)
        missing = client.get(f"{PREFIX}/api/v1/nothing")
        assert (missing.status_code, missing.json()["kind"]) == (404, "not_found")
        assert client.get("/api/v1/tasks", headers={"x-user": "ada"}).status_code == 404


def test_inside_flask(inside: Dashboard) -> None:
    from a2wsgi import ASGIMiddleware
    from flask import Flask
    from werkzeug.middleware.dispatcher import DispatcherMiddleware

    outer = Flask(__name__)
    inner: Any = ASGIMiddleware(inside)  # type: ignore[arg-type]
    wsgi: Any = DispatcherMiddleware(outer.wsgi_app, {PREFIX: inner})
    transport = httpx.WSGITransport(app=wsgi)
    with httpx.Client(transport=transport, base_url="http://localhost") as client:
        assert client.get(f"{PREFIX}/api/v1/tasks").status_code == 401
        answer = client.get(f"{PREFIX}/api/v1/tasks?limit=5", headers={"x-user": "ada"})
        assert (answer.status_code, len(answer.json()["tasks"])) == (200, 1)
        sent = client.post(
            f"{PREFIX}/api/v1/tasks", json={"name": "any"}, headers={"x-user": "ada"}
        )
        assert sent.status_code == 201
        assert client.get("/api/v1/tasks").status_code == 404


def test_links_begin_where_it_is_mounted(inside: Dashboard) -> None:
    from starlette.requests import Request

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    route = inside.routes[0]
    for root, prefix in (("", ""), ("/a b/", "/a%20b"), ("/ä", "/%C3%A4")):
        request = Request({**scope, "root_path": root})
        names = {"x": "/tasks/{id}"}
        visitor = Visitor("x", Role.READ)
        context = Context(request, route, inside.app, inside.control, visitor, names)
        assert context.url("/tasks", status=["A", "B"], none=None) == (
            f"{prefix}/tasks?status=A&status=B"
        )
        assert context.url_for("x", id="a/b", q="&") == f"{prefix}/tasks/a%2Fb?q=%26"


async def _outer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 299, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


def test_only_what_is_below_the_path_is_ours(inside: Dashboard) -> None:
    with WebClient(mounted("/tasks", inside, beside=_outer)) as client:
        assert client.get("/tasks/api/v1/health/live").status_code == 200
        assert [client.get(path).status_code for path in ("/", "/tasksx", "/x/tasks")] == [299] * 3


@pytest.mark.parametrize("path", ["", "/", "tasks", "/tasks/"])
def test_a_path_that_makes_no_sense_is_refused(path: str, inside: Dashboard) -> None:
    with pytest.raises(ConfigError, match="must begin with a slash"):
        mounted(path, inside, beside=_outer)
