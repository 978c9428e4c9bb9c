"""`-q` and `queues=`: which queues, in which order, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import ConfigError
from holdfast.runtime.queue_choice import QueueChoice, choose_queues


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("a,b", [QueueChoice("a"), QueueChoice("b")]),
        (" a , b,", [QueueChoice("a"), QueueChoice("b")]),
        ("high:5,low:1", [QueueChoice("high", 5), QueueChoice("low", 1)]),
        ("images=4", [QueueChoice("images", None, 4)]),
        ("a:2=3,b:1", [QueueChoice("a", 2, 3), QueueChoice("b", 1)]),
        (r"tenant\:42", [QueueChoice("tenant:42")]),
        (r"tenant\:42,default", [QueueChoice("tenant:42"), QueueChoice("default")]),
        (r"tenant\:42:3,default:1", [QueueChoice("tenant:42", 3), QueueChoice("default", 1)]),
        ("eu:mail", [QueueChoice("eu:mail")]),
        (["tenant:42", "a"], [QueueChoice("tenant:42"), QueueChoice("a")]),
        (("a",), [QueueChoice("a")]),
        ({"tenant:42": 3, "a": 1}, [QueueChoice("tenant:42", 3), QueueChoice("a", 1)]),
    ],
)
def test_what_is_understood(given: Any, found: list[QueueChoice]) -> None:
    assert list(choose_queues(given)) == found


@pytest.mark.parametrize("text", ["tenant:42", "tenant:42,default", "tenant:1,tenant:2"])
def test_a_name_that_looks_like_a_weight_is_asked_about(text: str) -> None:
    with pytest.raises(ConfigError, match=r"write 'tenant\\:\d+'"):
        choose_queues(text)


@pytest.mark.parametrize(
    "given",
    ["", ",", "a,a", "a=0", "a=x", "a=", "a:0,b:1", "a b", [], ["a", "a"], [1], {"a": 0}, 5, b"a"],
)
def test_what_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError):
        choose_queues(given)
