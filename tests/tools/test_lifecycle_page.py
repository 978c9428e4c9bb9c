from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.core.error_code import ErrorCode
from holdfast.core.lifecycle import TRANSITIONS, Verb, edges
from holdfast.core.status import TaskStatus
from tools import gen_docs
from tools.lifecycle_page import as_markdown, as_mermaid


def test_the_diagram_has_every_edge_and_no_other() -> None:
    drawn = set()
    head, *lines = as_mermaid().splitlines()
    assert head == "stateDiagram-v2"
    for line in lines:
        arrow, verbs = line.split(" : ")
        source, target = arrow.split(" --> ")
        drawn |= {(source.strip(), target.strip(), verb) for verb in verbs.split(", ")}
    declared = {(source or "[*]", target or "[*]", verb) for source, target, verb in edges()}
    assert drawn == declared


def test_a_diagram_of_some_verbs() -> None:
    assert as_mermaid([Verb.CLAIM, Verb.START]) == (
        "stateDiagram-v2\n    PENDING --> CLAIMED : claim\n    CLAIMED --> RUNNING : start\n"
    )


def test_the_page_names_everything() -> None:
    page = as_markdown()
    for name in (*TaskStatus, *ErrorCode):
        assert f"{name}" in page
    for verb in TRANSITIONS:
        assert f"| `{verb}` |" in page


def test_tables_have_as_many_cells_as_heads() -> None:
    width = 0
    for line in as_markdown().splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        width = width or line.count("|")
        assert line.count("|") == width, line


def test_the_stored_page_is_current() -> None:
    assert gen_docs.stale() == []


def test_a_stale_page_is_noticed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gen_docs.stale(tmp_path) == list(gen_docs.GENERATED)
    assert gen_docs.write(tmp_path) == list(gen_docs.GENERATED)
    assert gen_docs.stale(tmp_path) == []
    monkeypatch.setattr(gen_docs, "GENERATED", {"reference/lifecycle.md": lambda: "other"})
    assert gen_docs.stale(tmp_path) == ["reference/lifecycle.md"]
    assert gen_docs.main(["--check"]) == 1
    assert "run `make docs`" in capsys.readouterr().err
