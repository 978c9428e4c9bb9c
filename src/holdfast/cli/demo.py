"""`holdfast demo`: a short run of what Holdfast does, in a directory that is gone afterwards.

Owns a little story and its rendering. Everything it calls is public, so it is also an
example that runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import click
from rich.console import Console
from rich.table import Table

from holdfast import Holdfast, PayloadError, Retry, TaskHandle, TaskNotFound, Unique

MANY = 10_000


@click.command("demo")
def demo() -> None:
    """See what Holdfast does, in a temporary database."""
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        Story(Path(folder) / "demo.db", Console(highlight=False)).tell()


class Story:
    """The demonstration, a paragraph a method."""

    def __init__(self, file: Path, console: Console) -> None:
        self._file = file
        self._console = console
        self._sent: dict[str, TaskHandle[Any]] = {}

    def tell(self) -> None:
        """Run it."""
        with Holdfast(f"sqlite:///{self._file}") as app:

            @app.task("resize", queue="images", retry=Retry(3, delay=10))
            def resize(path: str, width: int = 640) -> str:
                return f"{path} at {width}"

            @app.task("welcome", queue="mail")
            def welcome(address: str) -> None: ...

            self._say("Tasks are functions, and stay functions.")
            self._line(f'resize("a.png") → {resize("a.png")!r}')

            self._say("Four sends. Each is on disk when it returns.")
            self._sent = {
                'resize.send("a.png")': resize.send("a.png"),
                'resize.send("b.png", width=80)': resize.send("b.png", width=80),
                'welcome.schedule(60, "ada@…")': welcome.schedule(60, "ada@example.org"),
                'welcome.send("bob@…")': welcome.send("bob@example.org"),
            }
            self._show()

            self._say("A mistake is found where it is made, and nothing is written.")
            try:
                resize.send("a.png", width="wide")  # type: ignore[arg-type]
            except PayloadError as error:
                self._line(f"PayloadError: {error}")

            self._say("One is cancelled; another is cancelled and sent again.")
            self._sent['resize.send("a.png")'].cancel()
            self._sent['welcome.send("bob@…")'].cancel()
            self._sent['welcome.send("bob@…")'].resubmit()
            self._show()

            self._say("Why is it still waiting?")
            self._line(str(self._sent['resize.send("b.png", width=80)'].why()))

            self._say("Two sends with one unique key are one task.")
            report = app.options(unique=Unique("daily-report"))
            first, second = report.send("report"), report.send("report")
            self._line(f"one id: {first == second}; created: {first.created}, {second.created}")

            self._say("A send that is repeated under its id, because its answer was lost, too.")
            mine = resize.options(id=uuid4())
            once, again = mine.send("c.png"), mine.send("c.png")
            self._line(f"one id: {once == again}; created: {once.created}, {again.created}")

            self._say("An id that nobody has sent is not silently pending.")
            try:
                app.handle(uuid4())
            except TaskNotFound as error:
                self._line(f"TaskNotFound: {error}")

            self._say("What there is now.")
            self._count(app.control.tasks.count())

            self._say(f"{MANY:,} sends in one transaction.")
            began = perf_counter()
            handles = resize.send_many([(f"{n}.png",) for n in range(MANY)])
            took = perf_counter() - began
            self._line(f"{len(handles):,} tasks in {took:.2f} s: {MANY / took:,.0f} per second")

    def _say(self, text: str) -> None:
        self._console.print(f"\n[bold]{text}[/bold]")

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False)

    def _show(self) -> None:
        table = Table("call", "queue", "status", "meaning")
        for call, handle in self._sent.items():
            info = handle.info()
            table.add_row(call, info.queue, info.status, info.status.meaning)
        self._console.print(table)

    def _count(self, counts: Mapping[Any, int]) -> None:
        table = Table("status", "tasks")
        for status, number in counts.items():
            table.add_row(status, str(number))
        self._console.print(table)
