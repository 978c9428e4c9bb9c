"""A thread child: several tasks at a time, each with its own output and its own end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from holdfast.core.outcome import CancelAcknowledged, Failed, Returned, TimedOut
from holdfast.runtime.wire import messages
from tests.support.nursery import Kid, Nursery, job


@pytest.fixture(scope="module")
def several() -> Iterator[Nursery]:
    with Nursery("tests.runtime.apps.several:app") as nursery:
        nursery.manifest()
        yield nursery


@pytest.fixture
def kid(several: Nursery) -> Kid:
    return several.fork("thread", 4)


def test_values_and_failures(kid: Kid) -> None:
    assert kid.do("t.add", 1, 2).result == "3"
    outcome = kid.do("t.fail")
    assert (outcome.kind, outcome.listed) == (Failed, True)
    outcome = kid.do("t.exit")
    assert outcome.error.error_code == "TASK_EXITED"
    assert (outcome.report.cpu_time_us, outcome.report.peak_memory_kb) == (None, None)


def test_four_run_at_once_and_are_told_apart(kid: Kid) -> None:
    orders = [job("t.meet", f"number {n}") for n in range(4)]
    outcomes = kid.do_all(orders)
    assert [outcome.result for outcome in outcomes] == [f'"number {n}"' for n in range(4)]
    for n, order in enumerate(orders):
        lines = kid.output(order).decode().splitlines()
        assert lines == [f"number {n} waits", f"number {n} goes on", f"number {n} leaves"]


def test_more_than_the_lanes_wait_their_turn(kid: Kid) -> None:
    orders = [job("t.add", n, 1) for n in range(100)]
    assert [o.result for o in kid.do_all(orders)] == [str(n + 1) for n in range(100)]


def test_a_generator_streams(kid: Kid) -> None:
    order = job("t.stream")
    assert kid.do_all([order])[0].result == '"end"'
    notes = [note for note in kid.heard(messages.Note) if note.slot == order.slot]
    assert "".join(note.output or "" for note in notes) == "one\ntwo\n"


def test_output_that_is_not_wanted_belongs_to_nobody(kid: Kid) -> None:
    order = job("t.quiet")
    kid.do_all([order])
    assert kid.output(order) == b""
    kid.until(lambda: b"not for the log\n" in kid.output(0))


def test_a_task_is_ended_and_its_neighbours_are_not(kid: Kid) -> None:
    first, second = kid.begin("t.spin"), kid.begin("t.spin")
    kid.until(lambda: "in thread_spin" in _stack(kid, first.slot))
    kid.say(messages.Cancel(first.slot, "timeout"))
    assert kid.outcomes(1)[first.slot].kind is TimedOut
    assert kid.output(first) == b"cleaned up\n"
    kid.until(lambda: [begun.slot for begun in kid.page.begun()] == [second.slot])
    assert kid.do("t.add", 1, 2).result == "3"
    kid.say(messages.Cancel(second.slot, "cancel"))
    assert kid.outcomes(1)[second.slot].kind is CancelAcknowledged


def test_a_task_may_return_when_asked_to_stop(kid: Kid) -> None:
    order = kid.begin("t.polite")
    kid.say(messages.Cancel(order.slot, "cancel"))
    assert kid.outcomes(1)[order.slot].result == '"noticed"'


def test_an_end_that_comes_too_late_hits_nobody(kid: Kid) -> None:
    for _ in range(300):
        order = job("t.sleep", 0.0)
        kid.say(messages.Run([order]))
        kid.say(messages.Cancel(order.slot, "cancel"))
        kid.until(partial(_has_ended, kid, order.slot))
    assert kid.do("t.add", 1, 2).result == "3"
    kid.say(messages.Leave())
    assert kid.died().exit_code == 0, "no lane was lost"


def test_the_stack_of_a_running_task(kid: Kid) -> None:
    order = kid.begin("t.spin")
    kid.until(lambda: "in thread_spin" in _stack(kid, order.slot))
    kid.say(messages.Stack(5, order.slot))
    answer = kid.hear(messages.Stacked)
    assert answer.ticket == 5
    assert answer.text.splitlines()[0].endswith("in thread_spin")


def _stack(kid: Kid, slot: int) -> str:
    kid.say(messages.Stack(1, slot))
    return kid.hear(messages.Stacked).text


def test_an_end_that_comes_before_the_code_is_not_lost(kid: Kid) -> None:
    for _ in range(100):
        order = job("t.spin")
        kid.say(messages.Run([order]), messages.Cancel(order.slot, "cancel"))
        kid.until(partial(_has_ended, kid, order.slot))


def _has_ended(kid: Kid, slot: int) -> bool:
    """Whether a task was ended, or taken back before it began."""
    outcomes = [o for done in kid.heard(messages.Done) for o in done.reports]
    withdrawn = [s for message in kid.heard(messages.Withdrawn) for s in message.slots]
    return slot in withdrawn or any(o.slot == slot for o in outcomes)


def test_leave_waits_for_what_runs(kid: Kid) -> None:
    order = kid.begin("t.sleep", 0.2)
    kid.say(messages.Leave())
    assert kid.outcomes(1)[order.slot].kind is Returned
    assert kid.died().exit_code == 0
