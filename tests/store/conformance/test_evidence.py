"""Notes, checkpoints and logs: what a run leaves behind, and that nobody else can."""

from __future__ import annotations

import os

from holdfast.core.identity import new_id
from holdfast.core.records import ClaimedTask
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import evidence
from holdfast.store.verbs.evidence import LogPart, TaskNote
from tests.support.stores import Lab
from tests.support.verbs import new_token


def test_a_note_changes_what_it_names_and_nothing_else(lab: Lab) -> None:
    task = lab.running()
    began = lab.task(task.id).heartbeat_at
    now = lab.clock.advance(5)
    first = TaskNote(
        task.key, task.token, progress='{"done":1}', stage="ONE", meta='{"a":"\\u0000"}'
    )
    assert lab.run(evidence.write_notes([first])) == {task.key}
    record = lab.task(task.id)
    assert (record.progress, record.stage, record.stage_meta) == (
        '{"done":1}',
        "ONE",
        '{"a":"\\u0000"}',
    )
    assert record.heartbeat_at == began
    assert record.updated_at == now
    now = lab.clock.advance(5)
    lab.run(evidence.write_notes([TaskNote(task.key, task.token, heartbeat=True)]))
    record = lab.task(task.id)
    assert record.heartbeat_at == now
    assert (record.progress, record.stage) == ('{"done":1}', "ONE")


def test_a_stage_comes_with_its_own_meta_or_none(lab: Lab) -> None:
    task = lab.running()
    lab.run(evidence.write_notes([TaskNote(task.key, task.token, stage="ONE", meta="1")]))
    lab.run(evidence.write_notes([TaskNote(task.key, task.token, meta="2")]))
    assert (lab.task(task.id).stage, lab.task(task.id).stage_meta) == ("ONE", "2")
    lab.run(evidence.write_notes([TaskNote(task.key, task.token, stage="TWO")]))
    assert (lab.task(task.id).stage, lab.task(task.id).stage_meta) == ("TWO", None)


def test_output_is_appended_up_to_its_bound(lab: Lab) -> None:
    task = lab.running()
    for line in ("one\n", "zwei – 2\n"):
        lab.run(evidence.write_notes([TaskNote(task.key, task.token, output=line)]))
    found = lab.run(evidence.read_output(task.id))
    assert found == (TaskStatus.RUNNING, 1, "one\nzwei – 2\n")
    much = "x" * evidence.LONGEST_OUTPUT
    lab.run(evidence.write_notes([TaskNote(task.key, task.token, output=much)]))
    found = lab.run(evidence.read_output(task.id))
    assert found is not None
    assert found.text is not None
    assert len(found.text) == evidence.LONGEST_OUTPUT
    assert found.text.startswith("one\nzwei – 2\nxxx")
    assert lab.run(evidence.read_output(new_id())) is None


def test_notes_of_a_batch_are_fenced_one_by_one(lab: Lab) -> None:
    mine, lost, ended = lab.running(), lab.running(), lab.running()
    lab.complete(ended)
    before = lab.task(lost.id), lab.task(ended.id)
    notes = [
        TaskNote(mine.key, mine.token, progress="1"),
        TaskNote(lost.key, mine.token, progress="1"),
        TaskNote(ended.key, ended.token, progress="1"),
    ]
    assert lab.run(evidence.write_notes(notes)) == {mine.key}
    assert (lab.task(lost.id), lab.task(ended.id)) == before


def test_a_lost_claim_and_the_one_after_it_may_speak_in_one_batch(lab: Lab) -> None:
    lost = lab.running()
    lab.fail_and_resubmit(lost)
    mine = lab.run_again(lost.id)
    for order in ((lost, mine), (mine, lost)):
        notes = [TaskNote(task.key, task.token, output=f"{task is mine};") for task in order]
        assert lab.run(evidence.write_notes(notes)) == {mine.key}
    assert lab.task(mine.id).output == "True;True;"


