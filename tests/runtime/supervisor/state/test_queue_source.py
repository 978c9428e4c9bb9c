"""Which sources are looked into: all of a few, and of many only those that were named."""

from __future__ import annotations

import threading

from holdfast.core.limiting import queue_scope, task_scope
from holdfast.core.records import Claimed, Position
from holdfast.runtime.queue_choice import QueueChoice
from holdfast.runtime.supervisor.state.queue_source import FEW, QueueSource, SourceList, sources
from holdfast.runtime.wire.messages import KnownTask
from holdfast.store.verbs.key_walk import KeyPlace
from holdfast.store.verbs.limited_claims import LimitedClaim

TASK = KnownTask("task", 1, "default", "process", None, None)
NOW = 100.0


def of(number: int) -> SourceList:
    found = SourceList(
        sources([QueueChoice(f"t{n}") for n in range(number)], [TASK]), threading.RLock()
    )
    if found.are_many:
        assert found.begin_asking(NOW)
        found.asked([], NOW, NOW)
    return found


def awake(found: SourceList) -> list[str]:
    return [source.queue for source in found.in_turn()]


def test_a_few_are_all_looked_into_at_all_times() -> None:
    few = of(FEW)
    assert not few.are_many
    assert awake(few) == few.queues
    source = few.in_turn()[0]
    source.cursor.start(NOW)
    few.short(source, None, NOW)
    assert awake(few) == few.queues


def test_of_many_a_hint_wakes_only_the_queue_it_names() -> None:
    many = of(1_000)
    assert many.are_many
    assert awake(many) == []
    assert not many.may_find(NOW)
    assert many.wake(["t999", "t3", "nobody's"])
    assert awake(many) == ["t3", "t999"]
    assert not many.wake(["nobody's"])
    assert awake(many) == ["t3", "t999"]


def test_of_many_one_is_left_alone_when_it_is_empty() -> None:
    many = of(1_000)
    many.wake(["t3", "t4"])
    third, fourth = many.in_turn()
    third.cursor.start(NOW)
    many.found(third, Position(1, 1, bytes(16)), NOW)
    fourth.cursor.start(NOW)
    many.short(fourth, None, NOW)
    assert awake(many) == ["t3"]
    many.wake(["t4"])
    assert awake(many) == ["t3", "t4"]


def keyed(found: SourceList) -> QueueSource:
    """The source of the keys of the first queue, in which some wait."""
    found.signs("t0", True, NOW)
    return next(source for source in found.in_turn() if source.is_keyed)


def nothing(place: KeyPlace, *, saw_all: bool, next_us: int | None = None) -> LimitedClaim:
    return LimitedClaim(
        Claimed(bytes(16), []), is_held_back=True, next_us=next_us, place=place, saw_all=saw_all
    )


def test_keys_are_left_alone_when_a_whole_round_has_found_none() -> None:
    """Until the first of all rates that were met in the round lets something begin."""
    few = of(1)
    source = keyed(few)
    for page, next_us in ((KeyPlace("k", ""), 7_000_000), (KeyPlace("p", ""), 3_000_000)):
        source.begin_claim(NOW, 0)
        few.turned(source, nothing(page, saw_all=False, next_us=next_us), is_short=True, now=NOW)
        assert source.may_find(NOW)
        assert source.rounds.place == page
    source.begin_claim(NOW, 0)
    few.turned(source, nothing(KeyPlace("z"), saw_all=True), is_short=True, now=NOW)
    assert not source.may_find(NOW)
    assert source.held_back_until == NOW + 3


def test_a_hint_during_a_claim_is_not_forgotten() -> None:
    """What came free, or came in, meanwhile is not what the claim has seen."""
    few = of(1)
    source = keyed(few)
    source.begin_claim(NOW, 0)
    few.hinted(frozenset({"t0"}))
    few.turned(source, nothing(KeyPlace("m", ""), saw_all=True), is_short=True, now=NOW)
    assert source.may_find(NOW)
    assert source.rounds.place == KeyPlace("m")
    source.begin_claim(NOW, 0)
    few.turned(source, nothing(KeyPlace(), saw_all=True), is_short=True, now=NOW)
    assert not source.may_find(NOW)
    few.hinted(frozenset({"t0"}))
    plain = few.in_turn()[0]
    plain.begin_claim(NOW, 0)
    few.hinted(frozenset({"t0"}))
    few.hold_back(plain, None, NOW, is_full=False)
    assert plain.may_find(NOW)


def test_a_long_round_in_vain_is_not_made_again_at_every_poll_and_hint() -> None:
    few = of(1)
    source = keyed(few)
    source.begin_claim(NOW, 0)
    done = NOW + 1
    few.turned(source, nothing(KeyPlace(), saw_all=True), is_short=True, now=done)
    few.poll(done)
    assert not source.may_find(done)
    few.hinted(frozenset({"t0"}))
    few.revive(done + 0.5)
    assert not source.may_find(done + 0.5)
    few.revive(done + 1)
    assert source.may_find(done + 1)
    source.begin_claim(done + 1, 0)
    few.turned(source, nothing(KeyPlace(), saw_all=True), is_short=True, now=done + 1.01)
    few.hinted(frozenset({"t0"}))
    assert source.may_find(done + 1.01)


def test_of_what_is_full_only_a_freed_slot_makes_room() -> None:
    """Whatever comes in, it begins no sooner; and one task may wait for it in many queues."""
    few = of(3)
    for source in few.awake():
        source.is_gated = True
    full = few.awake()[0]
    full.begin_claim(NOW, 0)
    few.hinted(frozenset({"t0"}))
    few.hold_back(full, None, NOW, is_full=True)
    few.hinted(frozenset({"t0"}))
    assert not full.may_find(NOW)
    assert not few.freed({queue_scope("elsewhere"), task_scope("nothing of ours")})
    assert few.freed({queue_scope("t0")})
    assert full.may_find(NOW)
    full.begin_claim(NOW, 0)
    few.freed({task_scope(full.tasks[0])})
    few.hold_back(full, None, NOW, is_full=True)
    assert full.may_find(NOW), "it came free during the claim, which may not have seen it"
    full.begin_claim(NOW, 0)
    few.hold_back(full, None, NOW, is_full=True)
    few.hinted(frozenset({""}))
    assert full.may_find(NOW), "the limits may be others now"


def test_each_child_has_its_share_of_what_limits_leave() -> None:
    (source, *_) = of(1).awake()
    assert source.share(2) > 1000
    source.begin_claim(NOW, 40)
    source.met_limits(60, is_short=True, is_held_back=True)
    assert source.share(2) == 50
    source.begin_claim(NOW, 50)
    source.met_limits(50, is_short=False, is_held_back=False)
    assert 50 < source.share(2) < 60, "others may leave more by now"
