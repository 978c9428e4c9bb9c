"""A forked child of the test itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def in_child(work: Callable[[], object]) -> str:
    """Run `work` in a forked child; what it returned or raised, as text; nothing if it hung.

    It may hang in a lock of the C library or of SQLite that a thread of the parent held.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        try:
            said = str(work())
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the test
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said
