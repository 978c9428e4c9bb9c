"""Steps that could begin again while their whole is paused or winds down: they must not.

Owns what becomes of a step that goes back (retry, snooze, interrupt, recover, release, resubmit) or
is added meanwhile: it is cancelled, or held, in the transaction in which it comes. A pause or stop
that commits at the same moment does not see it; the duty that steers workflows finds it then, and
it may have begun once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import Channel, Hint, Statement, Steps, Uuids
from holdfast.store.verbs.dependents import resolve
from holdfast.store.verbs.end_reasons import reason_of_stop
from holdfast.store.verbs.ended_counts import count_ended
from holdfast.store.verbs.step_counts import EndedStep

MOST_AT_ONCE = 1000
"""Steps that one transaction looks at; the duty finds the others."""


class Restrained(NamedTuple):
    """What must not begin."""

    cancelled: Sequence[EndedStep]
    """Their edges are not resolved yet."""
    paused: Mapping[bytes, Sequence[bytes]]
    """By the workflow that is paused; they are not held yet."""


NOTHING = Restrained((), {})


def stop(ids: Sequence[bytes]) -> Steps[Restrained]:
    """Cancel those of these steps that a whole which winds down stops; the caller counts them."""
    looked_at = Uuids(sorted(ids[:MOST_AT_ONCE]))
    found = (yield Statement("returned_steps", {"ids": looked_at})) if looked_at else ()
    stopped: defaultdict[str, list[bytes]] = defaultdict(list)
    paused: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for raw, workflow_id, stopping in found:
        if stopping is not None:
            stopped[stopping].append(rows.uuid(raw))
        elif rows.is_uuid(workflow_id):
            paused[rows.uuid(workflow_id)].append(rows.uuid(raw))
    cancelled: list[EndedStep] = []
    for stopping, group in sorted(stopped.items()):
        why = reason_of_stop(stopping)
        ended = yield Statement(
            "cancel",
            {
                "ids": Uuids(group),
                "cancel_error": why.error,
                "cancel_reason": why.reason,
                "cancel_code": why.code,
            },
            hint=Hint(Channel.DONE),
        )
        cancelled += [
            EndedStep(rows.uuid(id), TaskStatus.CANCELLED)
            for id, status, *_ in ended
            if status == TaskStatus.CANCELLED
        ]
    return Restrained(cancelled, paused)


def hold(paused: Mapping[bytes, Sequence[bytes]]) -> Steps[None]:
    """Hold what came back to workflows that are paused; the last statements of a transaction."""
    for workflow_id, ids in sorted(paused.items()):
        yield Statement("hold", {"workflow_id": workflow_id, "ids": Uuids(sorted(ids))})


def restrain(ids: Sequence[bytes]) -> Steps[set[bytes]]:
    """Cancel or hold those of these steps that must not begin; which."""
    found = yield from stop(ids)
    yield from count_ended(step.id for step in found.cancelled)
    yield from resolve(found.cancelled)
    yield from hold(found.paused)
    return {step.id for step in found.cancelled}.union(*found.paused.values())
