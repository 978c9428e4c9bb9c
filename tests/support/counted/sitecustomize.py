"""Counts what SQLite connections are asked in the process that loads this.

Python imports a module of this name by itself if its folder is in PYTHONPATH: so a worker is
counted whose code knows nothing of it. Owns the file that the environment names, two numbers of
eight bytes: statements, and transactions that wrote. Where the environment names none, nothing
happens.
"""

from __future__ import annotations

import mmap
import os
from itertools import count
from pathlib import Path

FILE = "COUNTED_SQLITE"


def _count(path: str) -> None:
    import apsw

    with Path(path).open("r+b") as file:
        numbers = memoryview(mmap.mmap(file.fileno(), 16)).cast("Q")
    # Threads share these: `next` is one step, adding one is not.
    statements, commits = count(1), count(1)

    def statement(event: object) -> None:
        numbers[0] = next(statements)

    def commit() -> bool:
        numbers[1] = next(commits)
        return False

    def opened(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, statement, id="counted")
        connection.set_commit_hook(commit, id="counted")

    apsw.connection_hooks.append(opened)


if FILE in os.environ:
    _count(os.environ[FILE])
