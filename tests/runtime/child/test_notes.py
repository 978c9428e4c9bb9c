"""Notes: few, in order, and the last one always."""

from __future__ import annotations

import threading

from holdfast.runtime.child.notes import PERIOD, Notes
from holdfast.runtime.wire.messages import Note
from tests.support.deadline import until


class Recorder:
    def __init__(self) -> None:
        self.sent: list[Note] = []
        self.notes = Notes(self.sent.append)


def test_the_first_leaves_at_once() -> None:
    recorder = Recorder()
    recorder.notes.add(Note(1, progress="1"))
    assert recorder.sent == [Note(1, progress="1")]


def test_what_follows_is_merged_and_comes_by_itself() -> None:
    recorder = Recorder()
    for number in range(1000):
        recorder.notes.add(Note(1, progress=str(number)))
    until(lambda: recorder.sent[-1].progress == "999")
    assert len(recorder.sent) < 50


def test_what_is_merged_keeps_the_latest_of_everything() -> None:
    recorder = Recorder()
    recorder.notes.add(Note(1))
    for note in (
        Note(1, progress="1", stage="A", meta="1"),
        Note(1, heartbeat=True, output="one\n"),
        Note(1, stage="B"),
        Note(1, progress="2", output="two\n"),
    ):
        recorder.notes.add(note)
    recorder.notes.settle(1)
    assert recorder.sent[1:] == [Note(1, True, "2", "B", None, "one\ntwo\n")]


def test_an_end_sends_what_is_held_and_only_of_its_task() -> None:
    recorder = Recorder()
    for slot in (1, 2):
        recorder.notes.add(Note(slot, progress="1"))
        recorder.notes.add(Note(slot, progress="2"))
    recorder.notes.settle(1)
    assert Note(1, progress="2") in recorder.sent
    recorder.notes.settle(1)
    recorder.notes.settle(99)
    until(lambda: Note(2, progress="2") in recorder.sent)
    assert len(recorder.sent) == 4


def test_much_output_does_not_wait() -> None:
    recorder = Recorder()
    line = "x" * 1000
    for _ in range(200):
        recorder.notes.add(Note(1, output=line))
    recorder.notes.settle(1)
    assert "".join(note.output or "" for note in recorder.sent) == line * 200
    assert max(len(note.output or "") for note in recorder.sent) < 100_000


def test_threads_may_speak_at_once() -> None:
    recorder = Recorder()

    def speak(slot: int) -> None:
        for number in range(200):
            recorder.notes.add(Note(slot, output=f"{number}\n"))
        recorder.notes.settle(slot)

    threads = [threading.Thread(target=speak, args=(slot,)) for slot in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = "".join(f"{number}\n" for number in range(200))
    for slot in range(4):
        assert "".join(n.output or "" for n in recorder.sent if n.slot == slot) == expected
    assert PERIOD <= 0.1
