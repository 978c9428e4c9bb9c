"""The pool, with a stand-in for the template: children that do not come up."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.runtime.supervisor.children.pool import ChildPool
from holdfast.runtime.supervisor.state.child_handle import ChildHandle, ChildState
from tests.support.hands import Hands


class Template:
    """What the pool asks of a template; it makes no child."""

    def __init__(self) -> None:
        self.process = SimpleNamespace(kill=self.kill)
        self.lifeline = None
        self.is_killed = False

    def fork(self, message: object, descriptors: list[int]) -> None: ...

    def kill(self) -> None:
        self.is_killed = True


class Nursery:
    """A pool of one process, which may be given time or none to come up."""

    def __init__(self, undo: ExitStack, patience: float) -> None:
        self.hands = Hands(undo, "thread")
        self.template = Template()
        template: Any = self.template
        self.pool = ChildPool(
            template,
            self.hands.ledger,
            {"process": (1, 1)},
            joined=lambda child: None,
            stuck=lambda child: None,
            start_patience=patience,
        )
        self.pool.fill()
        (self.child,) = [c for c in self.hands.ledger.roster.all() if c.kind == "process"]
        undo.callback(self.child.close)

    def came_up(self, child: ChildHandle, pid: int) -> None:
        self.hands.ledger.roster.forked(child, pid)
        self.hands.ledger.roster.greeted(child)


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    with ExitStack() as undo:
        yield undo


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


def test_a_child_that_does_not_come_up_is_killed(
    undo: ExitStack, process: subprocess.Popen[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    nursery = Nursery(undo, 0.0)
    nursery.hands.ledger.roster.forked(nursery.child, process.pid)
    nursery.pool.end_late_starts()
    assert process.wait(10) == -signal.SIGKILL
    assert nursery.child.killed
    assert "did not come up" in caplog.text
    assert not nursery.template.is_killed


def test_a_template_that_makes_no_child_is_killed(undo: ExitStack) -> None:
    nursery = Nursery(undo, 0.0)
    nursery.pool.end_late_starts()
    assert nursery.template.is_killed


def test_children_have_time_to_come_up(undo: ExitStack, process: subprocess.Popen[bytes]) -> None:
    nursery = Nursery(undo, 60.0)
    nursery.pool.end_late_starts()
    assert not nursery.template.is_killed
    nursery.came_up(nursery.child, process.pid)
    assert nursery.child.state is ChildState.READY


def test_one_that_has_come_up_may_take_its_time(
    undo: ExitStack, process: subprocess.Popen[bytes]
) -> None:
    nursery = Nursery(undo, 0.0)
    nursery.came_up(nursery.child, process.pid)
    nursery.pool.end_late_starts()
    assert process.poll() is None
