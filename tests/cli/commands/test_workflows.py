"""`workflows`: where they stand, and what is done to them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from holdfast.client import workflow_verbs
from holdfast.core.workflows.plan import StepEdge
from tests.cli.conftest import Operator, run
from tests.support.stores import Lab
from tests.support.workflows import begin, complete, fail, plan_of, step, whole


def text(id: bytes) -> str:
    return str(UUID(bytes=id))


def test_none(operator: Operator) -> None:
    said = operator("workflows", "list")
    assert said.lines == ["ID  STATUS  NAME  STEPS  SUBMITTED  ENDED  DETAIL"]
    assert said.err.startswith("no workflow fits (")
    assert operator("workflows", "list", "--json").json == {"workflows": [], "next": None}
    said = operator("workflows", "show", str(UUID(int=1)), code=1)
    assert "no workflow has the id" in said.err
    assert "which workflows? Give ids" in operator("workflows", "cancel", code=2).err


def test_a_workflow_is_listed_shown_and_drawn(operator: Operator, lab: Lab) -> None:
    plan = plan_of(
        step(name="raw"),
        *(step(0, name=f"part[{n}]") for n in range(8)),
        step(*range(1, 9), name="total"),
        step(StepEdge(0, "failure"), name="alert", handler=True),
        tags='["night"]',
    )
    ids = begin(lab, plan)
    complete(lab, ids[0])
    fail(lab, ids[1])
    (row,) = operator("workflows", "list", "--name", "nightly", "--since", "1h").rows
    assert row[:4] == [text(plan.id), "RUNNING", "nightly", "11"]
    assert operator("workflows", "list", "--status", "failed,cancelled").rows == []
    said = operator("workflows", "show", text(plan.id)[:13])
    assert "[##########....................] 4 of 11 ended, 7 PENDING" in said.out
    assert "7 of its 11 steps have not ended (7 PENDING)" in said.out
    assert "✓ raw  COMPLETED" in said.out
    assert "part × 6  6 PENDING" in said.out
    assert "✗ part[0]  FAILED" in said.out
    assert "after part[0], part[1], part[2] and 4 more" in said.out
    assert "– alert  CANCELLED" in said.out
    found = operator("workflows", "show", text(plan.id), "--json").json
    assert (found["workflow"]["status"], len(found["steps"])) == ("RUNNING", 11)
    assert found["steps"][1]["waits_for"] == {text(ids[0]): "success"}
    chart = operator("workflows", "graph", text(plan.id)).out
    assert chart.startswith("flowchart TD\n")
    assert 's0["raw' in chart
    assert operator("workflows", "graph", text(plan.id), "--json").json["mermaid"] == chart


def test_verbs_say_what_they_did(operator: Operator, lab: Lab) -> None:
    plan, other = plan_of(step(), step(0)), plan_of(step(), name="other")
    first, _ = begin(lab, plan)
    begin(lab, other)
    id = text(plan.id)
    assert operator("workflows", "pause", id, "--by", "ada").lines == [
        f"{id}  paused; it is PAUSED"
    ]
    assert whole(lab, plan).paused_by == "ada"
    assert "it was paused by ada" in operator("workflows", "show", id).out
    said = operator("workflows", "delete", id, code=1)
    assert said.lines == [f"{id}  cannot delete workflow {id}: it is PAUSED"]
    assert operator("workflows", "resume", "--all", "--yes").lines == [
        f"{id}  resumed; it is RUNNING"
    ]
    fail(lab, first)
    (answer,) = operator("workflows", "resubmit", id, "--json").json["workflows"]
    assert answer["done"]
    assert answer["status"] == "RUNNING"
    said = operator("workflows", "cancel", "--name", "nightly", answer="n\n", code=1)
    assert "cancel 1 workflow(s)?" in said.err
    assert "nothing was done" in said.err
    said = operator("workflows", "cancel", "--name", "nightly", answer="", code=2)
    assert "give --yes to go ahead" in said.err
    said = operator("workflows", "cancel", "--name", "\udcff", "-y", code=2)
    assert "is not UTF-8" in said.err
    assert operator("workflows", "cancel", "--name", "nightly", "-y").lines == [f"{id}  cancelled"]
    assert operator("workflows", "delete", id).lines == [f"{id}  deleted"]
    assert operator("workflows", "list").rows[0][2] == "other"
    assert (
        "give ids, or filters, not both" in operator("workflows", "resume", id, "--all", code=2).err
    )


def test_who_is_interrupted_is_told_how_far_it_came(
    operator: Operator, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = [plan_of(step()) for _ in range(3)]
    for plan in plans:
        begin(lab, plan)
    pause = workflow_verbs.pause
    paused: list[bytes] = []

    def interrupted(id: bytes, **options: Any) -> Any:
        if len(paused) == 2:
            raise KeyboardInterrupt
        paused.append(id)
        return pause(id, **options)

    monkeypatch.setattr(workflow_verbs, "pause", interrupted)
    said = operator("workflows", "pause", "--all", "--yes", code=130)
    assert len(said.lines) == 2
    assert "interrupted: 2 of 3 done, perhaps the one after them, too; the same" in said.err
    monkeypatch.setattr(workflow_verbs, "pause", pause)
    assert len(operator("workflows", "pause", "--all", "--yes").lines) == 1
    assert "3 done, 0 not" in operator("workflows", "resume", "--all", "--yes").err


APP = """
from datetime import date
from typing import Any
from holdfast import Holdfast, Workflow

