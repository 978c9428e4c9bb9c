"""Every operation with what no honest client sends: it is refused, and nothing breaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, get_args
from urllib.parse import quote
from uuid import UUID

import msgspec
import pytest

from holdfast import Holdfast, Workflow
from holdfast.web.api.operation import Operation
from holdfast.web.api.routes import ROUTES
from holdfast.web.route import WebRoute
from tests.web.client import WebClient

TEXTS: Final = (
    "a\x00b",
    "\ud800",
    "9" * 400,
    "-1",
    str(2**63),
    "1e400",
    "NaN",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "P999999999Y",
    "' OR 1=1 --",
    "é" * 2_000,
    "../../etc/passwd",
    "\r\nX: y",
    str(UUID(int=0)),
)
VALUES: Final[tuple[Any, ...]] = (
    None,
    2**64,
    -(10**30),
    1e308,
    [],
    {},
    [[[]]],
    {"$secret": {"a": "\ud800"}},
    "\ud800",
    "a\x00b",
    ["\x00"],
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    str(UUID(int=0)),
    [str(UUID(int=0))] * 3,
)
BODIES: Final = (
    b"",
    b"\xff\xfe",
    b"{",
    b"[" * 100_000,
    b'{"a":' * 5_000,
    b"9" * 5_000,
    b'{"name":"add","args":[1e999]}',
    b'{"name":"add","args":[' + b"9" * 5_000 + b"]}",
)
JSON: Final = {"content-type": "application/json"}
REQUIRED: Final = {"name": "add", "calls": [{"args": [1]}], "verb": "cancel", "at_most": 5}
LONG_POLLS: Final = "wait"


class Target:
    """A store with a task, a workflow and a schedule in it, and who attacks it."""

    def __init__(self, app: Holdfast, client: WebClient) -> None:
        self._client = client
        self.broken: list[str] = []
        self.requests = 0

        @app.task("add")
        def add(a: int, b: int = 0) -> int:
            return a + b

        @app.workflow("whole")
        def whole(wf: Workflow, a: int) -> Any:
            return wf.step(add, a).result

        self._task, self._whole = str(add.send(1).id), str(whole.send(2).id)
        app.control.schedules.add("s", "@daily", add.call(1))

    def path(self, route: WebRoute, attacked: str = "", value: str = "") -> str:
        path = route.path
        own = self._whole if "/workflows" in path else self._task
        known = {"id": own, "queue": "default", "name": "s"}
        for name in route.about.path:
            text = value if name == attacked else known.get(name, "x")
            path = path.replace(f"{{{name}}}", quote(text.encode(errors="surrogatepass"), safe=""))
        return path

    def send(self, route: WebRoute, path: str, body: bytes | None = None) -> None:
        (method,) = route.methods
        content = b"{}" if body is None and route.about.body is not None else body
        answer = self._client.send(method, path, content=content, headers=JSON)
        self.requests += 1
        if answer.status_code >= 500:
            self.broken.append(f"{method} {path[:150]} {body!r:.150}: {answer.text[:150]}")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest) -> str:
    """An empty store of each engine in turn."""
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def target(app: Holdfast, web: Callable[..., WebClient]) -> Target:
    return Target(app, web(app))


def operations() -> list[WebRoute]:
    return [route for route in ROUTES if isinstance(route.about, Operation)]


def test_paths_and_queries(target: Target) -> None:
    for route in operations():
        about: Operation = route.about
        for name in about.path:
            for text in TEXTS:
                target.send(route, target.path(route, name, text))
        fields = () if about.query is None else msgspec.structs.fields(about.query)
        for field in fields:
            for text in () if field.encode_name == LONG_POLLS else TEXTS:
                asked = f"{field.encode_name}={quote(text.encode(errors='surrogatepass'))}"
                target.send(route, f"{target.path(route)}?{asked}")
    assert target.broken == []
    assert target.requests > 1_000


def test_bodies(target: Target) -> None:
    for route in operations():
        if route.about.body is not None:
            for body in _bodies(route.about.body):
                target.send(route, target.path(route), body)
    assert target.broken == []
    assert target.requests > 1_000


def _bodies(kind: Any) -> Iterator[bytes]:
    yield from BODIES
    fields = msgspec.structs.fields(kind)
    usual = {f.encode_name: REQUIRED.get(f.encode_name, "x") for f in fields if f.required}
    for field in fields:
        for value in VALUES:
            yield json.dumps({**usual, field.encode_name: value}).encode()
        for inner in (field.type, *get_args(field.type)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                for part in msgspec.structs.fields(inner):
                    for value in VALUES:
                        given = {**usual, field.encode_name: {part.encode_name: value}}
                        yield json.dumps(given).encode()
