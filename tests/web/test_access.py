"""What a host's rule may answer, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import ConfigError, Holdfast
from holdfast.web.access import Role, Visitor, read_answer
from holdfast.web.dashboard import dashboard
from tests.web.client import WebClient


@pytest.mark.parametrize(
    ("answer", "visitor"),
    [
        (None, None),
        ([], None),
        ("read", Visitor("x", Role.READ)),
        ("operate", Visitor("x", Role.OPERATE)),
        (Role.ADMIN, Visitor("x", Role.ADMIN)),
        (["read", "payloads"], Visitor("x", Role.READ, payloads=True)),
        ({"operate", "admin", "payloads"}, Visitor("x", Role.ADMIN, payloads=True)),
        (("payloads",), Visitor("x", Role.READ, payloads=True)),
        (Visitor("anna", Role.READ), Visitor("anna", Role.READ)),
    ],
)
def test_answers(answer: Any, visitor: Visitor | None) -> None:
    assert read_answer(answer, name="x") == visitor


@pytest.mark.parametrize("answer", [True, False, 3, "root", "Admin", "", ["read", "all"], b"admin"])
def test_an_answer_without_sense_lets_nobody_in(answer: Any) -> None:
    with pytest.raises(ConfigError, match="access answered"):
        read_answer(answer, name="x")


def test_a_rule_may_be_a_coroutine_function(app: Holdfast, web: Callable[..., WebClient]) -> None:
    async def rule(request: Any) -> str | None:
        return "admin" if request.headers.get("x-user") else None

    client = web(dashboard(app, access=rule))
    assert client.get("/api/v1/health/ready").status_code == 200
