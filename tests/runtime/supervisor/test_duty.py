"""The loop of a duty: what a tick raises does not end the worker at once, nor for ever."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from time import monotonic

import pytest

from holdfast.core.errors import SchemaMismatch
from holdfast.runtime.supervisor import duty
from holdfast.runtime.supervisor.duty import DutyTable, Loop, Start, Stop
from tests.support.deadline import until


class Clumsy:
    """A duty that raises what it is told to, and then works."""

    name = "clumsy"

    def __init__(self, *raised: BaseException) -> None:
        self._raised: Iterator[BaseException] = iter(raised)
        self.ticks = 0

    def tick(self) -> float:
        for error in self._raised:
            raise error
        self.ticks += 1
        return 0.001


@pytest.fixture
def failed() -> list[tuple[str, BaseException]]:
    return []


def test_a_duty_that_raises_goes_on(
    failed: list[tuple[str, BaseException]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(duty, "_FIRST_PAUSE", 0.001)
    clumsy = Clumsy(ValueError("a row"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"))
    loop = Loop(clumsy, lambda name, error: failed.append((name, error)))
    with caplog.at_level(logging.ERROR, logger="holdfast.worker"):
        loop.start()
        until(lambda: clumsy.ticks > 2, within=10)
        loop.stop()
        assert loop.join(10)
    assert failed == []
    # Said once, not at every failure.
    assert caplog.text.count("clumsy failed and goes on") == 1


@pytest.mark.parametrize(
    ("error", "traced"), [(SchemaMismatch("no tables here"), False), (ValueError("a row"), True)]
)
def test_tables_that_are_gone_are_no_defect(
    error: Exception,
    traced: bool,
    failed: list[tuple[str, BaseException]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(duty, "_FIRST_PAUSE", 0.001)
    clumsy = Clumsy(error)
    loop = Loop(clumsy, lambda name, error: failed.append((name, error)))
    with caplog.at_level(logging.ERROR, logger="holdfast.worker"):
        loop.start()
        until(lambda: clumsy.ticks > 0, within=10)
        loop.stop()
        assert loop.join(10)
    assert str(error) in caplog.text
    assert ("Traceback" in caplog.text) is traced


def test_a_duty_that_does_nothing_but_raise_ends_the_worker(
    failed: list[tuple[str, BaseException]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duty, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(duty, "_PATIENCE", 0.05)
    loop = Loop(
        Clumsy(*[ValueError("for ever")] * 10_000), lambda name, error: failed.append((name, error))
    )
    loop.start()
    assert loop.join(20)
    assert [name for name, _ in failed] == ["clumsy"]


def test_what_no_retry_cures_ends_the_worker_at_once(
    failed: list[tuple[str, BaseException]],
) -> None:
    loop = Loop(Clumsy(MemoryError()), lambda name, error: failed.append((name, error)))
    loop.start()
    assert loop.join(10)
    assert [type(error) for _, error in failed] == [MemoryError]


def test_a_table_starts_and_stops_its_duties_in_their_turn(
    failed: list[tuple[str, BaseException]],
) -> None:
    first, beside, late = Clumsy(), Clumsy(), Clumsy()
    waits: list[str] = []

    def loop(duty: Clumsy, name: str) -> Loop:
        return Loop(
            duty,
            lambda name, error: failed.append((name, error)),
            lambda: waits.append(name),
        )

    table = DutyTable(
        (loop(first, "first"), Start.FIRST, Stop.LAST),
        (loop(beside, "beside"), Start.BESIDE, Stop.AT_ONCE),
        (loop(late, "late"), Start.BESIDE, Stop.UNAWAITED),
    )
    table.start(Start.FIRST)
    until(lambda: first.ticks, within=10)
    assert (beside.ticks, late.ticks) == (0, 0)
    table.start(Start.BESIDE)
    until(lambda: beside.ticks and late.ticks, within=10)
    table.stop(Stop.UNAWAITED, Stop.AT_ONCE, deadline=monotonic() + 10)
    assert waits == ["beside", "late"], "waits inside a tick are ended, too"
    beside.ticks = 0
    ticked = first.ticks
    until(lambda: first.ticks > ticked, within=10)
    assert not beside.ticks
    table.stop(Stop.LAST, deadline=monotonic() + 10)
    until(table.have_ended, within=10)
    assert failed == []
