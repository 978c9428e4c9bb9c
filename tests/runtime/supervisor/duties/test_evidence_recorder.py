"""What is held of running tasks while it cannot be written: little, however much they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.options.policy import Policy
from holdfast.runtime.supervisor.children import output_log
from holdfast.runtime.supervisor.duties import evidence_recorder
from holdfast.runtime.supervisor.duties.evidence_recorder import EvidenceRecorder
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.child_handle import Assignment, ProtocolError
from holdfast.runtime.wire.messages import Note
from holdfast.store.verbs.evidence import LONGEST_OUTPUT
from tests.runtime.supervisor.state.test_ledger import claimed
from tests.support.hands import Hands
from tests.support.verbs import new_token

MEGABYTE = 1024 * 1024


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


@pytest.fixture
def recorder(hands: Hands) -> EvidenceRecorder:
    """A recorder whose store is away."""
    outage = Outage(1.0)
    outage.noted(StoreUnavailable("away"))
    return EvidenceRecorder(cast("Any", None), hands.ledger, outage)


def running(hands: Hands, slot: int) -> Assignment:
    assignment = Assignment(slot, claimed(slot, new_token()), Policy(), hands.child, 10)
    assignment.started, assignment.given_at = True, 1.0
    hands.has(assignment)
    return assignment


def test_a_generator_is_held_no_longer_than_the_store_would_keep_it(
    hands: Hands, recorder: EvidenceRecorder
) -> None:
    run = running(hands, 1)
    recorder.noted(run, Note(1, output="begin\n"))
    for _ in range(50):
        recorder.noted(run, Note(1, output="x" * MEGABYTE))
        recorder.tick()
    assert recorder._size <= LONGEST_OUTPUT
    note, _ = recorder.close(run)
    assert note is not None
    assert note.output is not None
    assert len(note.output) == LONGEST_OUTPUT
    assert note.output.startswith("begin\nxxx")
    assert note.output.endswith("[... more output is left out: a task's output ends here ...]\n")


def test_progress_is_noted_when_there_is_no_more_room_for_output(
    hands: Hands, recorder: EvidenceRecorder
) -> None:
    run = running(hands, 1)
    for _ in range(3):
        recorder.noted(run, Note(1, output="x" * MEGABYTE))
    assert recorder._records[1].take_note() is not None
    recorder.noted(run, Note(1, output="x"))
    assert recorder._records[1].note is None
    recorder.noted(run, Note(1, output="x", progress="1"))
    note = recorder._records[1].take_note()
    assert note is not None
    assert (note.progress, note.output) == ("1", None)


@pytest.mark.parametrize("how", ["printed", "yielded"])
def test_many_runs_together_are_held_within_bounds(
    hands: Hands, recorder: EvidenceRecorder, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(evidence_recorder, "MOST_HELD", 2 * MEGABYTE)
    runs = [running(hands, slot) for slot in range(1, 51)]
    for _ in range(20):
        for run in runs:
            if how == "printed":
                recorder.said(run, b"x" * 16 * 1024)
            else:
                recorder.noted(run, Note(run.slot, output="x" * 16 * 1024))
        recorder.tick()
    assert recorder._size < 2 * MEGABYTE + 50 * 3 * output_log.SCARCE
    note, part = recorder.close(runs[-1])
    if how == "printed":
        assert part is not None
        assert b"bytes left out" in part.data
    else:
        assert note is not None
        assert "left out" in (note.output or "")


def test_a_note_that_no_store_takes_is_the_childs_fault(
    hands: Hands, recorder: EvidenceRecorder
) -> None:
    with pytest.raises(ProtocolError):
        recorder.noted(running(hands, 1), Note(1, progress="\0"))


def test_output_in_the_name_of_another_childs_task_is_the_childs_fault(
    hands: Hands, recorder: EvidenceRecorder
) -> None:
    with ExitStack() as undo:
        other = Hands(undo)
        run = Assignment(7, claimed(7, new_token()), Policy(), other.child, 10, given_at=1.0)
        hands.has(run)
        with pytest.raises(ProtocolError):
            recorder.printed(hands.child, 7, b"forged")
