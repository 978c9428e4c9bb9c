"""Ends a test's PostgreSQL server and erases its directory when the tests are gone.

Runs as a process of its own beside each server, in its own session, so that neither Ctrl-C
nor `kill -9` of pytest leaves a server or a file behind. Its standard input is a pipe from
the tests: each line is the process id of the running server (0: none is running); the end of
the pipe, or the death of the process that started it, means clean up.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil

PATIENCE_S = 10.0


def tree(pid: int) -> list[psutil.Process]:
    """The server's process and all that it started, itself first; empty when it is gone."""
    try:
        server = psutil.Process(pid)
        return [server, *server.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:
            pass


def kill_tree(pid: int) -> None:
    """SIGKILL to the server and everything it started, and wait until they are gone."""
    # Stopped first: a server that is still running could fork once more while we kill.
    send(tree(pid)[:1], signal.SIGSTOP)
    family = tree(pid)
    send(family, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while any(_alive(process) for process in family):
        if time.monotonic() > deadline:
            raise TimeoutError(f"PostgreSQL processes survived SIGKILL: {family}")
        time.sleep(0.005)


def erase(directory: Path) -> None:
    """Remove the server's files, and the shared memory that a killed server left behind."""
    pid_file = directory / "data" / "postmaster.pid"
    if pid_file.exists():
        _remove_shared_memory(pid_file.read_text().splitlines())
    shutil.rmtree(directory, ignore_errors=True)


def _alive(process: psutil.Process) -> bool:
    try:
        # Where process 1 does not reap, the dead stay as zombies; they hold nothing.
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _remove_shared_memory(lines: list[str]) -> None:
    # Line 7 of postmaster.pid: key and id of the System V segment that guards the directory.
    words = lines[6].split() if len(lines) > 6 else []
    if len(words) == 2:
        ipc_rmid = 0
        ctypes.CDLL(None).shmctl(int(words[1]), ipc_rmid, None)


def main() -> None:
    directory = Path(sys.argv[1])
    parent = int(sys.argv[2])
    pid = 0
    heard = b""
    while os.getppid() == parent:
        # The timeout is for a forked child of the tests that keeps the pipe open after them.
        ready, _, _ = select.select([0], [], [], 0.5)
        if ready:
            said = os.read(0, 4096)
            if not said:
                break
            *lines, heard = (heard + said).split(b"\n")
            pid = int(lines[-1]) if lines else pid
    if pid:
        kill_tree(pid)
    erase(directory)


if __name__ == "__main__":
    main()
