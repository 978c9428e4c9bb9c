from __future__ import annotations

import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.store.sqlite.turns import turnstile
from holdfast.store.sqlite.turns.turnstile import Turnstile
from tests.store.sqlite.conftest import Start
from tests.support.deadline import until


@pytest.fixture
def turns(path: Path) -> Turnstile:
    path.touch()
    return turnstile.of(str(path))


def test_one_object_for_one_file(path: Path, turns: Turnstile, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.touch()

    assert turnstile.of(str(path)) is turns
    assert turnstile.of(str(other)) is not turns


def test_a_turn_is_taken_and_given_back(turns: Turnstile, start: Start) -> None:
    for _ in range(3):
        turns.enter(1)
        turns.leave()

    child = start("hold_turn", turns.path)
    assert child.hear() == "in"


def test_another_process_waits_for_its_turn(turns: Turnstile, start: Start) -> None:
    turns.enter(1)
    child = start("hold_turn", turns.path)
    # It cannot be in: its line is the first thing it says, and we are inside.
    with pytest.raises(AssertionError):
        _hear_within(child, 0.2)
    turns.leave()

    assert child.hear() == "in"


def test_a_late_turn_is_an_error_that_names_the_holder(turns: Turnstile, start: Start) -> None:
    child = start("hold_turn", turns.path)
    assert child.hear() == "in"

    with pytest.raises(StoreUnavailable) as caught:
        turns.enter(0.05)

    assert str(child.pid) in str(caught.value)
    assert "tests.store.sqlite.programs" in str(caught.value)
    assert turns.path in str(caught.value)


def test_the_place_of_one_who_gave_up_serves_the_next(turns: Turnstile, start: Start) -> None:
    child = start("hold_turn", turns.path)
    assert child.hear() == "in"
    with pytest.raises(StoreUnavailable):
        turns.enter(0.05)

    child.tell()
    turns.enter(10)
    turns.leave()

    assert child.hear() == "out"


def test_a_turn_that_comes_too_late_is_given_back(turns: Turnstile, start: Start) -> None:
    first = start("hold_turn", turns.path)
    assert first.hear() == "in"
    with pytest.raises(StoreUnavailable):
        turns.enter(0.05)
    first.tell()
    assert first.hear() == "out"

    # We wait no more, so another process must get it although we were in line before it.
    second = start("hold_turn", turns.path)

    assert second.hear() == "in"


def test_the_turn_of_a_killed_process_is_free(turns: Turnstile, start: Start) -> None:
    child = start("hold_turn", turns.path)
    assert child.hear() == "in"

    child.signal(signal.SIGKILL)
    turns.enter(10)

    turns.leave()


def test_a_stopped_process_does_not_stop_us_for_ever(turns: Turnstile, start: Start) -> None:
    child = start("hold_turn", turns.path)
    assert child.hear() == "in"
    child.signal(signal.SIGSTOP)

    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="held by process"):
        turns.enter(0.3)

    assert 0.25 < time.monotonic() - began < 5
    child.signal(signal.SIGCONT)
    child.tell()
    turns.enter(10)
    turns.leave()


def test_threads_of_one_process_are_told_apart(turns: Turnstile) -> None:
    turns.enter(1)
    errors: list[str] = []

    def ask() -> None:
        try:
            turns.enter(0.05)
        except StoreUnavailable as error:
            errors.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(10)
    turns.leave()

    assert "other threads of this process" in errors[0]


def test_the_waiting_thread_goes_when_it_is_idle(
    turns: Turnstile, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turnstile, "_IDLE_SECONDS", 0.01)
    child = start("hold_turn", turns.path)
    assert child.hear() == "in"
    child.tell()
    turns.enter(10)
    turns.leave()

    locks = turns._locks
    assert locks is not None
    until(lambda: locks._thread is None)

    again = start("hold_turn", turns.path)
    assert again.hear() == "in"
    again.tell()
    turns.enter(10)
    turns.leave()


def test_without_a_thread_it_still_waits(
    turns: Turnstile, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start("hold_turn", turns.path)
    assert child.hear() == "in"

    def refuse(thread: threading.Thread) -> None:
        child.tell()
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    turns.enter(10)
    turns.leave()

    assert child.hear() == "out"


def test_a_child_does_not_keep_the_parents_turn(turns: Turnstile, start: Start) -> None:
    turns.enter(1)
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        # The turn is the parent's: here it is free to ask for, and asking waits.
        try:
            turns.enter(0.05)
            os.write(ready[1], b"entered")
        except StoreUnavailable:
            os.write(ready[1], b"refused")
        os.read(go[0], 1)
        os._exit(0)
    try:
        assert os.read(ready[0], 100) == b"refused"
        turns.leave()
        # The child lives on, but holds nothing.
        other = start("hold_turn", turns.path)
        assert other.hear() == "in"
    finally:
        os.write(go[1], b"x")
        os.waitpid(child, 0)
        for fd in (*ready, *go):
            os.close(fd)


@pytest.mark.parametrize(
    ("database", "side"), [(0o600, 0o600), (0o640, 0o600), (0o660, 0o660), (0o666, 0o666)]
)
def test_side_files_are_open_to_those_who_may_write(path: Path, database: int, side: int) -> None:
    path.touch()
    path.chmod(database)
    turns = Turnstile(str(path))
    turns.enter(1)
    turns.leave()

    for name in turnstile.lock_paths(str(path)):
        assert stat.S_IMODE(Path(name).stat().st_mode) == side


def _hear_within(child: object, seconds: float) -> None:
    import select

    process = child._process  # type: ignore[attr-defined]
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    assert ready


class Interrupted(Exception):
    """What our signal handler raises in the middle of anything."""


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """Raise `Interrupted` in this thread after so many seconds."""

    def interrupt(number: int, frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)

    def after(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield after
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_interrupted_wait_leaves_the_line(
    turns: Turnstile, start: Start, alarm: Callable[[float], None]
) -> None:
    first = start("hold_turn", turns.path)
    assert first.hear() == "in"
    alarm(0.05)
    with pytest.raises(Interrupted):
        turns.enter(30)

    first.tell()
    assert first.hear() == "out"
    assert start("hold_turn", turns.path).hear() == "in"


def test_interrupted_anywhere_no_turn_is_kept(
    turns: Turnstile, start: Start, alarm: Callable[[float], None]
) -> None:
    turns.enter(1)
    turns.leave()
    for number in range(300):
        try:
            alarm(1e-6 + number % 50 * 1e-6)
            turns.enter(30)
            alarm(0)
            turns.leave()
        except Interrupted:
            # Either it was not entered, or it was and is left now.
            if turns._fair_lock._owner is not None:
                turns.leave()

    assert start("hold_turn", turns.path).hear() == "in"
