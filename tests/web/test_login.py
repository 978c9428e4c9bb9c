"""Tokens: where a request brings one, the file of hashes, and the login's cookie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import ConfigError, Holdfast
from holdfast.web.access import Role, Visitor
from holdfast.web.dashboard import Dashboard
from holdfast.web.tokens import Tokens, line_of, new_token
from tests.web.client import WebClient

TOKEN = "a-token-of-some-length"


@pytest.fixture
def client(app: Holdfast, web: Callable[..., WebClient]) -> WebClient:
    return web(Dashboard(app, access=None, tokens=Tokens.one(TOKEN)))


def test_the_login_sets_a_cookie_and_the_logout_takes_it(client: WebClient) -> None:
    shown = client.get("/login?next=/tasks")
    assert shown.status_code == 200
    entered = client.post("/login", data={"token": TOKEN, "next": "/tasks?status=failed"})
    assert (entered.status_code, entered.headers["location"]) == (303, "/tasks?status=failed")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/;" in cookie
    left = client.post("/logout")
    assert left.headers["location"] == "/login"
    assert not client.cookies


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN}x", "ä", "a\x00b"])
def test_a_wrong_token_is_refused(token: str, client: WebClient) -> None:
    answer = client.post("/login", data={"token": token})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    if token:
        assert f'"{token}"' not in answer.text


@pytest.mark.parametrize(
    "elsewhere", ["//evil.example", "https://evil.example", "/\\evil", "", "/\r\nx: y", "/\t/e"]
)
def test_the_login_leads_to_no_other_site(elsewhere: str, client: WebClient) -> None:
    answer = client.post("/login", data={"token": TOKEN, "next": elsewhere})
    assert answer.headers["location"] == "/"


def test_the_file_holds_hashes_and_names(tmp_path: Path) -> None:
    token, other = new_token(), new_token()
    file = tmp_path / "tokens"
    file.write_text(
        f"# who may enter\n\n{line_of('anna', 'operate,payloads', token)}\n"
        f"{line_of('prometheus', 'read', other)}\n"
    )
    assert token not in file.read_text()
    tokens = Tokens.in_file(file)
    assert tokens.holder(token) == Visitor("anna", Role.OPERATE, payloads=True)
    assert tokens.holder(other) == Visitor("prometheus", Role.READ)
    assert tokens.holder(new_token()) is None
    assert tokens.both(Tokens.one(TOKEN)).holder(TOKEN) is not None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("anna", "line 1: a line is"),
        ("anna admin secret-itself", "line 1: the hash is"),
        (f"anna root sha256:{'0' * 64}", "'root' are no roles"),
        (f"an/na read sha256:{'0' * 64}", "the name 'an/na'"),
        ("", "there is no token"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(line)
    with pytest.raises(ConfigError, match=said) as caught:
        Tokens.in_file(file)
    assert "secret-itself" not in str(caught.value)


@pytest.mark.parametrize("token", ["", "short", "ä" * 20, "a token\twith tabs in it"])
def test_a_token_that_is_too_easy_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="HOLDFAST_WEB_TOKEN"):
        Tokens.one(token)
