"""How much a page asks of the store: its statements and the rows that they answer with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from holdfast.client.access import Access
from holdfast.store.op import Op, Statement


@dataclass
class Asked:
    """What was asked in a block."""

    names: list[str] = field(default_factory=list)
    rows: int = 0
    bounds: set[float] = field(default_factory=set)
    """How long a statement may take, of all stores that were asked."""


@contextmanager
def asked() -> Iterator[Asked]:
    """Everything that apps of this process ask their stores, in any thread."""
    seen = Asked()
    attempt = Access.attempt

    def counting(self: Access, make: Callable[[], Op[Any]]) -> Any:
        seen.bounds.add(self.config.store.statement_timeout)
        return attempt(self, lambda: _counted(make(), seen))

    with mock.patch.object(Access, "attempt", counting):
        yield seen


def _counted(op: Op[Any], seen: Asked) -> Op[Any]:
    def steps() -> Any:
        inner, answer = iter(op), None
        while True:
            try:
                step = inner.send(answer)
            except StopIteration as end:
                return end.value
            answer = yield step
            several = (step,) if isinstance(step, Statement) else step
            answers = (answer,) if isinstance(step, Statement) else answer
            for each, found in zip(several, answers, strict=True):
                seen.names.append(each.name)
                seen.rows += len(found or ())

    return Op(steps(), op.mode, op.name, waits=op.waits)
