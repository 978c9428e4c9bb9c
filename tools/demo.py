"""A short run of what this version does: send tasks, and look at where they stand.

Works in a temporary directory on a SQLite file and leaves nothing behind. There is no worker yet,
so the tasks are kept, moved and counted, and none of them runs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

import apsw
from rich.console import Console
from rich.table import Table

from holdfast import Holdfast, Retry, TaskHandle, TaskNotFound

console = Console(highlight=False)


def say(text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")


def show(handles: dict[str, TaskHandle[None]]) -> None:
    table = Table("call", "id", "queue", "status", "meaning")
    for call, handle in handles.items():
        info = handle.info()
        table.add_row(call, str(info.id), info.queue, info.status, info.status.meaning, style=None)
    console.print(table)


def run(folder: Path) -> None:
    file = folder / "demo.db"
    with Holdfast(f"sqlite:///{file}") as app:

        @app.task("resize", queue="images", retry=Retry(3, delay=10))
        def resize(path: str, width: int = 640) -> None: ...

        @app.task("welcome", queue="mail")
        def welcome(address: str) -> None: ...

        say("Four sends. Each is on disk when it returns.")
        sent = {
            'resize.send("a.png")': resize.send("a.png"),
            'resize.send("b.png", width=80)': resize.send("b.png", width=80),
            'welcome.schedule(60, "ada@…")': welcome.schedule(60, "ada@example.org"),
            'welcome.send("bob@…")': welcome.send("bob@example.org"),
        }
        show(sent)

        say("One is cancelled, another cancelled and sent again.")
        sent['resize.send("a.png")'].cancel()
        sent['welcome.send("bob@…")'].cancel()
        sent['welcome.send("bob@…")'].resubmit()
        show(sent)

        say("A send inside a transaction that is rolled back never happened.")
        connection = apsw.Connection(str(file))
        connection.execute("BEGIN IMMEDIATE")
        with app.using(connection):
            lost = welcome.send("eve@example.org")
        connection.execute("ROLLBACK")
        connection.close()
        try:
            lost.status()
        except TaskNotFound as error:
            console.print(f"TaskNotFound: {error}")

        say("Ten thousand sends in one transaction.")
        began = perf_counter()
        handles = resize.send_many([(f"{n}.png",) for n in range(10_000)])
        took = perf_counter() - began
        console.print(
            f"{len(handles):,} tasks in {took:.2f} s, {len(handles) / took:,.0f} per second"
        )


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        run(Path(folder))


if __name__ == "__main__":
    main()
