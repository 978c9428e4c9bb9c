"""Concurrency keys: templates are checked where they are written, keys where they are made."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.options.concurrency_key import KeyTemplate, check_key


def sync(tenant: str, region: str = "eu", *more: int, deep: bool = False, **rest: int) -> None: ...


def template(text: Any) -> KeyTemplate:
    return KeyTemplate(text, sync, "sync")


@pytest.mark.parametrize(
    ("text", "args", "kwargs", "key"),
    [
        ("{tenant}", ("acme",), {}, "acme"),
        ("{tenant}", (), {"tenant": "acme"}, "acme"),
        ("{region}:{tenant}", ("acme",), {}, "eu:acme"),
        ("{tenant}-{deep}", ("a", "us", 1), {"deep": True}, "a-True"),
        ("{{x}} {tenant}", (7,), {}, "{x} 7"),
        ("{tenant}", (None,), {}, None),
    ],
)
def test_a_key_is_made_from_the_arguments(
    text: str, args: tuple[Any, ...], kwargs: dict[str, Any], key: str | None
) -> None:
    assert template(text).fill(args, kwargs) == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        3,
        "tenant",
        "{other}",
        "{more}",
        "{rest}",
        "{}",
        "{0}",
        "{tenant",
        "{tenant!r}",
        "{tenant:>10}",
        "{tenant.id}",
    ],
)
def test_a_template_that_cannot_work_is_refused_at_definition(text: Any) -> None:
    with pytest.raises(ConfigError, match="sync"):
        template(text)


@pytest.mark.parametrize("value", ["", "x" * 256, "a\x00b", "\ud800", ["a"], {"a": 1}, b"x"])
def test_a_call_whose_key_cannot_be_is_refused(value: Any) -> None:
    with pytest.raises(PayloadError, match="concurrency key"):
        template("{tenant}").fill((value,), {})


@pytest.mark.parametrize("key", ["", "x" * 256, "a\x00b", "\ud800", 3, b"x"])
def test_a_key_of_a_single_send_is_checked(key: Any) -> None:
    with pytest.raises(ConfigError, match="concurrency_key"):
        check_key(key)
    assert check_key("acme: 1") == "acme: 1"
