"""`holdfast top` in a real terminal: what is shown, what keys do, and what is left behind."""

from __future__ import annotations

import os
import pty
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fcntl import ioctl
from select import select
from typing import Any
from uuid import UUID

import psycopg
import pytest

from holdfast.core.status import TaskStatus
from tests.cli.conftest import Operator, join
from tests.support.deadline import until
from tests.support.stores import Lab

LEAVES = "\x1b[?25h\x1b[?1049l"


class Terminal:
    """A terminal of 80 × 24 with `holdfast top` in it."""

    def __init__(self, *arguments: str) -> None:
        self._master, self._slave = pty.openpty()
        ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.modes = termios.tcgetattr(self._slave)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "top", "--every", "0.5", *arguments],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env={**os.environ, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        self.written = ""

    @property
    def picture(self) -> str:
        """The last picture that was painted, without its colours."""
        self._read()
        last = self.written.rpartition("\x1b[H")[2]
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last)

    def shows(self, text: str) -> None:
        until(lambda: text in self.picture, what=f"{text!r} to be shown")

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def ended(self) -> int:
        """The exit code; the terminal must be as it was."""
        until(lambda: bool(self.picture) and self.process.poll() is not None, what="its end")
        self._read()
        assert termios.tcgetattr(self._slave) == self.modes
        assert self.written.count("\x1b[?1049h") == self.written.count("\x1b[?1049l")
        return self.process.wait(10)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def _read(self) -> None:
        while select([self._master], [], [], 0.01)[0]:
            self.written += os.read(self._master, 65536).decode("utf-8", "replace")


@pytest.fixture
def terminal(operator: Operator, lab: Lab) -> Iterator[Any]:
    opened: list[Terminal] = []

    def open_one() -> Terminal:
        opened.append(Terminal(*operator.place))
        return opened[-1]

    join(lab, "w-1")
    yield open_one
    for each in opened:
        each.close()


def test_keys_act_after_a_yes(operator: Operator, lab: Lab, terminal: Any) -> None:
    task = lab.running()
    waits = lab.send(queue_name="a")
    dead = lab.running()
    lab.fail(dead)
    top = terminal()
    top.shows("1 running")
    top.press("c")
    top.shows("cancel t ")
    top.press("n")
    top.shows("nothing was done")
    top.press("c")
    top.shows("[y/n]")
    top.press("y")
    top.shows("was asked to end")
    top.press("4r")
    top.shows("resubmit t ")
    top.press("n")
    top.shows("nothing was done")
    top.press("g")
    top.shows("q quit")
    # A yes that came before the question could be read is none.
    top.press("ry")
    top.shows("nothing was done")
    top.press("r")
    top.shows("resubmit t ")
    top.press("y")
    top.shows("runs again")
    top.press("1p")
    top.shows("pause queue a?")
    top.press("y")
    top.shows("queue a is paused")
    top.press("?")
    top.shows("any other key does not")
    top.press("x")
    top.shows("q quit")
    top.press("3\r")
    top.shows("any key goes back")
    top.press("x")
    top.shows("holdfast  ")
    top.press("q")
    assert top.ended() == 0
    info = operator("tasks", "show", str(UUID(bytes=task.id)), "--json").json
    assert info["cancel_requested_at"] is not None
    assert lab.status(dead.id) is TaskStatus.PENDING
    assert lab.status(waits) is TaskStatus.PENDING


@contextmanager
def written_by_somebody_else(url: str, schema: str) -> Iterator[None]:
    """Nothing can be written meanwhile, and everything can be read."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as held:
            held.execute("BEGIN IMMEDIATE")
            yield
    else:
        with psycopg.connect(url) as other:
            other.execute(f"LOCK TABLE {schema}.holdfast_queues IN EXCLUSIVE MODE".encode())
            yield
            other.rollback()


def test_keys_are_answered_while_the_database_is_not(
    operator: Operator, lab: Lab, terminal: Any
) -> None:
    lab.send(queue_name="a")
    top = terminal()
    top.shows("1 waiting")
    with written_by_somebody_else(operator.place[1], operator.place[-1]):
        top.press("1p")
        top.shows("pause queue a?")
        top.press("y")
        top.shows("asking the database")
        top.press("p")
        top.shows("pause queue a?")
        top.press("y")
        top.shows("has not answered yet")
        top.press("?")
        top.shows("any other key does not")
        top.press("x")
    top.shows("queue a is paused")
    with written_by_somebody_else(operator.place[1], operator.place[-1]):
        top.press("p")
        top.shows("resume queue a?")
        top.press("y")
        top.shows("asking the database")
        top.press("q")
        assert top.ended() == 0
    assert "it may still be done" in top.written


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_terminal_is_given_back(terminal: Any, number: signal.Signals) -> None:
    top = terminal()
    top.shows("1 worker")
    top.process.send_signal(number)
    assert top.ended() == 128 + number
    assert "Traceback" not in top.written


def test_it_goes_on_after_it_was_suspended(terminal: Any) -> None:
    top = terminal()
    top.shows("1 worker")
    top.process.send_signal(signal.SIGTSTP)
    until(lambda: LEAVES in (top.picture and top.written), what="the terminal to be given back")
    assert termios.tcgetattr(top._slave) == top.modes
    top.written = ""
    # It stops itself a moment after it has given the terminal back.
    until(lambda: _state(top.process.pid) == "T")
    top.process.send_signal(signal.SIGCONT)
    top.shows("1 worker")
    top.process.send_signal(signal.SIGTERM)
    until(lambda: top.process.poll() is not None)
    assert termios.tcgetattr(top._slave) == top.modes


def test_without_a_terminal(operator: Operator, lab: Lab) -> None:
    lab.send(queue_name="q")
    assert "--once prints one picture" in operator("top", code=2).err
    said = operator("top", "--once")
    assert said.lines[1].split()[:2] == ["QUEUE", "WAITING"]
    assert said.lines[2].split()[:2] == ["q", "1"]
    found = operator("top", "--json").json
    assert [queue["name"] for queue in found["queues"]] == ["q"]


def _state(pid: int) -> str:
    from pathlib import Path

    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
