"""The bounds of a log: of one run, and of what children print outside of any."""

from __future__ import annotations

import logging

import pytest

from holdfast.runtime.supervisor.children.output_log import (
    HEAD,
    SCARCE,
    TAIL,
    OutputLog,
    StrayOutput,
)


def test_what_fits_is_kept_and_given_once() -> None:
    log = OutputLog()
    log.add(b"one\n")
    assert (log.is_waiting, len(log)) == (True, 4)
    assert log.live() == b"one\n"
    assert (log.is_waiting, len(log), log.live()) == (False, 0, b"")
    log.add(b"two\n")
    assert log.rest() == b"two\n"


def test_of_a_flood_the_beginning_and_the_end_are_kept_and_the_gap_is_marked() -> None:
    log = OutputLog()
    log.add(b"a" * HEAD)
    assert log.live() == b"a" * HEAD
    for _ in range(100):
        log.add(b"b" * 65_536)
        assert len(log) <= 2 * TAIL
    log.add(b"the end")
    rest = log.rest()
    left_out = 100 * 65_536 + len(b"the end") - TAIL
    assert rest.startswith(b"\n[... %d bytes left out ...]\nb" % left_out)
    assert rest.endswith(b"the end")
    assert len(rest) < TAIL + 100


def test_when_memory_is_short_little_is_kept() -> None:
    log = OutputLog()
    for _ in range(100):
        log.add(b"x" * 16_384, scarce=True)
    assert len(log) <= 4 * SCARCE
    assert b"bytes left out" in log.rest()


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_stray_lines_are_logged_whole_and_with_the_childs_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "holdfast.output")
    stray = StrayOutput(Clock())
    stray.printed("process-1", b"half a ")
    assert caplog.messages == []
    stray.printed("process-1", b"line\nthe beginning of")
    assert caplog.messages == ["process-1: half a line"]
    stray.gone("process-1")
    assert caplog.messages[1:] == ["process-1: the beginning of"]


def test_stray_lines_beyond_a_number_a_second_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "holdfast.output")
    clock = Clock()
    stray = StrayOutput(clock)
    stray.printed("process-1", b"x\n" * 150)
    stray.printed("process-1", b"x\n" * 1000)
    stray.printed("thread-2", b"y\n")
    assert len(caplog.messages) == 101
    clock.now += 1
    stray.printed("process-1", b"again\n")
    assert caplog.messages[101:] == [
        "process-1: … and 1,050 more line(s)",
        "process-1: again",
    ]
