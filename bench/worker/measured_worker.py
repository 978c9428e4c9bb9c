"""A worker under measurement: a command in a process group of its own, and what it costs.

Owns starting, stopping, and the reading of processor time and memory. The same for ours
and for every peer; a command may be started several times to make one of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Self

import psutil

from bench.peers.mark import FOLDER, Marks

ROOT = Path(__file__).resolve().parents[2]
_STOP_S = 20.0


class NotDone(Exception):
    """A worker did not run its tasks."""


class MeasuredWorker:
    """The processes of one worker; use it as a context manager."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        marks: Marks,
        environment: Mapping[str, str],
        copies: int = 1,
    ) -> None:
        self._marks = marks
        self._log = marks.folder.with_suffix(".log")
        self.began = monotonic()
        with self._log.open("ab") as log:
            self._processes = [
                subprocess.Popen(
                    command,
                    cwd=marks.folder.parent,
                    env={
                        **os.environ,
                        "PYTHONPATH": str(ROOT),
                        FOLDER: str(marks.folder),
                        **environment,
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
                for _ in range(copies)
            ]

    def wait_for(self, count: int, within: float) -> None:
        """Wait until so many tasks have run."""
        deadline = monotonic() + within
        while self._marks.count < count:
            if monotonic() > deadline or all(p.poll() is not None for p in self._processes):
                raise NotDone(
                    f"{self._marks.count} of {count} tasks ran; the worker said:\n{self.said}"
                )
            sleep(0.02)

    @property
    def said(self) -> str:
        """The end of what it wrote to its log."""
        return self._log.read_text(errors="replace")[-3000:]

    def tree(self) -> list[psutil.Process]:
        """All of its processes."""
        found = [psutil.Process(process.pid) for process in self._processes]
        return [*found, *(child for one in found for child in one.children(recursive=True))]

    def cpu_seconds(self) -> float:
        """Processor time of all of its processes so far, by the scheduler's own account.

        (The times that processes report are counted in ticks; whoever wakes with a timer runs
        when a tick is counted, so that an idle worker seems to cost a third more than it does.)
        """
        return sum(_ran_ns(process.pid) for process in self.tree()) / 1e9

    def memory_mb(self) -> float:
        """Proportional set size of all of its processes: a shared page counts once."""
        return sum(_pss_kb(process.pid) for process in self.tree()) / 1024

    def stop(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = monotonic() + _STOP_S
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - monotonic()))
            except subprocess.TimeoutExpired:
                pass
            # What is left of the group, or the whole of a peer that does not listen.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def _ran_ns(pid: int) -> int:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


def _pss_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0
