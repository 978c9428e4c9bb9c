"""Both type checkers accept what users may write, and find each mistake where it is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent


def mypy(file: Path) -> set[int]:
    """The lines where mypy finds an error."""
    ran = subprocess.run(
        [str(BIN / "mypy"), "--strict", "--no-error-summary", "--hide-error-context", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return {int(line) for line in re.findall(rf"{file.name}:(\d+): error", ran.stdout)}


def pyright(file: Path) -> set[int]:
    """The lines where pyright finds an error."""
    # Only what is beside the file configures pyright; the project's settings are for `make check`.
    ran = subprocess.run(
        [str(BIN / "pyright"), "--outputjson", "--pythonpath", sys.executable, str(file)],
        cwd=file.parent,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(ran.stdout)["generalDiagnostics"]
    return {error["range"]["start"]["line"] + 1 for error in found if error["severity"] == "error"}


CHECKERS = {"mypy": mypy, "pyright": pyright}


@pytest.mark.parametrize("checker", CHECKERS)
def test_mistakes_are_found(tmp_path: Path, checker: str) -> None:
    text = (HERE / "refused.txt").read_text(encoding="utf-8")
    file = tmp_path / "refused.py"
    file.write_text(text, encoding="utf-8")
    wrong = {number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# wrong")}
    assert CHECKERS[checker](file) == wrong


@pytest.mark.parametrize("checker", CHECKERS)
def test_right_uses_are_accepted(checker: str) -> None:
    assert CHECKERS[checker](HERE / "accepted.py") == set()
