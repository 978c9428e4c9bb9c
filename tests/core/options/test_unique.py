from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.errors import ConfigError
from holdfast.core.options.unique import Unique, slot


def test_a_slot_is_sixty_four_hex_digits() -> None:
    assert len(slot("resize", "[1]", "{}")) == 64
    int(slot("resize", "[1]", "{}"), 16)


def test_without_a_key_the_arguments_are_the_key() -> None:
    assert slot("resize", "[1]", "{}") == slot("resize", "[1]", "{}")
    assert slot("resize", "[1]", "{}") != slot("resize", "[2]", "{}")
    assert slot("resize", "[1]", "{}") != slot("crop", "[1]", "{}")
    assert slot("resize", "[1]", "{}") != slot("resize", "[]", '{"a":1}')


def test_the_order_of_names_does_not_matter() -> None:
    assert slot("f", "[]", '{"a":1,"b":{"c":1,"d":2}}') == slot(
        "f", "[]", '{"b":{"d":2,"c":1},"a":1}'
    )


def test_with_a_key_the_arguments_do_not_matter() -> None:
    assert slot("f", "[1]", "{}", "user:1") == slot("f", "[2]", '{"a":1}', "user:1")
    assert slot("f", "[]", "{}", "user:1") != slot("f", "[]", "{}", "user:2")
    assert slot("f", "[]", "{}", "user:1") != slot("g", "[]", "{}", "user:1")


def test_a_key_cannot_be_forged_by_arguments() -> None:
    assert slot("f", "[]", "{}", '["[]","{}"]') != slot("f", "[]", "{}")
    assert slot("f", '["a"]', "{}") != slot("f", "[]", "{}", '["a"]')
    assert slot("a", "[]", "{}", "b:c") != slot("a:b", "[]", "{}", "c")


def test_the_option() -> None:
    assert Unique() == Unique(key=None, on_conflict="return")
    assert Unique("user:1", on_conflict="debounce").key == "user:1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": ""}, "must be a string of 1 to 255 characters"),
        ({"key": "x" * 256}, "must be a string of 1 to 255 characters"),
        ({"key": 7}, "must be a string of 1 to 255 characters"),
        ({"key": "a\x00"}, "must be text without NUL"),
        ({"key": "\ud800"}, "must be text without NUL"),
        ({"on_conflict": "ignore"}, "use one of return, replace, debounce, raise"),
    ],
)
def test_nonsense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Unique(**options)
