"""What a task printed, as it was captured.

Owns reading it piece by piece, following it while the task runs, and making it safe: what a
terminal would obey is shown instead, unless the operator asks for the bytes as they are.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from time import sleep
from typing import Final
from uuid import UUID

import click

from holdfast.cli.session import CommandSession, NotDone
from holdfast.client.info import TaskInfo
from holdfast.client.task_questions import Printed
from holdfast.core.text import visible

_LOOK: Final = 0.3


def show_log(
    session: CommandSession, task: UUID, *, attempt: int | None, follow: bool, raw: bool
) -> None:
    """Print what a task printed, in one attempt or in all."""
    info = session.control.tasks.show(task)
    if attempt is not None and attempt > info.attempt and not follow:
        times = "once" if info.attempt == 1 else f"{info.attempt} times"
        raise NotDone(f"task {task} has been started {times}: there is no attempt {attempt}")
    parts = _follow(session, task, attempt) if follow else _parts(session, task, attempt)
    if session.screen.as_json:
        session.screen.document({"id": task, "attempts": _texts(parts)})
        return
    writer = _Writer(raw=raw, headed=attempt is None and (info.attempt > 1 or follow))
    for part in parts:
        writer.write(part)
    writer.end()
    if not writer.wrote:
        session.screen.remark(_silence(info))


def _parts(
    session: CommandSession, task: UUID, attempt: int | None, after: tuple[int, int] = (0, -1)
) -> Iterator[Printed]:
    """The pieces there are, from behind one of them on."""
    while True:
        found = session.control.tasks.log_parts(task, attempt=attempt, after=after)
        if not found:
            return
        yield from found
        after = (found[-1].attempt, found[-1].part)


def _follow(session: CommandSession, task: UUID, attempt: int | None) -> Iterator[Printed]:
    """The pieces there are, and those that come until the task (or the attempt) has ended."""
    after = (0, -1)
    while True:
        # Looked at before the pieces are read: the last piece is stored with the end.
        info = session.control.tasks.show(task)
        for part in _parts(session, task, attempt, after):
            after = (part.attempt, part.part)
            yield part
        if info.status.is_terminal or (attempt is not None and info.attempt > attempt):
            return
        sleep(_LOOK)


class _Writer:
    """Writes pieces to standard output; characters may be split between two of them."""

    def __init__(self, *, raw: bool, headed: bool) -> None:
        self._raw = raw
        self._headed = headed
        self._attempt = 0
        self._decoder = _decoder()
        self._line_open = False
        self.wrote = False

    def write(self, part: Printed) -> None:
        self.wrote = True
        if self._raw:
            click.echo(part.data, nl=False)
            return
        if part.attempt != self._attempt:
            self._begin(part.attempt)
        self._say(self._decoder.decode(part.data))

    def end(self) -> None:
        """Finish the last line."""
        if not self._raw:
            self._say(self._decoder.decode(b"", True))
            if self._line_open:
                click.echo("")

    def _begin(self, attempt: int) -> None:
        self.end()
        self._attempt, self._decoder, self._line_open = attempt, _decoder(), False
        if self._headed:
            click.echo(f"==> attempt {attempt} <==")

    def _say(self, text: str) -> None:
        if text:
            click.echo(visible(text), nl=False)
            self._line_open = not text.endswith("\n")


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")


def _texts(parts: Iterator[Printed]) -> list[dict[str, object]]:
    data: dict[int, bytes] = {}
    for part in parts:
        data[part.attempt] = data.get(part.attempt, b"") + part.data
    return [{"attempt": n, "text": raw.decode("utf-8", "replace")} for n, raw in data.items()]


def _silence(info: TaskInfo) -> str:
    if not info.attempt:
        return f"task {info.id} has not been started: it is {info.status.value}"
    return f"task {info.id} printed nothing, or its log is no longer kept"