app = Holdfast("sqlite:///reports.db")

@app.task("note")
def note(day: date) -> str:
    return day.isoformat()

@app.workflow("nightly")
def nightly(wf: Workflow, day: date) -> Any:
    return wf.step(note, day).result

@app.workflow("broken")
def broken(wf: Workflow) -> Any:
    return len(wf.step(note, date.today()).result)
"""


def test_one_is_started_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "reports_for_cli.py").write_text(APP)
    monkeypatch.setenv("HOLDFAST_APP", "reports_for_cli:app")
    try:
        id = str(uuid4())
        asked = ["workflows", "send", "nightly", "--args", '["2027-01-31"]', "--id", id]
        assert run(*asked, "--tag", "x").lines == [id]
        again = run(*asked, "--tag", "x", "--json")
        assert again.json == {"id": id, "created": False}
        assert "nothing was started" in run(*asked, "--tag", "x").err
        (row,) = run("workflows", "list", "--tag", "x").rows
        assert row[:3] == [id, "RUNNING", "nightly"]
        wrong = run("workflows", "send", "nightly", "--args", '["soon"]')
        assert (wrong.code, "day" in wrong.err) == (2, True)
        none = run("workflows", "send", "note")
        assert (none.code, "known workflows: broken, nightly" in none.err) == (1, True)
        broken = run("workflows", "send", "broken")
        assert (broken.code, "the code that builds workflow 'broken' raised" in broken.err) == (
            1,
            True,
        )
        assert "    return len(wf.step(note, date.today()).result)" in broken.err
        assert "send_plain" not in broken.err
        asked = ["schedules", "add", "s", "@daily", "nightly", "--args", '["2027-01-31"]']
        assert run(*asked, "--tag", "y").out.startswith("s  at 00:00 every day")
        shown = run("schedules", "show", "s", "--json").json
        assert (shown["task"], shown["is_workflow"]) == ("nightly", True)
        sent = run("schedules", "run", "s").lines[0]
        sys.modules["reports_for_cli"].app.worker().run_until_idle()
        (row,) = run("workflows", "list", "--tag", "y").rows
        assert row[:3] == [sent, "COMPLETED", "nightly"]
        wrong = run(*asked, "--queue", "q")
        assert (wrong.code, "'queue' is not an option of a workflow" in wrong.err) == (2, True)
        wrong = run(*asked[:-1], '["soon"]')
        assert (wrong.code, "day" in wrong.err) == (2, True)
    finally:
        sys.modules.pop("reports_for_cli", None)


def test_starting_one_needs_its_code(operator: Operator) -> None:
    assert "a workflow is built by its code" in operator("workflows", "send", "x", code=2).err
