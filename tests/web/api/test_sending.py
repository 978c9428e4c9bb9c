"""Sending over HTTP: checked against the signature, once for each id, all of many or none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import pytest

from holdfast import Holdfast
from tests.web.client import WebClient

SEND = "/api/v1/tasks"


@pytest.fixture
def client(app: Holdfast, web: Callable[..., WebClient]) -> WebClient:
    @app.task("add")
    def add(a: int, b: int = 0) -> int:
        return a + b

    return web(app)


def test_a_call_is_sent_with_its_options(app: Holdfast, client: WebClient) -> None:
    options = {"queue": "q", "priority": 7, "delay": 60, "tags": ["x"], "unique": {"key": "k"}}
    body = {"name": "add", "args": [1], "kwargs": {"b": 2}, "options": options}
    answer = client.post(SEND, json=body)
    assert answer.status_code == 201
    info = app.handle(answer.json()["id"]).info()
    assert (info.args, info.kwargs, info.queue, info.priority) == ([1], {"b": 2}, "q", 7)
    assert (info.status.value, info.tags, info.unique_key) == ("SCHEDULED", ("x",), "k")
    held = client.post(SEND, json=body)
    assert (held.status_code, held.json()) == (200, {**answer.json(), "created": False})


def test_the_same_id_is_the_same_task(client: WebClient) -> None:
    body: dict[str, Any] = {"name": "add", "args": [1], "id": str(uuid4())}
    first, second = client.post(SEND, json=body), client.post(SEND, json=body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"] == body["id"]
    other = client.post(SEND, json={**body, "args": [2]})
    assert (other.status_code, other.json()["kind"]) == (409, "payload_mismatch")


def test_a_name_that_the_app_does_not_have_is_remarked(client: WebClient) -> None:
    """It may be one of other code; or a slip, and then it would wait for ever without a word."""
    answer = client.post(SEND, json={"name": "ad", "args": [1]})
    assert answer.status_code == 201
    assert answer.json()["remark"] == (
        "the app of this server has no task 'ad': it waits for a worker that knows it; "
        "was 'add' meant?"
    )
    many = client.post(f"{SEND}/many", json={"name": "zzz", "calls": [{"args": [1]}]})
    assert many.json()["remark"].endswith("it waits for a worker that knows it")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"name": "add", "args": ["x"]}, "args[0]"),
        ({"name": "add", "args": [1], "kwargs": {"b": {}}}, "kwargs.b"),
        ({"name": "add", "kwargs": {"self": 1}}, "kwargs.self"),
        ({"name": "add"}, "kwargs.a"),
        ({"name": "add", "arg": [1]}, "arg"),
        ({"name": "add", "args": [1], "options": {"prio": 1}}, "options.prio"),
        ({"name": "add", "args": [1], "options": {"queue": "a b"}}, "options.queue"),
        (
            {
                "name": "add",
                "args": [1],
                "options": {"good_for": 1, "good_until": "2030-01-01T00:00:00Z"},
            },
            "options.good_until",
        ),
        ({"name": "add", "args": 7}, "args"),
        ({"name": "a b"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 10_000}, "name"),
        ({"name": "add", "id": "7"}, "id"),
        ({"name": "add", "args": [1], "options": {"tags": ["a\x00"]}}, "options.tags[0]"),
        (
            {"name": "add", "args": [1], "options": {"unique": {"period": 0}}},
            "options.unique.period",
        ),
        (
            {"name": "add", "args": [1], "options": {"unique": {"period": 1, "until": "ended"}}},
            "options.unique.until",
        ),
        ({"name": "other", "args": [10**30]}, "args[0]"),
        ({}, "name"),
    ],
)
def test_what_does_not_fit_is_422_and_nothing_is_sent(
    body: Any, path: str | None, refused: WebClient
) -> None:
    answer = refused.post(SEND, json=body)
    assert answer.status_code == 422, answer.text
    if path is not None:
        assert answer.json()["path"] == path
    assert refused.get(SEND).json()["tasks"] == []


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[1", b'{"name": "\xff"}', b'{"name": "\\ud800"}', b"NaN", b"\x00", b"{}x"],
)
def test_what_is_no_json_is_400(text: bytes, refused: WebClient) -> None:
    answer = refused.post(SEND, content=text)
    assert answer.status_code in (400, 422), answer.text
    assert ("surrogate" in answer.text) is (b"ud800" in text)


def test_json_that_is_nested_too_deeply_is_422(refused: WebClient) -> None:
    deep = b'{"name": "other", "args": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    assert refused.post(SEND, content=deep).status_code == 422
    less = b'{"name": "other", "args": ' + b"[" * 300 + b"]" * 300 + b"}"
    assert refused.post(SEND, content=less).status_code == 422


def test_another_kind_of_body_is_415(refused: WebClient) -> None:
    headers = {"content-type": "text/plain"}
    assert refused.post(SEND, content=b"{}", headers=headers).status_code == 415


def test_too_large_is_413_before_it_is_read(client: WebClient) -> None:
    headers = {"content-type": "application/json", "content-length": "99999999999"}
    answer = client.post(SEND, content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["kind"]) == (413, "too_large")
    assert client.post(SEND, content=b"[" * 3_000_000).status_code == 413
    # In pieces, without a length.
    sent = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1_000):
            sent += 10_000
            yield b"[" * 10_000

    answer = client.post(SEND, content=pieces(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["kind"]) == (413, "too_large")
    payload = {"name": "add", "args": ["x" * 1_048_570]}
    assert client.post(SEND, json=payload).status_code in (413, 422)


def test_a_body_that_does_not_come_is_408(
    refused: WebClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.web.context.BODY_PATIENCE", 0.05)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    answer = refused.post(SEND, content=pieces(), headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["kind"]) == (408, "too_slow")
    assert answer.headers["connection"] == "close"


def test_many_are_sent_all_or_none(app: Holdfast, client: WebClient) -> None:
    calls: list[Any] = [{"args": [1]}, {"kwargs": {"a": 2, "b": 3}}]
    answer = client.post(f"{SEND}/many", json={"name": "add", "calls": calls})
    assert answer.status_code == 200, answer.text
    ids = [task["id"] for task in answer.json()["tasks"]]
    assert [app.handle(id).info().kwargs for id in ids] == [{}, {"a": 2, "b": 3}]
    wrong = client.post(f"{SEND}/many", json={"name": "add", "calls": [*calls, {"args": ["x"]}]})
    assert (wrong.status_code, wrong.json()["place"]) == (422, 2)
    assert wrong.json()["path"] == "calls[2].args[0]"
    both = client.post(f"{SEND}/many", json={"name": "add", "calls": [{"args": [], "kwargs": {}}]})
    assert both.json()["path"] == "calls[0].kwargs"
    assert len(app.control.tasks.list().tasks) == 2
