"""The monitor: what is selected, what a key does, when it is painted.

Owns the loop. A verb is asked of `app.control`, like any command, after somebody has said yes, and
what it came to is said in the last line. The database is asked in another thread, so that keys are
answered while it is slow or away. The picture may be older than the database: a verb goes by the
id, and does nothing to a task that has moved on.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from holdfast.cli.session import CommandSession
from holdfast.cli.top.frame import (
    HELP,
    KEYS,
    Section,
    SelectedRow,
    picture,
    rows_of,
)
from holdfast.cli.top.keyboard import Keyboard
from holdfast.cli.top.page import TextPage
from holdfast.cli.top.snapshot import QueueLine, Snapshot, SnapshotReader
from holdfast.client.info import TaskInfo
from holdfast.client.redacted import redacted_task, redacted_why
from holdfast.client.worker_control import WorkerInfo
from holdfast.core.errors import HoldfastError
from holdfast.core.identity import short_id
from holdfast.core.status import TaskStatus
from holdfast.core.text import one_line

_STEP: Final = 0.2
"""Seconds between two looks at the size of the terminal."""
_LONG_S: Final = 5
"""After so many seconds it is said that the database does not answer."""
_QUIT: Final = ("q", "Q")


class Monitor:
    """One run of the monitor."""

    def __init__(self, session: CommandSession, reader: SnapshotReader, console: Console) -> None:
        self._session = session
        self._reader = reader
        self._console = console
        self._cursor = SelectedRow(Section.RUNNING)
        self._shown: Snapshot | None = None
        self._is_held = False
        self._said: Text | None = None
        self._question: tuple[str, Callable[[], str]] | None = None
        self._page: TextPage | None = None
        self._asking: threading.Thread | None = None
        self._answered: Text | TextPage | None = None
        """What the database has answered, until it is shown."""

    def run(self, keyboard: Keyboard) -> None:
        """Paint and obey until somebody quits."""
        painted: tuple[object, ...] = ()
        while True:
            if self._reader.latest is not None and not (self._is_held and self._shown):
                self._take(self._reader.latest)
            if self._answered is not None:
                self._show_answer(self._answered)
                painted = ()
            size = shutil.get_terminal_size()
            state = (self._reader.number if not self._is_held else -1, size, self._silence)
            if state != painted or keyboard.was_away:
                keyboard.was_away = False
                painted = state
                self.paint(size.columns, size.lines)
            key = keyboard.key(_STEP)
            if key in _QUIT and self._question is None and self._page is None:
                return
            if key is not None:
                self.press(key, is_alone=keyboard.is_alone)
                painted = ()

    def show(self, latest: Snapshot, width: int) -> None:
        """Print a picture once, as long as it is, without keys."""
        self._take(latest)
        height = sum(len(rows_of(latest, section)) + 1 for section in Section) + 2
        for line in self.lines(width, height)[:-1]:
            self._console.print(line, crop=False)

    def paint(self, width: int, height: int) -> None:
        """Paint the picture, in one write."""
        lines = self.lines(width, height)
        with self._console.capture() as captured:
            for place, line in enumerate(lines):
                self._console.print(line, end="\n" if place < len(lines) - 1 else "", crop=False)
        body = captured.get().replace("\n", "\x1b[K\n")
        sys.stdout.write(f"\x1b[H{body}\x1b[K\x1b[J")
        sys.stdout.flush()

    def lines(self, width: int, height: int) -> list[Text]:
        """What is painted."""
        if self._page is not None:
            return self._page.lines(width, height)
        if self._shown is None:
            waiting = self._reader.problem or "reading…"
            return TextPage(["holdfast", "", waiting]).lines(width, height, below="q quits")
        footer = self._footer()
        self._clamp(self._shown)
        place = self._session.place.config.store.masked
        return picture(
            self._shown, self._cursor, place=place, footer=footer, width=width, height=height
        )

    def press(self, key: str, *, is_alone: bool = True) -> None:
        """Do what a key asks for. A yes counts only if it came by itself, after the question."""
        if self._page is not None:
            if not self._page.turned(key):
                self._page = None
        elif self._question is not None:
            self._answer(key if is_alone else "")
        elif self._shown is not None:
            self._said = None
            self._obey(key, self._shown)

    @property
    def is_asking(self) -> bool:
        """Whether the database has yet to answer what was asked of it."""
        return self._asking is not None and self._asking.is_alive()

    @property
    def _silence(self) -> int:
        silence = int(self._reader.silence)
        return silence if silence >= _LONG_S else 0

    def _footer(self) -> Text:
        if self._question is not None:
            return Text(f"{self._question[0]} [y/n]", "bold reverse")
        if self._said is not None:
            return self._said
        if self._silence:
            return Text(f"the database has not answered for {self._silence} s", "bold red")
        if self._reader.problem is not None:
            return Text(f"not up to date: {one_line(self._reader.problem)}", "bold red")
        if self._is_held:
            return Text("held; Space goes on", "yellow")
        return Text(KEYS, "dim")

    def _obey(self, key: str, shown: Snapshot) -> None:
        section, row = self._cursor.section, self._cursor.row
        last = max(0, len(rows_of(shown, section)) - 1)
        match key:
            case "tab":
                self._cursor = SelectedRow(Section((section + 1) % len(Section)))
            case "back":
                self._cursor = SelectedRow(Section((section - 1) % len(Section)))
            case "1" | "2" | "3" | "4":
                self._cursor = SelectedRow(Section(int(key) - 1))
            case "j" | "down":
                self._cursor = SelectedRow(section, min(last, row + 1))
            case "k" | "up":
                self._cursor = SelectedRow(section, max(0, row - 1))
            case "g":
                self._cursor = SelectedRow(section)
            case "G":
                self._cursor = SelectedRow(section, last)
            case "space":
                self._is_held = not self._is_held
            case "u":
                self._reader.again()
            case "?" | "h":
                self._page = TextPage(HELP)
            case "enter" | "p" | "c" | "r" | "d":
                self._act(key, shown)
            case _:
                pass

    def _act(self, key: str, shown: Snapshot) -> None:
        rows = rows_of(shown, self._cursor.section)
        row = rows[self._cursor.row] if self._cursor.row < len(rows) else None
        control = self._session.control
        match key, row:
            case "enter", TaskInfo():
                self._put(lambda: TextPage(self._about(row)))
            case "p", QueueLine(is_paused=True):
                self._ask(
                    f"resume queue {row.name}?", lambda: _resumed(control.queues.resume(row.name))
                )
            case "p", QueueLine():
                self._ask(f"pause queue {row.name}?", lambda: self._pause(row.name))
            case "c", TaskInfo() if not row.status.is_terminal:
                self._ask(f"cancel {_named(row)}?", lambda: self._cancel(row))
            case "r", TaskInfo() if row.status.is_terminal:
                self._ask(f"resubmit {_named(row)}?", lambda: self._resubmit(row))
            case "d", WorkerInfo():
                self._ask(f"drain worker {row.id} on {row.hostname}?", lambda: self._drain(row))
            case _:
                self._say(_NEEDS[key], "yellow")

    def _ask(self, question: str, do: Callable[[], str]) -> None:
        self._question = (one_line(question), do)

    def _answer(self, key: str) -> None:
        question, self._question = self._question, None
        if question is None or key not in ("y", "Y"):
            self._say("nothing was done", "yellow")
            return
        self._put(lambda: _said(question[1](), "bold green"))

    def _put(self, ask: Callable[[], Text | TextPage]) -> None:
        """Ask the database; what it answers is shown when it is there, one thing at a time."""
        if self.is_asking:
            self._say("the database has not answered yet; q quits", "yellow")
            return

        def run() -> None:
            try:
                self._answered = ask()
            except HoldfastError as error:
                self._answered = _said(str(error), "bold red")
            self._reader.again()

        self._say("asking the database…", "yellow")
        self._asking = threading.Thread(target=run, name="holdfast-verb", daemon=True)
        self._asking.start()

    def _show_answer(self, answer: Text | TextPage) -> None:
        self._answered = None
        if isinstance(answer, TextPage):
            self._said, self._page = None, answer
        else:
            self._said = answer

    def _say(self, text: str, style: str) -> None:
        self._said = _said(text, style)

    def _pause(self, queue: str) -> str:
        self._session.control.queues.pause(queue)
        return f"queue {queue} is paused"

    def _cancel(self, info: TaskInfo) -> str:
        status = self._session.control.tasks.cancel(info.id)[info.id]
        if status is TaskStatus.RUNNING:
            return f"{_named(info)} was asked to end"
        return f"{_named(info)} is {'gone' if status is None else status.value}"

    def _resubmit(self, info: TaskInfo) -> str:
        done = self._session.control.tasks.resubmit(info.id)[info.id]
        return f"{_named(info)} {'runs again' if done else 'was not resubmitted: it has moved on'}"

    def _drain(self, worker: WorkerInfo) -> str:
        told = self._session.control.workers.drain(worker.id)[worker.id]
        return f"worker {worker.id} {'drains' if told else 'has stopped already'}"

    def _about(self, info: TaskInfo) -> Sequence[str]:
        control = self._session.control
        shown = redacted_task(control.tasks.show(info.id), self._session.hides)
        why = redacted_why(control.tasks.why(info.id))
        lines = [f"{shown.name}  {shown.id}", f"{why.status.value}", ""]
        lines += [f"  {reason}" for reason in why.reasons]
        if shown.error is not None and shown.error.traceback:
            lines += ["", *shown.error.traceback.rstrip().splitlines()[-12:]]
        return [*lines, "", f"holdfast tasks show {shown.id}"]

    def _take(self, latest: Snapshot) -> None:
        """Show this; what was selected stays selected, wherever it stands now."""
        before = self._shown
        self._shown = latest
        section, row = self._cursor.section, self._cursor.row
        if before is latest or before is None or row >= len(rows_of(before, section)):
            return
        key = _key(rows_of(before, section)[row])
        for place, each in enumerate(rows_of(latest, section)):
            if _key(each) == key:
                self._cursor = SelectedRow(section, place)

    def _clamp(self, shown: Snapshot) -> None:
        last = max(0, len(rows_of(shown, self._cursor.section)) - 1)
        if self._cursor.row > last:
            self._cursor = SelectedRow(self._cursor.section, last)


_NEEDS: Final = {
    "enter": "select a task first (3: running, 4: failures)",
    "p": "select a queue first (1)",
    "c": "select a running task first (3)",
    "r": "select a failure first (4)",
    "d": "select a worker first (2)",
}


def _said(text: str, style: str) -> Text:
    return Text(one_line(text), style)


def _key(row: QueueLine | WorkerInfo | TaskInfo) -> object:
    return row.name if isinstance(row, QueueLine) else row.id


def _named(info: TaskInfo) -> str:
    return f"{info.name} {short_id(info.id.bytes)}"


def _resumed(was_paused: bool) -> str:
    return "the queue goes on" if was_paused else "it was not paused"
