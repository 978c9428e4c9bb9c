"""`--reload`: start the worker anew whenever a Python file below this directory changes."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

log = logging.getLogger("holdfast.reload")

_EVERY = 0.5
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


def run_reloading(arguments: Sequence[str], root: Path | None = None) -> int:
    """Run `holdfast ARGUMENTS` over and over; the exit code of the last run."""
    root = root or Path.cwd()
    seen = snapshot(root)
    # A service manager's way to say Ctrl-C; without it the worker would be left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    process = _start(arguments)
    try:
        while True:
            time.sleep(_EVERY)
            now = snapshot(root)
            changed = sorted(
                path for path in now.keys() | seen.keys() if now.get(path) != seen.get(path)
            )
            if changed:
                log.info("%s changed; the worker starts anew", changed[0])
                seen = now
                _stop(process)
                process = _start(arguments)
    except KeyboardInterrupt:
        return _stop(process)


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


def _start(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "holdfast", *arguments])


def _stop(process: subprocess.Popen[bytes]) -> int:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        return process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
