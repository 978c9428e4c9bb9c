"""The context that travels in a task's row."""

from __future__ import annotations

import pytest

from holdfast.core.tracing import carried, to_carry, trace_id_of

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    "carrier",
    [
        {},
        {"traceparent": PARENT},
        {"traceparent": PARENT, "tracestate": "a=1", "baggage": "user=ü"},
        {"b3": "1-2-1"},
    ],
)
def test_it_comes_back(carrier: dict[str, str]) -> None:
    assert carried(to_carry(carrier)) == carrier


def test_a_traceparent_alone_is_kept_as_it_is() -> None:
    assert to_carry({"traceparent": PARENT, "tracestate": ""}) == PARENT
    assert trace_id_of(PARENT) == TRACE
    assert trace_id_of(to_carry({"traceparent": PARENT, "baggage": "a=1"})) == TRACE


def test_baggage_that_is_too_much_is_left_behind() -> None:
    assert to_carry({"traceparent": PARENT, "baggage": "a" * 10_000}) == PARENT
    assert to_carry({"baggage": "a" * 10_000}) is None
    assert to_carry({"traceparent": "a" * 10_000}) is None


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", '{"traceparent": 1}', "x" * 10_000, "null", "00-x-y-z", "{}"]
)
def test_what_was_written_by_hand_is_no_trace(text: str | None) -> None:
    assert trace_id_of(text) is None
    assert all(isinstance(value, str) for value in carried(text).values())
