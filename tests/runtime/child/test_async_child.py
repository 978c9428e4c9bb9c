"""An async child: hundreds of coroutines in one loop."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import pytest

from holdfast.core.outcome import (
    AbortAsked,
    CancelAcknowledged,
    Failed,
    Interrupted,
    Reported,
    RetryAsked,
    Returned,
    SnoozeAsked,
)
from holdfast.runtime.wire import messages
from tests.support.nursery import Kid, Nursery, job


@pytest.fixture(scope="module")
def several() -> Iterator[Nursery]:
    with Nursery("tests.runtime.apps.several:app") as nursery:
        nursery.manifest()
        yield nursery


@pytest.fixture
def kid(several: Nursery) -> Kid:
    return several.fork("async", 250)


def test_a_value(kid: Kid) -> None:
    assert kid.do("a.add", 1, 2).result == "3"


def test_two_hundred_run_at_once(kid: Kid) -> None:
    orders = [job("a.together", 200) for _ in range(200)]
    outcomes = kid.do_all(orders)
    assert {outcome.kind for outcome in outcomes} == {Returned}


def test_more_than_the_lanes_wait_their_turn(several: Nursery) -> None:
    kid = several.fork("async", 3)
    orders = [job("a.add", n, 1) for n in range(100)]
    assert [o.result for o in kid.do_all(orders)] == [str(n + 1) for n in range(100)]


@pytest.mark.parametrize(
    ("how", "kind", "code"),
    [
        ("value", Failed, "UNHANDLED_EXCEPTION"),
        ("exit", Failed, "TASK_EXITED"),
        ("interrupt", Failed, "KEYBOARD_INTERRUPT"),
        ("retry", RetryAsked, "RETRY_LATER"),
        ("snooze", SnoozeAsked, None),
        ("abort", AbortAsked, "ABORTED"),
        ("err", Failed, "MINE"),
        ("ok", Returned, None),
    ],
)
def test_every_way_to_end(kid: Kid, how: str, kind: type[Reported], code: str | None) -> None:
    outcome = kid.do("a.ways", how)
    assert outcome.kind is kind
    if code is not None:
        error = outcome.error
        assert error.error_code == code
        assert "holdfast/runtime" not in (error.traceback or "")
    assert kid.do("a.add", 1, 2).result == "3"


def test_arguments_that_do_not_fit(kid: Kid) -> None:
    outcome = kid.do("a.add", "x", 2)
    assert outcome.error.error_code == "ARGUMENTS_INVALID"


def test_output_of_neighbours_is_told_apart(kid: Kid) -> None:
    orders = [job("a.say", f"number {n}", 5) for n in range(20)]
    outcomes = kid.do_all(orders)
    for n, (order, outcome) in enumerate(zip(orders, outcomes, strict=True)):
        expected = "".join(f"number {n} {i}\nnumber {n} logs\n" for i in range(5))
        assert kid.output(order).decode() == expected
        assert outcome.result.strip('"').replace("-", "") == order.id.hex()


def test_an_async_generator_streams(kid: Kid) -> None:
    order = job("a.stream")
    outcome = kid.do_all([order])[0]
    assert (outcome.kind, outcome.result) == (Returned, "null")
    notes = [note for note in kid.heard(messages.Note) if note.slot == order.slot]
    assert "".join(note.output or "" for note in notes) == "one\ntwo\n"


def test_cancel_raises_in_the_coroutine(kid: Kid) -> None:
    first, second = kid.begin("a.sleep"), kid.begin("a.sleep")
    kid.say(messages.Cancel(first.slot, "cancel"))
    assert kid.outcomes(1)[first.slot].kind is CancelAcknowledged
    assert kid.output(first) == b"cleaned up\n"
    kid.until(lambda: [begun.slot for begun in kid.page.begun()] == [second.slot])


def test_cancel_before_the_first_line(kid: Kid) -> None:
    orders = [job("a.sleep") for _ in range(50)]
    kid.say(messages.Run(orders), *(messages.Cancel(order.slot, "cancel") for order in orders))
    assert {o.kind for o in kid.outcomes(50).values()} == {CancelAcknowledged}


def test_a_cancelled_coroutine_may_return(kid: Kid) -> None:
    order = kid.begin("a.refuse")
    # Begun means handed to the loop; the code itself begins a moment later.
    kid.until(lambda: "in async_refuse" in _stack(kid, order.slot))
    kid.say(messages.Cancel(order.slot, "cancel"))
    assert kid.outcomes(1)[order.slot].result == '"survived"'


def test_a_cancellation_that_nobody_asked_for_is_a_failure(kid: Kid) -> None:
    outcome = kid.do("a.cancel_itself")
    assert outcome.kind is Failed
    assert outcome.error.exception == "asyncio.exceptions.CancelledError"


def test_a_coroutine_that_blocks_the_loop_can_be_seen_and_asked(kid: Kid) -> None:
    order = kid.begin("a.block", 60)
    waiting = [job("a.add", 1, 2) for _ in range(3)]
    kid.say(messages.Run(waiting), messages.Withdraw([waiting[0].slot]))
    assert kid.hear(messages.Withdrawn, seconds=5).slots == [waiting[0].slot]
    kid.until(lambda: "in async_block" in _stack(kid, order.slot))
    kid.say(messages.Cancel(order.slot, "cancel"))
    found = kid.outcomes(3)
    assert found[order.slot].result == '"noticed"'
    assert {found[o.slot].result for o in waiting[1:]} == {"3"}


def test_a_blocking_coroutine_delays_only_its_own_child(several: Nursery) -> None:
    blocked, free = several.fork("async", 10), several.fork("async", 10)
    order = blocked.begin("a.block", 60)
    began = monotonic()
    assert free.do("a.add", 1, 2).result == "3"
    assert monotonic() - began < 5
    blocked.say(messages.Cancel(order.slot, "cancel"))
    blocked.outcomes(1)


def test_the_stack_of_a_coroutine_that_waits(kid: Kid) -> None:
    order = kid.begin("a.sleep")
    kid.until(lambda: "in deeper" in _stack(kid, order.slot))
    text = _stack(kid, order.slot)
    assert text.splitlines()[0].endswith("in async_sleep")
    assert _stack(kid, order.slot + 1) == ""


def _stack(kid: Kid, slot: int) -> str:
    kid.say(messages.Stack(1, slot))
    return kid.hear(messages.Stacked, seconds=5).text


def test_leave_waits_for_what_runs(kid: Kid) -> None:
    order = kid.begin("a.block", 0.2)
    kid.say(messages.Leave())
    assert kid.outcomes(1)[order.slot].kind is Returned
    assert kid.died().exit_code == 0


@pytest.mark.parametrize("how", ["coroutine", "callback", "interrupt", "stop"])
def test_nobody_ends_the_loop_for_its_neighbours(several: Nursery, how: str) -> None:
    kid = several.fork("async", 10)
    neighbours = [job("a.waits", 0.2) for _ in range(3)]
    kid.say(messages.Run(neighbours))
    kid.until_begun(*neighbours)
    kid.say(messages.Run([job("a.starts-what-exits", how)]))
    assert {o.result for o in kid.outcomes(4).values()} == {f'"{how}"', '"waited"'}
    kid.say(messages.Leave())
    assert kid.died().exit_code == messages.EXIT_LEFT


def test_who_cancels_every_task_interrupts_its_neighbours_at_no_cost(several: Nursery) -> None:
    kid = several.fork("async", 10)
    neighbours = [job("a.waits", 60.0), job("a.sleep")]
    kid.say(messages.Run(neighbours))
    kid.until_begun(*neighbours)
    kid.say(messages.Run([job("a.cancels-everything")]))
    outcomes = kid.outcomes(3)
    assert {outcomes[order.slot].kind for order in neighbours} == {Interrupted}
    assert kid.do("a.add", 1, 2).result == "3"


def test_who_keeps_the_loop_to_itself_is_named(several: Nursery) -> None:
    kid = several.fork("async", 10)
    neighbour = kid.begin("a.sleep")
    kid.until(lambda: kid.page.loop()[0] > 0)
    blocker = kid.begin("a.block", 0.6)
    kid.until(lambda: kid.page.loop()[1] == blocker.slot)
    assert kid.outcomes(1)[blocker.slot].result == '"done"'
    kid.until(lambda: kid.page.loop()[1] == 0)
    kid.say(messages.Cancel(neighbour.slot, "cancel"))
    kid.outcomes(1)
    kid.until(lambda: kid.page.loop()[0] == 0)
