"""A real worker: `holdfast worker` in a process of its own, and what it said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support.deadline import until

REPOSITORY = Path(__file__).parents[2]


class WorkerProcess:
    """`holdfast worker TARGET` in a directory; ended with everything it started."""

    def __init__(
        self,
        directory: Path,
        target: str = "app:app",
        *arguments: str,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "worker", target, *arguments],
            cwd=directory,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._family: set[int] = set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line.rstrip("\n"))

    @property
    def said(self) -> str:
        """Everything it has printed."""
        return "\n".join(self._lines)

    @property
    def pid(self) -> int:
        return self.process.pid

    def ready(self, within: float = 20.0) -> Self:
        """Wait until it is at work."""
        until(
            lambda: "is at work" in self.said or self.process.poll() is not None,
            within=within,
            what="the worker to start",
        )
        assert self.process.poll() is None, f"the worker ended:\n{self.said}"
        return self

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self, within: float = 30.0) -> int:
        """SIGTERM, and the exit code."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait(within)

    def wait(self, within: float = 30.0) -> int:
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker did not end:\n{self.said}") from None
        finally:
            self._reader.join(1.0)

    def kill(self) -> None:
        """SIGKILL of the supervisor alone."""
        self._family |= self.descendants()
        self.process.kill()
        self.process.wait()

    def descendants(self) -> set[int]:
        """The pids of everything it has started and that lives."""
        found: set[int] = set()
        parents = {self.pid}
        while parents:
            children: set[int] = set()
            for parent in parents:
                children |= _children(parent)
            parents = children - found
            found |= children
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        # What a test has frozen does not notice that its supervisor is gone. It would hold the
        # pipe, and whoever closes that here would wait for the reader without end.
        for pid in self._family:
            if _is_holdfast(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._reader.join(10.0)
        if not self._reader.is_alive():
            assert self.process.stdout is not None
            self.process.stdout.close()
        if error is not None:
            error.add_note("\n".join([f"the worker {self.pid} had said:", *self._lines[-60:]]))


def _is_holdfast(pid: int) -> bool:
    try:
        return b"holdfast" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _children(pid: int) -> set[int]:
    found: set[int] = set()
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found.update(map(int, path.read_text().split()))
        except OSError:
            continue
    return found


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def cpu_seconds(pid: int) -> float:
    """How long a process has been running on a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
