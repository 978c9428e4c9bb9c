"""`doctor`: findings with their remedies, JSON, exit codes by severity."""

from __future__ import annotations

import pytest

from holdfast.store.verbs import workers
from tests.cli.conftest import Operator, join, run
from tests.support.stores import Lab


def test_findings_have_a_meaning_and_a_remedy(operator: Operator, lab: Lab) -> None:
    lab.send(queue_name="q")
    said = operator("doctor", code=20)
    at = said.lines.index("critical  no worker is running; 1 task(s) wait")
    assert said.lines[at + 1].startswith("meaning   ")
    assert said.lines[at + 2] == "remedy    start one: holdfast worker MODULE:APP"
    assert said.err.startswith("examined: clock, ")
    # Nothing is changed by looking.
    assert operator("tasks", "list").rows[0][1] == "PENDING"


def test_json(operator: Operator, lab: Lab) -> None:
    lab.send(queue_name="q")
    found = operator("doctor", "--json", code=20).json
    assert found["worst"] == "critical"
    assert found["engine"].startswith(("SQLite 3.", "PostgreSQL "))
    (finding,) = [each for each in found["findings"] if each["code"] == "no-worker"]
    assert finding["detail"] == {"waiting": 1}
    assert finding.keys() == {"code", "severity", "what", "meaning", "remedy", "detail"}
    ranks = [
        ["critical", "warning", "notice"].index(each["severity"]) for each in found["findings"]
    ]
    assert ranks == sorted(ranks)


def test_patience(operator: Operator, lab: Lab) -> None:
    join(lab, "w-1")
    lab.send(queue_name="a")
    lab.clock.advance(20)
    lab.run(workers.stop("nobody"))
    join(lab, "w-1")
    assert "queue-behind" not in operator("doctor", "--json", code=20).out
    assert "queue-behind" in operator("doctor", "--json", "--patience", "10s", code=20).out
    assert "is not a length of time" in operator("doctor", "--patience", "soon", code=2).err


def test_what_was_stored_cannot_steer_the_terminal(operator: Operator, lab: Lab) -> None:
    join(lab, "w-1")
    lab.send(queue_name="a")
    bad = "evil\x1b]0;title\x07\x1b[2J"
    lab.sql("UPDATE holdfast_workers SET hostname = :bad, seen_at = started_at", bad=bad)
    lab.clock.advance(60)
    join(lab, "w-2")
    said = operator("doctor", code=20)
    assert "\x1b" not in said.out
    assert "\x07" not in said.out
    assert "evil\\x1b]0;title" in said.out


def test_no_database(tmp_path: object) -> None:
    said = run("doctor", "--url", f"sqlite:///{tmp_path}/none.db")
    assert said.code == 3
    assert "there is no database" in said.err


@pytest.mark.parametrize("code", [0, 10, 20])
def test_the_exit_code_goes_by_the_gravest(code: int) -> None:
    from holdfast.cli.commands.doctor import CODES
    from holdfast.client.doctor.finding import Severity

    assert CODES[{0: Severity.NOTICE, 10: Severity.WARNING, 20: Severity.CRITICAL}[code]] == code
    assert CODES[None] == 0
