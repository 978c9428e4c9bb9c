"""Too few file descriptors: the limit is raised where that is allowed, and explained where not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
from holdfast import Holdfast
app = Holdfast("sqlite:///tasks.db")

@app.task("one")
def one() -> int:
    return 1
"""


LIMITED = """
import os, resource, sys
soft, hard, *arguments = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_NOFILE, (int(soft), int(hard)))
os.execv(sys.executable, [sys.executable, "-m", "holdfast", *arguments])
"""


def worker(folder: Path, soft: int, hard: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A worker that stops when there is nothing to do, with so many descriptors."""
    (folder / "program.py").write_text(PROGRAM)
    return subprocess.run(
        [
            *(sys.executable, "-c"),
            LIMITED,
            *(str(soft), str(hard)),
            *("worker", "program:app", "--burst", *arguments),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_too_few_are_refused_with_the_remedy(tmp_path: Path) -> None:
    ended = worker(tmp_path, 64, 64, "-c", "16")
    assert ended.returncode == 2
    (line,) = ended.stderr.strip().splitlines()
    assert line.startswith("holdfast worker: this process may have 64 files open")
    for remedy in (
        "ulimit -n 112",
        "LimitNOFILE=",
        "--ulimit nofile=",
        "--concurrency",
        "at most 4",
    ):
        assert remedy in line


def test_next_to_none_are_refused_before_anything_is_started(tmp_path: Path) -> None:
    ended = worker(tmp_path, 20, 20, "-c", "1")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "this process may have 20 files open" in ended.stderr


def test_a_soft_limit_is_raised(tmp_path: Path) -> None:
    ended = worker(tmp_path, 64, 4096, "-c", "16")
    assert ended.returncode == 0, ended.stderr


def test_what_fits_is_enough(tmp_path: Path) -> None:
    ended = worker(tmp_path, 64, 64, "-c", "4")
    assert ended.returncode == 0, ended.stderr
