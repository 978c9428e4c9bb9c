"""What a Python process does last: the functions that were registered with `atexit`.

Owns their running in processes that end by `os._exit`, as the template and its children do, so that
libraries can send what they still have (spans, log records, metrics). But not for ever.
"""

from __future__ import annotations

import atexit
import os
import threading


def run(patience: float, status: int) -> None:
    """Run them; a process that has not come to their end in time exits with this status."""
    last = threading.Timer(patience, os._exit, [status])
    last.daemon = True
    last.start()
    atexit._run_exitfuncs()
    last.cancel()
