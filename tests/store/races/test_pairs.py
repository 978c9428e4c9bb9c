"""Any two verbs on one task, in every order of their steps, end as one after the other would.

Both answers and every column of every table have to be those of one of the two serial orders.
A verb that skips what somebody else holds may also have found nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import pytest

from holdfast.core.decide import Change
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.records import ClaimedTask
from holdfast.store.verbs import leases, operate, retention, timing
from tests.model.outcomes import change_for
from tests.model.side import Side, Tables, difference
from tests.store.races.actor import Hand, Script
from tests.store.races.stage import Ended, Scene, Stage
from tests.support.stores import MORNING, SECOND, Lab
from tests.support.verbs import QUEUE

ID = bytes(range(16))
TOKEN = bytes(range(16, 32))
POLICY = Policy(retry=Retry(3, delay=5))
NAMES = ("one", "other")


@dataclass(frozen=True, slots=True)
class Subject:
    """The task that both verbs are about; all times are known before."""

    task: ClaimedTask | None
    now: int

    @property
    def claimed(self) -> ClaimedTask:
        assert self.task is not None
        return self.task


Verb: TypeAlias = Callable[[Hand, Subject, int], Any]


def _vanished(gone: leases.Abandoned) -> Change:
    return change_for("vanish", gone, POLICY)


def _claim(hand: Hand, subject: Subject, place: int) -> list[bytes]:
    del subject
    return [task.id for task in hand.claim(token=bytes([place] * 16)).tasks]


def _recover(hand: Hand, subject: Subject, place: int) -> Any:
    del subject, place
    found = hand.run(leases.recover(_vanished))
    return None if found is None else (found.released, found.recovered)


def _ends(kind: str) -> Verb:
    def end(hand: Hand, subject: Subject, place: int) -> Any:
        del place
        return hand.write(subject.claimed, change_for(kind, subject.claimed, POLICY))

    return end


def _prune(hand: Hand, subject: Subject, place: int) -> int:
    del place
    late = subject.now + 1
    return hand.run(retention.prune(before=late, dead_before=late)).removed


VERBS: dict[str, Verb] = {
    "claim": _claim,
    "cancel": lambda hand, subject, place: hand.cancel(ID),
    "expire": lambda hand, subject, place: hand.run(timing.expire()),
    "drop": lambda hand, subject, place: hand.run(
        timing.drop(QUEUE, known=[], before=subject.now + 1)
    ),
    "promote": lambda hand, subject, place: hand.run(timing.promote()),
    "promote_now": lambda hand, subject, place: hand.run(timing.promote_now([ID])),
    "put_off": lambda hand, subject, place: hand.run(
        operate.reschedule([ID], move=True, run_at=subject.now + (place + 1) * SECOND)
    ),
    "prefer": lambda hand, subject, place: hand.run(operate.reschedule([ID], priority=place + 1)),
    "start": lambda hand, subject, place: hand.start(subject.claimed, pid=place),
    "release": lambda hand, subject, place: hand.release(subject.claimed),
    "recover": _recover,
    "complete": lambda hand, subject, place: hand.complete(subject.claimed, str(place)),
    **{kind: _ends(kind) for kind in ("fail", "retry", "snooze", "not_begun", "ack_cancel")},
    "resubmit": lambda hand, subject, place: hand.run(operate.resubmit([ID])),
    "delete": lambda hand, subject, place: hand.run(operate.delete([ID])),
    "prune": _prune,
}
NOTHING: Mapping[str, tuple[Any, ...]] = {
    "claim": ([],),
    "expire": ([],),
    "drop": ({},),
    "promote": ([],),
    "recover": (None, [0, 0]),
    "prune": (0,),
}
"""Verbs that pass over a row which somebody else is writing, and what they answer then."""


def _pending(lab: Lab) -> Subject:
    lab.send(id=ID, max_retries=3)
    return Subject(None, lab.clock.now)


def _late(lab: Lab) -> Subject:
    lab.send(id=ID, good_until=lab.clock.now + SECOND)
    return Subject(None, lab.clock.advance(1))


def _due(lab: Lab) -> Subject:
    lab.send(id=ID, delay_us=SECOND)
    return Subject(None, lab.clock.advance(1))


def _claimed(lab: Lab) -> Subject:
    lab.send(id=ID, max_retries=3)
    (task,) = lab.claim(token=TOKEN).tasks
    return Subject(task, lab.clock.advance(60))


def _running(lab: Lab) -> Subject:
    subject = _claimed(lab)
    lab.started(subject.claimed)
    return subject


def _failed(lab: Lab) -> Subject:
    subject = _running(lab)
    lab.fail(subject.claimed)
    return subject


def _since(now: int, value: Any) -> Any:
    """The same with all times counted from now: every scene has its own."""
    match value:
        case dict():
            return {name: _since(now, one) for name, one in value.items()}
        case list() | tuple():
            return [_since(now, one) for one in value]
        case int() if value >= MORNING:
            return value - now
    return value


START: dict[str, tuple[Callable[[Lab], Subject], str]] = {
    "PENDING": (_pending, "claim cancel drop put_off prefer"),
    "PENDING, late": (_late, "claim cancel expire drop put_off"),
    "SCHEDULED, due": (_due, "promote promote_now cancel put_off prefer"),
    "CLAIMED": (_claimed, "start release cancel recover complete"),
    "RUNNING": (
        _running,
        "complete fail retry snooze not_begun ack_cancel recover cancel release start",
    ),
    "FAILED": (_failed, "resubmit delete prune cancel complete"),
}
PAIRS = [
    pytest.param(state, first, second, id=f"{state}: {first} × {second}")
    for state, (_, verbs) in START.items()
    for first, second in combinations_with_replacement(verbs.split(), 2)
]


@pytest.mark.slow
@pytest.mark.parametrize(("state", "first", "second"), PAIRS)
def test_as_one_after_the_other(stage: Stage, state: str, first: str, second: str) -> None:
    def scene(*actors: str) -> Callable[[Lab], Scene]:
        def build(lab: Lab) -> Scene:
            subject = START[state][0](lab)
            verbs: dict[str, Verb] = dict(zip(NAMES, (VERBS[first], VERBS[second]), strict=True))

            def script(place: int, actor: str) -> Script:
                return lambda hand: verbs[actor](hand, subject, place)

            return {name: script(place, name) for place, name in enumerate(NAMES) if name in actors}

        return build

    def outcome(ended: Ended) -> tuple[Any, Any, Tables]:
        answers = [_since(stage.lab.clock.now, ended.results.get(name)) for name in NAMES]
        return answers[0], answers[1], _since(stage.lab.clock.now, Side(stage.lab).tables())

    serial = [outcome(ended) for ended in stage.every_order(scene(*NAMES), switches=0)]
    assert len(serial) == 2
    if first in NOTHING:
        (alone,) = [outcome(ended)[1:] for ended in stage.every_order(scene("other"))]
        serial += [(nothing, *alone) for nothing in NOTHING[first]]
    if second in NOTHING:
        (by_itself,) = [outcome(ended) for ended in stage.every_order(scene("one"))]
        serial += [(by_itself[0], nothing, by_itself[2]) for nothing in NOTHING[second]]
    for ended in stage.every_order(scene(*NAMES), switches=3):
        found = outcome(ended)
        assert found in serial, "\n".join(["; ".join(ended.order), *_unlike(found, serial)])


def _unlike(found: tuple[Any, Any, Tables], serial: list[tuple[Any, Any, Tables]]) -> list[str]:
    """How an outcome differs from each that is allowed."""
    return [
        f"answers {found[:2]}, allowed {one[:2]}; {'; '.join(difference(one[2], found[2]))}"
        for one in serial
    ]
