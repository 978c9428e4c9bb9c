"""What code in a task may ask of the store: what the client needs, and nothing of the worker's."""

from __future__ import annotations

import pytest

from holdfast.core.identity import new_id
from holdfast.runtime.supervisor.relay import permissions
from holdfast.runtime.supervisor.relay.permissions import NotAllowed
from holdfast.store.op import Column, Statement, Table, Uuids
from holdfast.store.verbs import submit
from holdfast.store.verbs.submit import COLUMNS
from tests.support.verbs import submission


def holds(key: object, token: object) -> bool:
    return (key, token) == (1, b"mine")


def test_nothing_that_is_the_workers_own_is_on_the_list() -> None:
    theirs = {
        "claim",
        "start",
        "complete",
        "end",
        "release",
        "renew",
        "clean_leases",
        "delete_lease",
    }
    theirs |= {"write_notes", "append_logs", "write_attempts", "register_worker", "write_meta"}
    assert not theirs & permissions.ALLOWED


def test_a_checkpoint_is_for_the_run_itself() -> None:
    mine = {"key": 1, "token": b"mine", "name": "x"}
    permissions.check(Statement("read_checkpoint", mine), holds)
    with pytest.raises(NotAllowed, match="does not run in the asking process"):
        permissions.check(Statement("read_checkpoint", {**mine, "key": 2}), holds)


@pytest.mark.parametrize(
    "table",
    [
        None,
        Table({"id": Column.UUID}, [(new_id(),)]),
        Table(COLUMNS, [(new_id(),)]),
        Table(COLUMNS, [("not an id",) * len(COLUMNS)]),
    ],
)
def test_a_send_has_the_shape_of_a_send(table: Table | None) -> None:
    (statement,) = [next(iter(submit.submit([submission()])))]
    assert isinstance(statement, Statement)
    permissions.check(statement, holds)
    with pytest.raises(NotAllowed, match="'submit'"):
        permissions.check(Statement("submit", table=table), holds)


def test_one_of_several_is_enough() -> None:
    both = Statement("statuses", {"ids": Uuids([])}), Statement("claim")
    with pytest.raises(NotAllowed, match="'claim'"):
        permissions.check(both, holds)