def test_a_checkpoint_is_found_again_in_a_later_attempt(lab: Lab) -> None:
    task = lab.running()
    read = evidence.read_checkpoint
    assert lab.run(read(task.key, task.token, "charge")) == (None,)
    assert lab.run(evidence.write_checkpoint(task.key, task.token, "charge", '{"id":"\\u0000"}'))
    assert lab.run(read(task.key, task.token, "charge")) == ('{"id":"\\u0000"}',)
    assert lab.run(read(task.key, task.token, "ship")) == (None,)


def test_a_checkpoint_is_fenced(lab: Lab) -> None:
    task, other = lab.running(), lab.running()
    before = lab.contents("checkpoints")
    for token in (new_token(), other.token):
        assert lab.run(evidence.read_checkpoint(task.key, token, "charge")) is None
        assert not lab.run(evidence.write_checkpoint(task.key, token, "charge", "1"))
    lab.complete(task)
    assert not lab.run(evidence.write_checkpoint(task.key, task.token, "charge", "1"))
    assert lab.contents("checkpoints") == before


def part(
    task: ClaimedTask, number: int, data: bytes, *, attempt: int = 1, token: bytes = b""
) -> LogPart:
    return LogPart(task.key, token or task.token, attempt, number, data)


def test_a_log_is_read_as_it_was_written(lab: Lab) -> None:
    task, other = lab.running(), lab.running()
    pieces = [b"sixteen bytes \x00\n", b"\xff\xfe no text", os.urandom(100_000)]
    stored = lab.run(evidence.append_logs([part(task, i, data) for i, data in enumerate(pieces)]))
    assert stored == {(task.key, 1, 0), (task.key, 1, 1), (task.key, 1, 2)}
    lab.run(evidence.append_logs([part(other, 0, b"other")]))
    found = lab.run(evidence.read_log(task.id))
    assert [(p.attempt, p.part, p.data) for p in found] == [
        (1, i, data) for i, data in enumerate(pieces)
    ]
    assert {p.written_at for p in found} == {lab.clock.now}
    assert [p.part for p in lab.run(evidence.read_log(task.id, after=(1, 0)))] == [1, 2]
    assert [p.part for p in lab.run(evidence.read_log(task.id, parts=1))] == [0]
    assert lab.run(evidence.read_log(task.id, attempt=2)) == []
    assert lab.run(evidence.read_log(new_id())) == []


def test_a_log_may_end_after_its_run_and_only_by_it(lab: Lab) -> None:
    task = lab.running()
    lab.complete(task)
    assert lab.run(evidence.append_logs([part(task, 0, b"late")]))
    assert lab.run(evidence.append_logs([part(task, 0, b"late")])), "repeating is safe"
    assert not lab.run(evidence.append_logs([part(task, 1, b"x", token=new_token())]))
    assert not lab.run(evidence.append_logs([part(task, 1, b"x", attempt=2)]))
    assert [p.data for p in lab.run(evidence.read_log(task.id))] == [b"late"]


def test_one_refused_part_does_not_refuse_the_others(lab: Lab) -> None:
    task = lab.running()
    good, bad = part(task, 0, b"good"), part(task, 1, b"bad", token=new_token())
    assert lab.run(evidence.append_logs([bad, good])) == {(task.key, 1, 0)}


def test_old_logs_are_forgotten_page_by_page(lab: Lab) -> None:
    old = [lab.running() for _ in range(3)]
    for task in old:
        lab.run(evidence.append_logs([part(task, 0, b"a"), part(task, 1, b"b")]))
    young = lab.running()
    limit = lab.clock.advance(60)
    lab.run(evidence.append_logs([part(young, 0, b"c"), part(old[0], 2, b"d")]))
    first = lab.run(evidence.prune_logs(before=limit, page=2))
    assert first.next is not None
    second = lab.run(evidence.prune_logs(first.next, before=limit, page=2))
    assert first.removed + second.removed == 2
    left = {task.id: len(lab.run(evidence.read_log(task.id))) for task in (*old, young)}
    assert left == {old[0].id: 3, old[1].id: 0, old[2].id: 0, young.id: 1}
