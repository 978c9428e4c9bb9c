"""Questions to a worker, by way of the store: where is this task's code right now?

Owns the exchange: an operator leaves a question, the worker that runs the task finds it
and leaves the answer, the operator takes it. A question without an answer is withdrawn by
the operator who asked it.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.op import Statement, Steps, Texts, alone, reads

_PREFIX = "stack:"


def _name(id: bytes) -> str:
    return _PREFIX + id.hex()


@alone
def ask_stack(id: bytes) -> Steps[None]:
    """Ask for the stack of a running task."""
    yield Statement("ask_stack_request", {"name": _name(id)})


@reads
def stacks_asked(ids: Sequence[bytes]) -> Steps[list[bytes]]:
    """Which of these tasks an operator asks about."""
    found = yield Statement("asked_stack_requests", {"names": Texts(map(_name, ids))})
    return [bytes.fromhex(row[0].removeprefix(_PREFIX)) for row in found]


@alone
def answer_stack(id: bytes, text: str) -> Steps[None]:
    """Leave the answer for the operator who asked."""
    yield Statement("answer_stack_request", {"name": _name(id), "value": text})


@alone
def take_stack(id: bytes, *, give_up: bool = False) -> Steps[str | None]:
    """Take the answer, if there is one; with `give_up`, withdraw the question too."""
    found = yield Statement("take_stack_request", {"name": _name(id), "give_up": give_up})
    return next((row[0] for row in found if row[0] is not None), None)
