"""Which rule fits a name, and which queue it draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

import pytest

from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.identity import new_ids
from holdfast.core.routing import (
    Route,
    RouteBook,
    decode,
    encode,
    read_pattern,
    read_queues,
)


def book(**routes: str) -> RouteBook:
    return RouteBook("1", [Route(pattern, {queue: 1}) for pattern, queue in routes.items()])


def queue_of(routes: RouteBook, name: str) -> str | None:
    route = routes.route_of(name)
    return None if route is None else route.draw(bytes(16))


def test_the_name_itself_then_the_longest_pattern_then_the_alphabet() -> None:
    routes = book(**{"mail.send": "a", "mail.*": "b", "mail.s*": "c", "*": "d", "*.send": "e"})
    assert queue_of(routes, "mail.send") == "a"
    assert queue_of(routes, "mail.sent") == "c"
    assert queue_of(routes, "mail.read") == "b"
    assert queue_of(routes, "sms.send") == "e"
    assert queue_of(routes, "resize") == "d"
    assert queue_of(book(**{"a*": "1", "*a": "2"}), "aba") == "2"


def test_a_star_stands_for_any_characters_and_nothing_else_does() -> None:
    routes = book(**{"a*b*c": "q"})
    assert [queue_of(routes, name) for name in ("abc", "aXbbXc", "a.b.c.c")] == ["q", "q", "q"]
    assert [queue_of(routes, name) for name in ("ab", "Xabc", "abcX", "acb")] == [None] * 4
    assert queue_of(book(**{"a.c": "q"}), "abc") is None
    assert queue_of(book(mail="q"), "mail.send") is None


def test_a_pattern_of_many_stars_is_decided_at_once() -> None:
    routes = book(**{"*a" * 60 + "*b": "q"})
    assert queue_of(routes, "a" * 255) is None


@pytest.mark.parametrize("kind", ["made here", "made by callers"])
def test_each_queue_gets_its_share(kind: str) -> None:
    route = Route("resize", {"images": 3, "images-eu": 1})
    own = [uuid5(UUID(int=0), str(n)).bytes for n in range(4000)]
    ids = new_ids(4000) if kind == "made here" else own
    drawn = Counter(route.draw(id) for id in ids)
    assert set(drawn) == {"images", "images-eu"}
    assert 2800 < drawn["images"] < 3200
    assert [route.draw(id) for id in ids[:50]] == [route.draw(id) for id in ids[:50]]


@pytest.mark.parametrize(
    "pattern", ["", "a b", "a\x00", "ä", "mail.?", "[a]", "x" * 256, "\ud800", None, 3, ["a"]]
)
def test_what_is_no_pattern_is_refused(pattern: Any) -> None:
    with pytest.raises(ConfigError, match="pattern of task names"):
        read_pattern(pattern)


@pytest.mark.parametrize(
    "queues",
    [
        "", "a b", None, 3, [], {}, ["a"], {"a": 0}, {"a": -1}, {"a": 1.5}, {"a": True},
        {"a": "3"}, {"a": 10**7}, {"a b": 1}, {3: 1}, {f"q{n}": 1 for n in range(101)},
    ],
)  # fmt: skip
def test_what_is_no_queue_and_no_weight_is_refused(queues: Any) -> None:
    with pytest.raises(ConfigError):
        read_queues(queues)


@pytest.mark.parametrize("queues", [{"mail": 1}, {"b": 3, "a": 1}])
def test_queues_are_stored_in_their_order(queues: Mapping[str, int]) -> None:
    assert list(decode(encode(queues)).items()) == list(queues.items())


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "{}", '"a"', '{"a": 0}', '{"a": 1e9}', '{"a b": 1}', "[" * 9999]
)
def test_what_somebody_wrote_by_hand_is_no_route(text: str | None) -> None:
    with pytest.raises(PayloadError, match="no route"):
        decode(text)
