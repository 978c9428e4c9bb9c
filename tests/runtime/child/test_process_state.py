"""What one task leaves behind in its process, and the next one does not find."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.core.outcome import Returned
from holdfast.runtime.wire import messages
from holdfast.runtime.wire.messages import EXIT_LEFT
from tests.support.nursery import ROOT, Kid, Nursery, job

UNTIDY = "tests.runtime.apps.untidy:app"


@pytest.fixture(scope="module")
def untidy() -> Iterator[Nursery]:
    with Nursery(UNTIDY) as nursery:
        nursery.manifest()
        yield nursery


def found(kid: Kid, prefix: str = "") -> dict[str, object]:
    outcome = kid.do(f"{prefix}state")
    assert outcome.kind is Returned, outcome
    value: dict[str, object] = json.loads(outcome.result)
    return value


@pytest.mark.parametrize("prefix", ["", "a.", "t."])
def test_the_next_task_finds_what_the_first_one_found(untidy: Nursery, prefix: str) -> None:
    kid = untidy.fork({"": "process", "a.": "async", "t.": "thread"}[prefix], 1)  # type: ignore[arg-type]
    first = found(kid, prefix)
    assert kid.do(f"{prefix}mess").kind is Returned
    assert found(kid, prefix) == first


def test_also_when_they_come_in_one_batch(untidy: Nursery) -> None:
    kid = untidy.fork()
    first = found(kid)
    orders = [job("mess", 1), job("state"), job("mess", 2), job("state")]
    outcomes = kid.do_all(orders)
    seldom = {"blocked", "handlers", "timers"}
    for outcome in (outcomes[1], outcomes[3]):
        assert outcome.kind is Returned, outcome
        later = json.loads(outcome.result)
        assert {k: v for k, v in later.items() if k not in seldom} == {
            k: v for k, v in first.items() if k not in seldom
        }
        assert later["timers"][0] == [0.0, 0.0]
    assert [kid.output(order) for order in (orders[1], orders[3])] == [b"heard\n"] * 2


def test_a_timer_that_goes_off_meanwhile_harms_nobody(untidy: Nursery) -> None:
    kid = untidy.fork()
    for _ in range(20):
        assert kid.do("alarms-itself").kind is Returned
    assert found(kid)["timers"] == [[0.0, 0.0]] * 3


def test_what_a_library_sets_when_it_is_imported_stays(untidy: Nursery) -> None:
    kid = untidy.fork()
    assert kid.do("imports", "smtplib").kind is Returned
    assert found(kid)["variables"] == {"UNTIDY_BASE": "base", "UNTIDY_LIBRARY": "set"}


def test_a_process_that_cannot_be_put_in_order_is_replaced(tmp_path: Path) -> None:
    with Nursery(UNTIDY, directory=tmp_path, PYTHONPATH=str(ROOT)) as nursery:
        nursery.manifest()
        kid = nursery.fork()
        orders = [job("removes-its-directory"), job("pid")]
        kid.say(messages.Run(orders))
        assert kid.outcomes(1)[orders[0].slot].kind is Returned
        assert kid.hear(messages.Withdrawn).slots == [orders[1].slot]
        assert kid.died().exit_code == EXIT_LEFT
