"""`holdfast demo`: a worker, some hundred tasks, and every way in which they can end.

Owns the demonstration and its rendering, in a directory that is gone afterwards. What it calls
is public, and the worker is a real one, so it is also an example that runs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Self

import click
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast import TaskHandle, TaskStatus, WorkflowHandle
from holdfast.cli.render.screen import console as console_for_people
from holdfast.cli.render.task_list import STYLES, progress_text
from holdfast.cli.render.workflow_tree import tree

PATIENCE = 40.0
WORKER = "worker holdfast.cli.demo_app:app -c 2"
_LOOK_EVERY = 0.1


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the database, to look around in it afterwards.")
def demo(keep: bool) -> None:
    """Watch a worker run tasks that end in every possible way."""
    console = console_for_people()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    url = f"sqlite:///{folder / 'demo.db'}"
    os.environ["HOLDFAST_URL"] = url
    try:
        ended = Demonstration(console, url).run()
    except KeyboardInterrupt:
        console.print("\nstopped; nothing is left running")
        sys.exit(130)
    finally:
        if keep:
            console.print(f"\nkept; to look around: export HOLDFAST_URL={url}", soft_wrap=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if ended else 1)


class Demonstration:
    """The demonstration."""

    def __init__(self, console: Console, url: str) -> None:
        self._console = console
        self._url = url
        self._sent: dict[str, list[TaskHandle[Any]]] = {}
        self._album: WorkflowHandle[str] | None = None

    def run(self) -> bool:
        """Send, watch, sum up; whether everything ended."""
        from holdfast.cli import demo_app

        with demo_app.app as app:
            self._say("Sending. Every task is on disk when its send returns.")
            self._send(demo_app)
            handles = [handle for some in self._sent.values() for handle in some]
            self._console.print(f"{len(handles)} tasks wait in {self._url}", soft_wrap=True)
            self._say(f"A worker with two processes starts: holdfast {WORKER}")
            with _Worker() as worker:
                ended = self._watch(app, handles, worker)
            if not ended:
                self._console.print("[red]not everything ended in time; the worker said:[/red]")
                self._console.print(worker.said(), markup=False)
            self._say("Every task ended in one known state:" if ended else "What there is:")
            self._sum_up()
            self._draw_workflow(app)
            self._next_steps()
            return ended

    def _send(self, tasks: Any) -> None:
        sent = self._sent
        sent["resize"] = tasks.resize.send_many([(f"{n}.png",) for n in range(200)])
        sent["fetch"] = tasks.fetch.send_many([(f"https://example.org/{n}",) for n in range(100)])
        hosts = [f"{name}.example.org" for name in ("a", "b", "c")]
        sent["crawl"] = tasks.crawl.send_many([(host, n) for n in range(12) for host in hosts])
        sent["charge"] = [tasks.charge.send(n) for n in range(10)]
        sent["poll"] = [tasks.poll.send()]
        sent["report"] = [tasks.report.send(40)]
        sent["parse"] = [tasks.parse.send("12"), tasks.parse.send("twelve")]
        sent["order"] = [tasks.order.send("A-7")]
        sent["delete_account"] = [tasks.delete_account.send(3)]
        sent["hang"] = [tasks.hang.send()]
        sent["segfault"] = [tasks.segfault.send()]
        sent["train"] = [tasks.train.send()]
        sent["render"] = [tasks.render.send(), tasks.render.schedule(3600)]
        album = self._album = tasks.album.send([f"{n}.png" for n in range(3)])
        sent["album"] = album.steps()
        soon = datetime.now(UTC) + timedelta(seconds=2)
        # Nobody serves this queue, so the task is not claimed in time.
        sent["late"] = [tasks.resize.options(queue="nobody", good_until=soon).send("late.png")]

    def _watch(self, app: Any, handles: list[TaskHandle[Any]], worker: _Worker) -> bool:
        running, delayed = self._sent["render"]
        delayed.cancel()
        deadline = monotonic() + PATIENCE
        with Live(console=self._console, refresh_per_second=10) as live:
            while monotonic() < deadline and worker.alive:
                if running.status() is TaskStatus.RUNNING:
                    running.cancel()
                counts = app.control.tasks.count()
                done = sum(n for status, n in counts.items() if status.is_terminal)
                # Read after the counts: what the schedule sent until now has to end, too.
                ticks = [each.run_count for each in app.control.schedules.list()]
                total = len(handles) + sum(ticks)
                live.update(self._picture(counts, done, total, sum(ticks)))
                if ticks and min(ticks) > 1 and done >= total:
                    self._note_ticks(app)
                    return True
                sleep(_LOOK_EVERY)
        return False

    def _note_ticks(self, app: Any) -> None:
        ids = [tick.task_id for tick in app.control.schedules.history("tick")]
        runs = [app.handle(task_id) for task_id in ids if task_id is not None]
        self._sent["tick"] = [run for run in runs if run.status().is_terminal]

    def _picture(self, counts: Any, done: int, total: int, ticks: int) -> Group:
        words = Text()
        for status, number in sorted(counts.items(), key=lambda pair: -pair[0].precedence):
            words.append(f"{number:4d} {status.label.lower()}  ", STYLES[status])
        report = self._sent["report"][0].info()
        how_far = report.status.label.lower() if report.status.is_terminal else "waiting"
        if report.progress is not None and not report.status.is_terminal:
            how_far = progress_text(report.progress)
        line = Text(f"report: {how_far}; the schedule has sent tick {ticks} time(s)", "dim")
        return Group(ProgressBar(total=total, completed=done, width=60), words, line)

    def _sum_up(self) -> None:
        table = Table("task", "ended as", "starts", "why", pad_edge=False, box=None)
        for name, handles in self._sent.items():
            infos = [handle.info() for handle in handles]
            states = Counter(info.status for info in infos)
            why = next((info.failed_reason for info in infos if info.failed_reason), "")
            ended = Text(", ").join(
                Text(f"{number} {status.label.lower()}", STYLES[status])
                for status, number in states.items()
            )
            table.add_row(name, ended, str(sum(info.attempt for info in infos)), why)
        self._console.print(table)

    def _draw_workflow(self, app: Any) -> None:
        self._say("The album is a workflow. Its steps, as `holdfast workflows show` draws them:")
        report = app.control.workflows.show(self._album)
        for line in tree(report.steps):
            self._console.print(line, markup=False, highlight=False)

    def _next_steps(self) -> None:
        self._say("What to try next")
        self._console.print(
            "holdfast demo --keep                 keep this database, then look around in it:\n"
            "holdfast tasks list --status FAILED  what failed, and why\n"
            "holdfast tasks show ID               one task: attempts, arguments, traceback\n"
            "holdfast tasks log ID                what it printed\n"
            "holdfast dead-letters resubmit --all let what failed run again\n"
            "holdfast tasks limit crawl           the limit that keeps the crawler polite\n"
            "holdfast schedules history tick      the schedule, which fired every second\n"
            "The README shows how to define tasks of your own in five lines.",
            markup=False,
        )

    def _say(self, text: str) -> None:
        self._console.print(f"\n[bold]{text}[/bold]")


class _Worker:
    """A worker in a process of its own, while the block runs."""

    def __enter__(self) -> Self:
        self._log = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *WORKER.split(), "-q", "default,images,web"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for us; the worker is told by us.
            start_new_session=True,
        )
        return self

    def __exit__(self, *exc: object) -> None:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if not self.alive:
                return
            self._process.send_signal(number)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                continue

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def said(self) -> str:
        self._log.seek(0)
        return self._log.read()
