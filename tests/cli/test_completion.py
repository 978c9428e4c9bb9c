"""What the shell offers: by the protocol that click's scripts speak."""

from __future__ import annotations

import pytest
from click.shell_completion import BashComplete

from holdfast.cli.main import main
from tests.cli.conftest import Operator, join
from tests.support.stores import Lab


def offered(operator: Operator, *typed: str, incomplete: str = "") -> list[str]:
    found = BashComplete(main, {}, "holdfast", "_HOLDFAST_COMPLETE").get_completions(
        [typed[0], *operator.place, *typed[1:]] if len(typed) == 1 else _placed(operator, typed),
        incomplete,
    )
    return [item.value for item in found]


def _placed(operator: Operator, typed: tuple[str, ...]) -> list[str]:
    # The options that say where the database is stand behind the command.
    words = 1 if typed[0] in ("stats", "doctor", "top") else 2
    return [*typed[:words], *operator.place, *typed[words:]]


def test_commands_and_statuses(operator: Operator) -> None:
    assert offered(operator, "tasks", "list", "--status", incomplete="fa") == ["FAILED"]
    assert offered(operator, "tasks", "list", "--status", incomplete="FAILED,ST") == [
        "FAILED,STALLED"
    ]


def test_names_that_are_in_the_database(operator: Operator, lab: Lab) -> None:
    join(lab, "w-1")
    id = lab.send(queue_name="mail", task_name="shop.pay")
    assert offered(operator, "queues", "pause") == ["a", "b", "mail"]
    assert offered(operator, "tasks", "list", "--queue", incomplete="m") == ["mail"]
    assert offered(operator, "tasks", "send", incomplete="shop") == ["shop.pay"]
    assert offered(operator, "stats", "--name") == ["shop.pay", "t"]
    assert offered(operator, "workers", "drain") == ["w-1"]
    (short,) = offered(operator, "tasks", "show")
    assert id.hex().endswith(short.rpartition("-")[2])


@pytest.mark.parametrize("place", [["--url", "sqlite:////nowhere/at/all.db"], ["--app", "no:app"]])
def test_without_a_database_nothing_is_offered_or_said(
    place: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    complete = BashComplete(main, {}, "holdfast", "_HOLDFAST_COMPLETE")
    assert complete.get_completions(["queues", "pause", *place], "") == []
    assert capfd.readouterr() == ("", "")
