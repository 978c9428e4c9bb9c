"""`--reload`: start the worker anew whenever a Python file below this directory changes.

Owns the worker's process, and every signal that is meant for it. The worker is in a process group
of its own: a terminal sends Ctrl-C to the whole group, and a worker that got it from there and
from here would count one signal to stop as two.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from holdfast.runtime import orphan_guard
from holdfast.runtime.orphan_guard import reap

log = logging.getLogger("holdfast.reload")

_EVERY = 0.5
_PATIENCE = 10.0
"""Seconds that running tasks have when a file has changed; then they are interrupted."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def run_reloading(arguments: Sequence[str]) -> int:
    """Run `holdfast ARGUMENTS` over and over; the exit code of the last run."""
    return _Reloading(arguments).run()


class _Reloading:
    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._root = Path.cwd()
        self._asked = False
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        for number in _STOP:
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGUSR1, self._on_question)
        seen = snapshot(self._root)
        process = self._start()
        while not self._asked:
            # Ended by itself, it waits for a change: most likely the app cannot be imported.
            time.sleep(_EVERY)
            reap({process.pid})
            now = snapshot(self._root)
            if now != seen and not self._asked:
                changed = min(path for path, _ in now.items() ^ seen.items())
                log.info("%s changed; the worker starts anew", changed)
                seen = now
                self._replace(process)
                if not self._asked:
                    process = self._start()
        return process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        parent = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *self._arguments],
            process_group=0,
            # Safe: this process has one thread.
            preexec_fn=lambda: orphan_guard.die_with(parent, signal.SIGTERM),  # noqa: PLW1509
        )
        if self._asked:
            # Asked while it was being made.
            self._tell(signal.SIGTERM)
        return self._process

    def _replace(self, process: subprocess.Popen[bytes]) -> None:
        """Stop the worker; tasks that take long are interrupted, which costs them nothing."""
        while not self._asked:
            self._tell(signal.SIGTERM)
            try:
                process.wait(_PATIENCE)
                return
            except subprocess.TimeoutExpired:
                continue
        process.wait()

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        self._tell(signal.SIGTERM)

    def _on_question(self, number: int, frame: FrameType | None) -> None:
        self._tell(signal.SIGUSR1)

    def _tell(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            try:
                os.kill(self._process.pid, number)
            except ProcessLookupError:
                pass


def snapshot(root: Path) -> dict[str, int]:
    """The Python files below a directory and when each was changed."""
    found: dict[str, int] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        for name in files:
            if name.endswith(".py"):
                path = Path(folder, name)
                try:
                    found[str(path)] = path.stat().st_mtime_ns
                except OSError:
                    continue
    return found
