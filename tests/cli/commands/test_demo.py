"""`holdfast demo`: it shows every ending, leaves nothing, and what it suggests can be tried."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from holdfast.cli.main import COMMANDS, main


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What it prints; it needs no terminal."""
    folder = tmp_path_factory.mktemp("demo")
    answer = subprocess.run(
        [sys.executable, "-m", "holdfast", "demo"],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert list(Path(folder).iterdir()) == []
    return answer.stdout


def test_every_task_ends_as_it_should(said: str) -> None:
    table = said.partition("Every task ended in one known state:")[2]
    rows = re.findall(r"^(\w+) {2,}(\d.*?) {2,}(\d+)", table, re.M)
    # A task may have been started for a child that another one has killed before it came to it, and
    # is started again then. The schedule goes on for as long as the demonstration takes.
    ((_, ticks, starts),) = [row for row in rows if row[0] == "tick"]
    assert int(starts) - int(ticks.removesuffix(" completed")) in (0, 1)
    found = {name: (ended, int(starts)) for name, ended, starts in rows if name != "tick"}
    expected = {
        "resize": ("200 completed", 200),
        "fetch": ("100 completed", 100),
        "crawl": ("36 completed", 36),
        "charge": ("10 completed", 30),
        "poll": ("1 completed", 2),
        "report": ("1 completed", 1),
        "parse": ("1 completed, 1 failed", 2),
        "order": ("1 failed", 1),
        "delete_account": ("1 failed", 1),
        "hang": ("1 failed", 1),
        "segfault": ("1 failed", 2),
        "train": ("1 stalled", 1),
        "render": ("2 cancelled", 1),
        "album": ("4 completed", 4),
        "late": ("1 expired", 0),
    }
    assert {name: ended for name, (ended, _) in found.items()} == {
        name: ended for name, (ended, _) in expected.items()
    }
    again = {name: found[name][1] - starts for name, (_, starts) in expected.items()}
    assert set(again.values()) <= {0, 1}, again


def test_what_it_suggests_is_what_the_help_names(said: str) -> None:
    lines = [line.split() for line in said.partition("What to try next")[2].splitlines()]
    suggested = [words[1:] for words in lines if words[:1] == ["holdfast"]]
    assert len(suggested) >= 5
    for name, *rest in suggested:
        assert name in COMMANDS
        with click.Context(main) as context:
            command = main.get_command(context, name)
            if isinstance(command, click.Group):
                assert rest[0] in command.commands
