"""Notes: few, in order, and the last one always."""

from __future__ import annotations

import threading

from holdfast.runtime.child.notes import PERIOD, Notes
from holdfast.runtime.wire.messages import Note
from tests.support.deadline import until


class Desk:
    def __init__(self) -> None:
        self.sent: list[Note] = []
        self.notes = Notes(self.sent.append)


def test_the_first_leaves_at_once() -> None:
    desk = Desk()
    desk.notes.add(Note(1, progress="1"))
    assert desk.sent == [Note(1, progress="1")]


def test_what_follows_is_merged_and_comes_by_itself() -> None:
    desk = Desk()
    for number in range(1000):
        desk.notes.add(Note(1, progress=str(number)))
    until(lambda: desk.sent[-1].progress == "999")
    assert len(desk.sent) < 50


def test_what_is_merged_keeps_the_latest_of_everything() -> None:
    desk = Desk()
    desk.notes.add(Note(1))
    for note in (
        Note(1, progress="1", stage="A", meta="1"),
        Note(1, heartbeat=True, output="one\n"),
        Note(1, stage="B"),
        Note(1, progress="2", output="two\n"),
    ):
        desk.notes.add(note)
    desk.notes.settle(1)
    assert desk.sent[1:] == [Note(1, True, "2", "B", None, "one\ntwo\n")]


def test_an_end_sends_what_is_held_and_only_of_its_task() -> None:
    desk = Desk()
    for slot in (1, 2):
        desk.notes.add(Note(slot, progress="1"))
        desk.notes.add(Note(slot, progress="2"))
    desk.notes.settle(1)
    assert Note(1, progress="2") in desk.sent
    desk.notes.settle(1)
    desk.notes.settle(99)
    until(lambda: Note(2, progress="2") in desk.sent)
    assert len(desk.sent) == 4


def test_much_output_does_not_wait() -> None:
    desk = Desk()
    line = "x" * 1000
    for _ in range(200):
        desk.notes.add(Note(1, output=line))
    desk.notes.settle(1)
    assert "".join(note.output or "" for note in desk.sent) == line * 200
    assert max(len(note.output or "") for note in desk.sent) < 100_000


def test_threads_may_speak_at_once() -> None:
    desk = Desk()

    def speak(slot: int) -> None:
        for number in range(200):
            desk.notes.add(Note(slot, output=f"{number}\n"))
        desk.notes.settle(slot)

    threads = [threading.Thread(target=speak, args=(slot,)) for slot in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = "".join(f"{number}\n" for number in range(200))
    for slot in range(4):
        assert "".join(n.output or "" for n in desk.sent if n.slot == slot) == expected
    assert PERIOD <= 0.1
