"""The template keeper, step by step, with stand-ins for the processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.runtime.supervisor.children.template_keeper import TemplateKeeper
from tests.support.hands import Hands


class Template:
    """What the keeper asks of a template."""

    def __init__(self) -> None:
        self.process = SimpleNamespace(pid=4711)
        self.started: list[Template] = []
        self.is_ended = False

    def again(self) -> Template:
        self.started.append(Template())
        return self.started[-1]

    def end(self, patience: float = 5.0) -> bool:
        self.is_ended = True
        return True

    def reap(self) -> str:
        return "killed by SIGKILL"


class Pool:
    """What the keeper asks of the pool."""

    def __init__(self, template: Template) -> None:
        self.template: Template | None = template
        self.closing = False

    def use(self, template: Template | None) -> bool:
        if not self.closing:
            self.template = template
        return not self.closing


@pytest.fixture
def hands() -> Iterator[Hands]:
    with ExitStack() as undo:
        yield Hands(undo)


def test_a_template_that_is_ready_while_the_worker_stops_is_ended(hands: Hands) -> None:
    first = Template()
    pool: Any = Pool(first)
    loop: Any = SimpleNamespace(listen_to=lambda template: None, orphaned=lambda: None)
    pattern: Any = first
    keeper = TemplateKeeper(
        pattern, [], pool, hands.ledger, loop, failed=lambda duty, error: None, stir=lambda: None
    )
    keeper.ended(pattern)
    keeper.step()
    second: Any = first.started[0]

    pool.closing = True
    manifest: Any = SimpleNamespace(tasks=[])
    keeper.heard(second, manifest)
    keeper.close()

    assert pool.template is None
    assert second.is_ended
