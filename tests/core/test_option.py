from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.core import option
from holdfast.core.errors import ConfigError

CHOICES = ("red", "green")


@pytest.mark.parametrize("name", ["a", "images", "v1.2:a-b_C", "x" * 100])
def test_good_names(name: str) -> None:
    assert option.queue_name(name) == name
    assert option.task_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "two words", "a/b", "a;drop", "é", "a\n", "a\x00", "x" * 256, None, 7, b"a"]
)
def test_bad_names(name: Any) -> None:
    with pytest.raises(ConfigError, match=r"queue name .* is not usable: give 1 to 100") as caught:
        option.queue_name(name)
    assert caught.value.option == "queue"
    with pytest.raises(ConfigError, match=r"task name .* is not usable: give 1 to 255"):
        option.task_name(name)


def test_tasks_may_have_longer_names_than_queues() -> None:
    assert option.task_name("x" * 255)
    with pytest.raises(ConfigError):
        option.queue_name("x" * 101)


@pytest.mark.parametrize("value", [1, 50, 100])
def test_good_priorities(value: int) -> None:
    assert option.priority(value) == value


@pytest.mark.parametrize("value", [0, 101, -1, 1.5, "1", True, None])
def test_bad_priorities(value: Any) -> None:
    with pytest.raises(ConfigError, match="give a whole number from 1"):
        option.priority(value)


def test_tags() -> None:
    assert option.tags(["b", "a", "b", "zwölf Uhr"]) == ("b", "a", "zwölf Uhr")
    assert option.tags(()) == ()


@pytest.mark.parametrize(
    "value",
    ["abc", b"abc", 7, None, [""], [7], ["a\nb"], ["\ud800"], ["x" * 101], map(str, range(51))],
)
def test_bad_tags(value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        option.tags(value)
    assert caught.value.option == "tags"


@pytest.mark.parametrize(
    ("check", "bad", "message"),
    [
        (lambda v: option.at_least(1, v, "max_crashes"), 0, "max_crashes=0 is not usable"),
        (lambda v: option.at_least(1, v, "max_crashes"), True, "max_crashes=True"),
        (lambda v: option.at_least(1, v, "max_crashes"), 10**7, "from 1 to 1,000,000"),
        (lambda v: option.flag(v, "dead_letter"), 1, "dead_letter=1 .*give True or False"),
        (lambda v: option.flag(v, "dead_letter"), None, "dead_letter=None"),
        (
            lambda v: option.choice(v, CHOICES, "colour"),
            "blue",
            "colour='blue' is unknown: use one of red, green",
        ),
        (lambda v: option.choice(v, CHOICES, "colour"), None, "colour=None"),
        (lambda v: option.positive_us(v, "timeout"), 0, "timeout=0 must be longer than nothing"),
        (lambda v: option.positive_us(v, "timeout"), -1, "timeout=-1 must be between"),
    ],
)
def test_bad_values(check: Callable[[Any], Any], bad: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(bad)


def test_good_values() -> None:
    assert option.at_least(1, 3, "x") == 3
    assert option.flag(False, "x") is False
    assert option.choice("red", CHOICES, "x") == "red"
    assert option.positive_us("2s", "x") == 2_000_000
