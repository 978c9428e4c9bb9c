"""Wrong tokens: an address may try a few, and one that tries many learns nothing."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from holdfast import Holdfast
from holdfast.web.access import Role
from holdfast.web.dashboard import Dashboard
from holdfast.web.problem import Refusal
from holdfast.web.token_gate import MOST_WRONG, TokenGate
from holdfast.web.tokens import Tokens
from tests.web.client import WebClient

TOKEN = "a-token-of-some-length"


def sent_from(host: str) -> Request:
    return Request({"type": "http", "headers": [], "client": (host, 1)})


def test_an_address_that_tries_many_is_refused_for_a_while() -> None:
    now = [0.0]
    gate = TokenGate(Tokens.one(TOKEN), clock=lambda: now[0])
    guesser, other = sent_from("2001:db8::1"), sent_from("2001:db8:0:1::1")
    for number in range(MOST_WRONG):
        assert gate.holder(guesser, f"wrong {number}") is None
        assert gate.holder(other, "withdrawn") is None
        assert gate.holder(other, "") is None
    for neighbour in (guesser, sent_from("2001:db8::2")):
        with pytest.raises(Refusal) as caught:
            gate.holder(neighbour, TOKEN)
        assert caught.value.problem.status == 429
        assert caught.value.problem.headers == {"Retry-After": "60"}
    found = gate.holder(other, TOKEN)
    assert found is not None
    assert found.role is Role.ADMIN
    now[0] = 60.0
    assert gate.holder(guesser, TOKEN) is not None


def test_many_addresses_fill_no_memory() -> None:
    gate = TokenGate(Tokens.one(TOKEN))
    for number in range(3_000):
        assert gate.holder(sent_from(f"10.0.{number // 250}.{number % 250}"), "wrong") is None
    assert len(gate._wrong) == 1_000


def test_the_login_and_the_api_count_together(app: Holdfast) -> None:
    with WebClient(Dashboard(app, access=None, tokens=Tokens.one(TOKEN))) as client:
        for number in range(MOST_WRONG // 2):
            assert client.post("/login", data={"token": f"wrong {number}"}).status_code == 401
            headers = {"authorization": f"Bearer wrong-{number}"}
            assert client.get("/api/v1/tasks", headers=headers).status_code == 401
        page = client.post("/login", data={"token": TOKEN})
        assert (page.status_code, "set-cookie" in page.headers) == (429, False)
        api = client.get("/api/v1/tasks", headers={"authorization": f"Bearer {TOKEN}"})
        assert (api.status_code, api.json()["kind"]) == (429, "too_many_tokens")
        assert int(api.headers["retry-after"]) > 0
        # Nothing was tried: these are asked for a token as ever.
        assert client.get("/api/v1/tasks").status_code == 401
        assert client.get("/login").status_code == 200
