"""The way of a request: host, origin, route, visitor, answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast import Holdfast
from holdfast.web.dashboard import dashboard
from holdfast.web.guard import HEADERS
from tests.web.client import WebClient


def test_health_is_open_to_all(app: Holdfast, web: Callable[..., WebClient]) -> None:
    client = web(dashboard(app))
    assert client.get("/api/v1/health/live").json() == {"status": "live"}
    assert client.get("/api/v1/health/ready").json() == {"status": "ready"}


@pytest.mark.parametrize("path", ["/api/v1/health/ready", "/api/v1/tasks", "/api/v1/queues"])
def test_while_the_database_is_away_it_says_when_to_ask_again(
    path: str, open_app: Callable[..., Holdfast], web: Callable[..., WebClient]
) -> None:
    away = open_app("postgresql://anna:hunter2@127.0.0.1:1/none", connect_timeout=0.2)
    answer = web(away).get(path)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["kind"] in ("not_ready", "store_unavailable")
    assert "hunter2" not in answer.text


@pytest.mark.parametrize("path", ["/api/v1/health/live", "/nothing", "/api/nothing"])
def test_every_answer_carries_the_headers(
    path: str, app: Holdfast, web: Callable[..., WebClient]
) -> None:
    answer = web(dashboard(app)).get(path)
    assert {name: answer.headers[name] for name in HEADERS} == dict(HEADERS)
    assert answer.headers["cache-control"] == "no-store"


def test_an_unknown_path_is_404_in_the_language_of_its_place(admin: WebClient) -> None:
    api, page = admin.get("/api/v1/nothing"), admin.get("/nothing")
    assert (api.status_code, api.json()["kind"]) == (404, "not_found")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    wrong = admin.post("/api/v1/health/live")
    assert (wrong.status_code, wrong.json()["kind"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("referer", ["http://[", "http://localhost/\\\\evil.example", "\x7f", "//"])
def test_whatever_the_referer_is_a_refusal_is_a_page(referer: str, admin: WebClient) -> None:
    answer = admin.get("/nothing", headers={"referer": referer})
    assert (answer.status_code, "evil.example" in answer.text) == (404, "evil" in referer)
    assert 'href="/\\' not in answer.text
    chosen = admin.post("/theme", data={"theme": "dark"}, headers={"referer": referer})
    assert chosen.status_code == 303
    assert chosen.headers["location"] in ("/", "/evil.example")


def test_only_hosts_that_are_listed_are_answered(
    app: Holdfast, web: Callable[..., WebClient]
) -> None:
    client = web(dashboard(app, hosts=["localhost", "[::1]"]))
    for host in ("localhost", "localhost:8000", "LOCALHOST", "[::1]:8000"):
        assert client.get("/api/v1/health/live", headers={"host": host}).status_code == 200
    for host in ("evil.example", "localhost.evil.example", "localhost@evil", "", "[::2]"):
        answer = client.get("/api/v1/health/live", headers={"host": host})
        assert (answer.status_code, answer.json()["kind"]) == (421, "unknown_host")
