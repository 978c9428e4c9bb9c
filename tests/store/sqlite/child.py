"""A process of its own that runs one of `programs.py` and talks to the test by lines."""

from __future__ import annotations

import select
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 30.0


class Child:
    """One running program."""

    def __init__(self, program: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.sqlite.programs", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            bufsize=1,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, line: str = "") -> None:
        """Let the program go on from where it waits."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")

    def hear(self) -> str:
        """The next line it prints."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        if not ready:
            raise AssertionError(f"process {self.pid} said nothing for {PATIENCE:g} s")
        return self._process.stdout.readline().strip()

    def wait(self) -> int:
        return self._process.wait(PATIENCE)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
