"""The streams: whole lines to the descriptor, or to whoever is speaking."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import pytest

from holdfast.runtime.child.stdio import StandardStream, TaskOutput
from holdfast.runtime.wire.messages import Message, Said


@pytest.fixture
def pipe() -> Iterator[tuple[int, StandardStream]]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    yield reading, StandardStream(writing)
    os.close(reading)
    os.close(writing)


def text_over(raw: StandardStream) -> io.TextIOWrapper:
    return io.TextIOWrapper(raw, encoding="utf-8", write_through=True)  # type: ignore[arg-type]


def read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""


def test_a_line_leaves_when_it_is_complete(pipe: tuple[int, StandardStream]) -> None:
    reading, raw = pipe
    stream = text_over(raw)
    print("half a", end=" ", file=stream)
    assert read(reading) == b""
    print("line", file=stream)
    assert read(reading) == b"half a line\n"
    print("rest", end="", file=stream)
    stream.flush()
    assert read(reading) == b"rest"


def test_a_long_piece_does_not_wait_for_its_end(pipe: tuple[int, StandardStream]) -> None:
    reading, raw = pipe
    raw.write(b"x" * 10_000)
    assert len(read(reading)) == 10_000


def test_words_go_to_whoever_speaks(pipe: tuple[int, StandardStream]) -> None:
    reading, raw = pipe
    sent: list[Message] = []
    speaking: list[TaskOutput] = []
    raw.route = lambda: speaking[-1] if speaking else None
    stream = text_over(raw)
    print("nobody", file=stream)
    speaking.append(TaskOutput(sent.append, 7))
    print("somebody", file=stream)
    print("unfinished", end="", file=stream)
    assert read(reading) == b"nobody\n"
    assert sent == [Said(7, b"somebody\n")]
    speaking[-1].settle()
    assert sent[1:] == [Said(7, b"unfinished")]


def test_it_cannot_be_closed(pipe: tuple[int, StandardStream]) -> None:
    reading, raw = pipe
    stream = text_over(raw)
    stream.close()
    print("still here", file=stream)
    assert read(reading) == b"still here\n"
    assert stream.fileno() == raw.fileno()
    assert not stream.isatty()


def test_a_reader_that_is_gone_is_no_error() -> None:
    reading, writing = os.pipe()
    raw = StandardStream(writing)
    os.close(reading)
    assert raw.write(b"to nobody\n") == 10
    os.close(writing)
    assert raw.write(b"to nothing\n") == 11
