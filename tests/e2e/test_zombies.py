"""What tasks start and leave behind, when the worker is the process that inherits it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Holdfast
from tests.support.deadline import until

pytestmark = pytest.mark.mostly("sqlite")

PROGRAM = """
import os
import subprocess
from holdfast import Holdfast
app = Holdfast("sqlite:///tasks.db")

@app.task("leave")
def leave() -> int:
    # A process whose parent ends before it does.
    text = subprocess.run(
        ["sh", "-c", "setsid sh -c 'sleep 1' >/dev/null 2>&1 & echo $!"],
        capture_output=True, check=True,
    ).stdout
    return int(text)
"""
AS_SUBREAPER = """
import ctypes, os, sys
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-m", "holdfast", "worker", "program:app", "-c", "1"])
"""


def parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def test_a_worker_that_inherits_orphans_reaps_them(tmp_path: Path) -> None:
    # As process 1 of a container does; a subreaper needs no container.
    (tmp_path / "program.py").write_text(PROGRAM)
    with subprocess.Popen([sys.executable, "-c", AS_SUBREAPER], cwd=tmp_path) as worker:
        try:
            with Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app:
                handles = [app.send("leave") for _ in range(3)]
                left = [handle.get(20) for handle in handles]
                assert worker.pid in {parent(pid) for pid in left}
                until(
                    lambda: not any(Path(f"/proc/{pid}").exists() for pid in left),
                    within=10,
                    what="nothing to be left, not even a zombie",
                )
                # It has not mistaken its own processes for them.
                assert app.send("leave").get(20)
        finally:
            os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(20) == 0
