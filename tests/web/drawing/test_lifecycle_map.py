"""The map of the lifecycle says what the table of the lifecycle says."""

from __future__ import annotations

import pytest

from holdfast.core.lifecycle import Verb, targets, verbs_from
from holdfast.core.status import TaskStatus
from holdfast.web.drawing.lifecycle_map import COLUMNS, Reached, lifecycle_map

S = TaskStatus


def test_every_state_has_one_place() -> None:
    placed = [status for column in COLUMNS for status in column]
    assert (len(placed), set(placed)) == (len(TaskStatus), set(TaskStatus))


@pytest.mark.parametrize("status", TaskStatus)
def test_what_is_possible_next_is_what_verbs_lead_to(status: TaskStatus) -> None:
    places = [place for column in lifecycle_map(status, {}) for place in column]
    (here,) = [place for place in places if place.now]
    assert here.status is status
    possible = {place.status for place in places if place.next}
    reachable = {target for verb in verbs_from(status) for target in targets(verb, status)}
    assert possible <= reachable - {status}
    left_out = reachable - {status} - possible
    # Only what the button of this page does not give.
    assert left_out <= ({S.SCHEDULED} if status.is_terminal else set())
    assert all(place.text for place in places if place.next)


def test_a_task_that_is_no_step_never_waits() -> None:
    places = lifecycle_map(S.RUNNING, {}, without=(Verb.HAND_OVER,))
    assert not places[0][0].next
    places = lifecycle_map(S.FAILED, {}, without=(Verb.UNBLOCK,))
    assert not places[0][0].next
    assert places[1][0].next


def test_what_was_reached_is_counted() -> None:
    columns = lifecycle_map(S.FAILED, {S.PENDING: Reached(3), S.RUNNING: Reached(3, "9 s in all")})
    places = {place.status: place for column in columns for place in column}
    assert (places[S.PENDING].times, places[S.RUNNING].text) == (3, "9 s in all")
    assert places[S.CLAIMED].times == 0
