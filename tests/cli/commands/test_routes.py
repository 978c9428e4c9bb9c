"""`routes`: rules for queues, by the names of tasks."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Operator, join
from tests.support.stores import Lab


def test_no_routes(operator: Operator) -> None:
    said = operator("routes", "list")
    assert said.lines == ["PATTERN  QUEUES  SET  BY"]
    assert said.err.startswith("there is no route: every task goes to its own queue (")
    assert operator("routes", "list", "--json").json == {"routes": []}


def test_setting_listing_and_deleting(operator: Operator, lab: Lab) -> None:
    join(lab, "worker")
    said = operator("routes", "set", "resize", "images=3", "images-eu=1")
    assert said.lines == ["resize  goes to images=3 (75%), images-eu=1 (25%)"]
    assert "no worker serves queue 'images' now: start one (-q images)" in said.err
    found = operator("routes", "set", "mail.*", "mail", "--json").json
    assert found == {"pattern": "mail.*", "queues": {"mail": 1}, "unserved": ["mail"]}
    first, second = operator("routes", "list").rows
    assert first[:2] == ["mail.*", "mail"]
    assert second[:2] == ["resize", "images=3"]
    listed = operator("routes", "list", "--json").json["routes"]
    assert [route["queues"] for route in listed] == [{"mail": 1}, {"images": 3, "images-eu": 1}]
    assert operator("routes", "delete", "mail.*").lines == ["mail.*  deleted"]
    said = operator("routes", "delete", "mail.*", "resize", "--json", code=1)
    assert said.json["routes"] == [
        {"pattern": "mail.*", "deleted": False},
        {"pattern": "resize", "deleted": True},
    ]


@pytest.mark.parametrize(
    "target",
    [
        "images=", "images=0", "images=-1", "images=1.5", "images=3x", "images=٣", "images= 3",
        "images=3=4", "=3", "a b", "images=99999999999", "", "images:3=", "a=1000001",
    ],
)  # fmt: skip
def test_what_looks_like_a_weight_and_is_none_is_refused(operator: Operator, target: str) -> None:
    said = operator("routes", "set", "resize", target, code=2)
    assert "weight" in said.err or "queue" in said.err
    assert operator("routes", "list", "--json").json == {"routes": []}


def test_a_queue_twice_or_a_name_that_cannot_be(operator: Operator) -> None:
    assert "twice" in operator("routes", "set", "a", "q=1", "q=2", code=2).err
    assert "pattern of task names" in operator("routes", "set", "a b", "q", code=2).err
    operator("routes", "set", "a", code=2)
