"""Frames and markers, however the pieces come."""

from __future__ import annotations

import pytest

from holdfast.core.outcome import Failed, Reported, Returned
from holdfast.core.result import TaskError
from holdfast.runtime.wire.framing import Reader, Splitter, frame, marker, new_nonce
from holdfast.runtime.wire.messages import Done, Hello, Leave, RunReport, ToSupervisor


def test_frames_are_put_together_from_any_pieces() -> None:
    sent = [Hello(), Done([RunReport(1, Returned("[1]"), 5, 6, 7)]), Hello()]
    data = b"".join(map(frame, sent))
    for size in (1, 2, 3, len(data)):
        reader = Reader(ToSupervisor)
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        assert [message for piece in pieces for message in reader.feed(piece)] == sent
        assert not reader.is_torn


def test_a_frame_that_is_not_complete_is_torn() -> None:
    reader = Reader(ToSupervisor)
    assert list(reader.feed(frame(Hello())[:-1])) == []
    assert reader.is_torn


def test_a_length_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="the stream is broken"):
        list(Reader(ToSupervisor, largest=10).feed(b"\xff\xff\xff\xff"))


def test_what_the_other_side_would_never_say_is_refused() -> None:
    with pytest.raises(ValueError, match="Leave"):
        list(Reader(ToSupervisor).feed(frame(Leave())))


@pytest.mark.parametrize(
    "outcome",
    [
        Returned('"é"'),
        Failed(TaskError("MINE", "no", data={"a": [1, None, 2.5, "x"]}), True),
    ],
)
def test_an_outcome_comes_as_it_was_sent(outcome: Reported) -> None:
    (heard,) = Reader(ToSupervisor).feed(frame(Done([RunReport(1, outcome)])))
    assert heard.reports[0].outcome == outcome


def test_output_is_told_apart_by_markers_wherever_the_pieces_end() -> None:
    nonce = new_nonce()
    data = b"nobody" + marker(nonce, 1) + b"one\n" + marker(nonce, 2) + marker(nonce, 3) + b"three"
    for size in range(1, len(data) + 1):
        splitter = Splitter(nonce)
        found: dict[int, bytes] = {}
        for start in range(0, len(data), size):
            for slot, piece in splitter.feed(data[start : start + size]):
                found[slot] = found.get(slot, b"") + piece
        assert found == {0: b"nobody", 1: b"one\n", 3: b"three"}
