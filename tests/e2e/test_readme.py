"""The README, followed to the letter: its files saved, its commands typed, in an empty directory.

Blocks with a title are saved under it. Commands run in one shell, so what is exported stays. The
lines below a command are what it prints. Only three things are not done as printed: nothing is
installed (what would be is there), `holdfast worker` has a terminal of its own, and `make` needs
the repository, so there it is only looked whether the target exists.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.worker import WorkerProcess

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?P<kind>python|console)(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.S | re.M)
TITLE = re.compile(r'title="([\w.]+)"')
MARK = "--- exit"


@dataclass(frozen=True, slots=True)
class Step:
    """A file to save, or a command and what it prints."""

    file: str | None
    text: str
    printed: tuple[str, ...] = ()


def steps(document: str) -> Iterator[Step]:
    for block in BLOCK.finditer(document):
        if block["kind"] == "python":
            title = TITLE.search(block["info"])
            assert title, f"whoever follows this has to know where to put it:\n{block['text']}"
            yield Step(title[1], block["text"])
            continue
        for part in re.split(r"^\$ ", block["text"], flags=re.M)[1:]:
            command, *printed = part.splitlines()
            yield Step(None, command, tuple(printed))


class Shell:
    """A terminal in a directory."""

    def __init__(self, directory: Path) -> None:
        here = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        here["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{here['PATH']}"
        self._bash = subprocess.Popen(
            ["bash", "--norc"],
            cwd=directory,
            env=here,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, command: str) -> tuple[int, list[str]]:
        """The exit code of a command, and what it printed."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f"{command}\ncode=$?; echo; echo '{MARK}' $code\n")
        self._bash.stdin.flush()
        printed: list[str] = []
        for line in self._bash.stdout:
            if line.startswith(MARK):
                return int(line.removeprefix(MARK)), printed[:-1]
            printed.append(line.rstrip())
        raise AssertionError(f"the shell ended at {command!r}: {printed}")

    def close(self) -> None:
        self._bash.kill()
        self._bash.communicate()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


@pytest.fixture
def terminals() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_the_readme_does_as_it_says(tmp_path: Path, shell: Shell, terminals: ExitStack) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    workers: list[WorkerProcess] = []
    typed = 0
    for step in steps(readme):
        if step.file is not None:
            (tmp_path / step.file).write_text(step.text, encoding="utf-8")
        elif step.text.startswith("holdfast worker "):
            target, *arguments = step.text.split()[2:]
            worker = terminals.enter_context(WorkerProcess(tmp_path, target, *arguments))
            workers.append(worker.ready())
        elif step.text.startswith("make "):
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{step.text.split()[1]}:", makefile, re.M), step.text
        elif not step.text.startswith("pip install "):
            code, printed = shell.type(step.text)
            assert code == 0, f"{step.text}: {printed}"
            if step.printed:
                assert printed == list(step.printed), step.text
            typed += 1
    assert typed >= 5
    assert len(workers) == 1
    assert workers[0].stop() == 0
