"""Questions to children: each answered by the one that it was put to, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from holdfast.core.decide import Change
from holdfast.core.lifecycle import Verb
from holdfast.core.options.policy import Policy
from holdfast.core.status import TaskStatus
from holdfast.runtime.supervisor.children.questions import RemoteHooks, StackQueries
from holdfast.runtime.supervisor.state.child_handle import Assignment, ChildState
from holdfast.runtime.wire.messages import KnownTask, Stack, Stacked, Tell, Told
from tests.runtime.supervisor.state.test_ledger import claimed
from tests.support.deadline import until
from tests.support.hands import Hands
from tests.support.verbs import QUEUE, TASK, new_token


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


@pytest.fixture
def stranger() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


def assignment(hands: Hands) -> Assignment:
    return Assignment(1, claimed(1, new_token()), Policy(), hands.child, 10)


def test_a_stack_is_asked_for_and_waited_for(hands: Hands, stranger: Hands) -> None:
    queries = StackQueries()
    found: list[str | None] = []
    asking = threading.Thread(target=lambda: found.append(queries.ask(assignment(hands), 20)))
    asking.start()
    (question,) = until(lambda: hands.heard(Stack))
    queries.answered(stranger.child, Stacked(question.ticket, "forged"))
    queries.answered(hands.child, Stacked(question.ticket + 1, "another"))
    queries.answered(hands.child, Stacked(question.ticket, "here\x00"))
    asking.join(20)
    assert found == ["here\ufffd"]
    queries.answered(hands.child, Stacked(question.ticket, "too late"))


def test_a_child_that_does_not_answer_is_not_waited_for_for_ever(hands: Hands) -> None:
    assert StackQueries().ask(assignment(hands), 0.0) is None


def test_hooks_of_the_worker_that_exist_are_told_and_waited_for(hands: Hands) -> None:
    hooks = RemoteHooks(hands.ledger, ["worker_stopping"], hands.known)
    hooks.worker("worker_started", 20)
    assert hands.heard(Tell) == []
    telling = threading.Thread(target=hooks.worker, args=("worker_stopping", 20))
    telling.start()
    (told,) = until(lambda: hands.heard(Tell))
    assert told.hooks == ["worker_stopping"]
    hooks.told(hands.child, Told(told.ticket))
    telling.join(20)
    assert not telling.is_alive()


def test_without_a_ready_child_it_is_said_that_no_hook_runs(
    hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    hands.child.state = ChildState.STARTING
    RemoteHooks(hands.ledger, ["worker_started"], hands.known).worker("worker_started", 20)
    assert "no child could be told to run the hook(s) worker_started" in caplog.text


@pytest.mark.parametrize(
    ("verb", "status", "wanted"),
    [
        (Verb.RECOVER, TaskStatus.PENDING, ["after_finish"]),
        (Verb.RECOVER, TaskStatus.FAILED, ["on_failure", "after_finish"]),
        (Verb.RETRY, TaskStatus.CANCELLED, ["on_cancel", "after_finish"]),
        (Verb.INTERRUPT, TaskStatus.PENDING, []),
    ],
)
def test_hooks_of_a_task_whose_child_is_dead(
    hands: Hands, verb: Verb, status: TaskStatus, wanted: list[str]
) -> None:
    names = ["on_failure", "on_cancel", "after_finish"]
    known = [KnownTask(TASK, 1, QUEUE, "thread", None, None, names)]
    hooks = RemoteHooks(hands.ledger, [], known)
    hooks.orphaned(assignment(hands), Change(verb, status), status)
    assert [told.hooks for told in hands.heard(Tell)] == ([wanted] if wanted else [])
