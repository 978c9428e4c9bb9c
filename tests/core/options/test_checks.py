from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.core.errors import ConfigError
from holdfast.core.options import checks

CHOICES = ("red", "green")


@pytest.mark.parametrize("name", ["a", "images", "v1.2:a-b_C", "x" * 100])
def test_good_names(name: str) -> None:
    assert checks.queue_name(name) == name
    assert checks.task_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "two words", "a/b", "a;drop", "é", "a\n", "a\x00", "x" * 256, None, 7, b"a"]
)
def test_bad_names(name: Any) -> None:
    with pytest.raises(ConfigError, match=r"queue name .* is not usable: give 1 to 100") as caught:
        checks.queue_name(name)
    assert caught.value.option == "queue"
    with pytest.raises(ConfigError, match=r"task name .* is not usable: give 1 to 255"):
        checks.task_name(name)


def test_tasks_may_have_longer_names_than_queues() -> None:
    assert checks.task_name("x" * 255)
    with pytest.raises(ConfigError):
        checks.queue_name("x" * 101)


@pytest.mark.parametrize("value", [1, 50, 100])
def test_good_priorities(value: int) -> None:
    assert checks.priority(value) == value


@pytest.mark.parametrize("value", [0, 101, -1, 1.5, "1", True, None])
def test_bad_priorities(value: Any) -> None:
    with pytest.raises(ConfigError, match="give a whole number from 1"):
        checks.priority(value)


def test_tags() -> None:
    assert checks.tags(["b", "a", "b", "zwölf Uhr"]) == ("b", "a", "zwölf Uhr")
    assert checks.tags(()) == ()


@pytest.mark.parametrize(
    "value",
    ["abc", b"abc", 7, None, [""], [7], ["a\nb"], ["\ud800"], ["x" * 101], map(str, range(51))],
)
def test_bad_tags(value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        checks.tags(value)
    assert caught.value.option == "tags"


@pytest.mark.parametrize(
    ("check", "bad", "message"),
    [
        (lambda v: checks.at_least(1, v, "max_crashes"), 0, "max_crashes=0 is not usable"),
        (lambda v: checks.at_least(1, v, "max_crashes"), True, "max_crashes=True"),
        (lambda v: checks.at_least(1, v, "max_crashes"), 10**7, "from 1 to 1,000,000"),
        (lambda v: checks.flag(v, "dead_letter"), 1, "dead_letter=1 .*give True or False"),
        (lambda v: checks.flag(v, "dead_letter"), None, "dead_letter=None"),
        (
            lambda v: checks.choice(v, CHOICES, "colour"),
            "blue",
            "colour='blue' is unknown: use one of red, green",
        ),
        (lambda v: checks.choice(v, CHOICES, "colour"), None, "colour=None"),
        (lambda v: checks.positive_us(v, "timeout"), 0, "timeout=0 must be longer than nothing"),
        (lambda v: checks.positive_us(v, "timeout"), -1, "timeout=-1 must be between"),
    ],
)
def test_bad_values(check: Callable[[Any], Any], bad: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(bad)


def test_good_values() -> None:
    assert checks.at_least(1, 3, "x") == 3
    assert checks.flag(False, "x") is False
    assert checks.choice("red", CHOICES, "x") == "red"
    assert checks.positive_us("2s", "x") == 2_000_000
