from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import run_tests

# Fails when run for the first time, passes after that.
ONCE = """
from pathlib import Path

def test_once():
    seen = Path(__file__).with_suffix(".seen")
    known = seen.exists()
    seen.touch()
    assert known
"""


@pytest.fixture
def inside() -> Iterator[Path]:
    """A directory inside the project, where names of tests are relative to its root."""
    cache = run_tests.ROOT / ".pytest_cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        yield Path(directory)


def part(directory: Path, text: str) -> list[str]:
    file = directory / "test_part.py"
    file.write_text(text)
    return ["python", "-m", "pytest", "-q", "-p", "tests.conftest", str(file)]


def test_a_test_that_fails_once_is_unsteady(inside: Path) -> None:
    finished = run_tests.run_tests("part", part(inside, ONCE), limit=60)
    assert finished.status == 0
    assert [name.partition("::")[2] for name in finished.unsteady] == ["test_once"]
    assert "UNSTEADY" in run_tests.table([finished], 1.0)


def test_a_test_that_fails_twice_has_failed(inside: Path) -> None:
    finished = run_tests.run_tests("part", part(inside, "def test_no():\n    assert 0"), limit=60)
    assert (finished.status, finished.unsteady) == (1, ())


def test_many_failures_are_not_tried_again(inside: Path) -> None:
    many = "".join(
        f"def test_{n}():\n    assert 0\n" for n in range(run_tests.MOST_TRIED_AGAIN + 1)
    )
    finished = run_tests.run_tests("part", part(inside, ONCE + many), limit=60)
    assert (finished.status, finished.unsteady) == (1, ())


def test_a_part_that_does_not_end_is_ended() -> None:
    finished = run_tests.run("part", ["python", "-c", "import time; time.sleep(100)"], limit=0.5)
    assert finished.status != 0
    assert finished.seconds < 50
