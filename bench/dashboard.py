"""What an open dashboard costs: no-op tasks drained while ten clients poll its pages.

A million tasks are stored. The queue is filled, drained by a worker of two processes, and filled
and drained again beside `holdfast web` and ten clients, in turn. Each client does what an open page
does: it asks again every two seconds, with the tag of what it has; and after each answer it goes
on to the next page, so that every page is asked for by all of them. Clients, server and worker
share the machine, which is harder on the worker than a dashboard on a machine of its own.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import monotonic, sleep, time_ns
from typing import Self

from bench.figure import Figure, Sizes, at_least
from bench.peers.mark import Marks
from bench.place import Place, Places, connect_postgres, connect_sqlite
from bench.worker.field import OURS, fill
from bench.worker.measured_worker import ROOT, MeasuredWorker
from holdfast import Holdfast
from holdfast.store.settings import Engine

_CLIENTS = 10
_EVERY_S = 2.0
_PATIENCE_S = 120.0
_PAGES = (
    "/", "/tasks", "/tasks?status=failed", "/tasks?queue=default", "/queues", "/queues/default",
    "/workers", "/dead-letters", "/schedules", "/schedules/nightly", "/workflows", "/audit",
    "/send",
    # Which fits nothing, so that as many tasks are looked at as ever are.
    "/tasks?text=nowhere",
)  # fmt: skip

_COLUMNS = """
    id, task_name, version, queue_name, priority, status, ready, args, kwargs, enqueue_sha,
    sent_at, created_at, updated_at, enqueued_at, attempt, started_at, first_started_at,
    finished_at, completed_at, failed_at, result, error_code, failed_reason, dead
"""
_ENDED = ("COMPLETED", "FAILED")
# With ids as Holdfast makes them, a millisecond apart; one of fifty has failed for good.
_POSTGRES = f"""
INSERT INTO holdfast_tasks ({_COLUMNS})
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008000'
        || lpad(to_hex(n), 12, '0'))::uuid,
    'shop.done', 1, 'default', 50, CASE WHEN died THEN 'FAILED' ELSE 'COMPLETED' END, false,
    '["photo.png",640]', '{{}}', 'sha', at, at, at, at, 1, at, at, at,
    CASE WHEN NOT died THEN at END, CASE WHEN died THEN at END,
    CASE WHEN NOT died THEN '{{"ok":true}}' END, CASE WHEN died THEN 'NO_SPACE' END,
    CASE WHEN died THEN 'no space left on device' END, CASE WHEN died THEN true END
FROM (
    SELECT n, n %% 50 = 0 AS died, now() - interval '1 hour' + n * interval '1 ms' AS at
    FROM generate_series(1, %(count)s::bigint) AS n
) AS row
"""
_SQLITE = f"""
WITH RECURSIVE row (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < :count)
INSERT INTO holdfast_tasks ({_COLUMNS})
SELECT printf('%08x-%04x-7000-8000-%012x', (:ms + n) >> 16, (:ms + n) & 65535, n),
    'shop.done', 1, 'default', 50, iif(died, 'FAILED', 'COMPLETED'), 0,
    '["photo.png",640]', '{{}}', 'sha', at, at, at, at, 1, at, at, at,
    iif(died, NULL, at), iif(died, at, NULL), iif(died, NULL, '{{"ok":true}}'),
    iif(died, 'NO_SPACE', NULL), iif(died, 'no space left on device', NULL), iif(died, 1, NULL)
FROM (SELECT n, n % 50 = 0 AS died, (:ms + n) * 1000 AS at FROM row)
"""


def on_sqlite(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Tasks a second beside an open dashboard, as a share of those without."""
    yield from _beside(places, "sqlite", sizes)


def on_postgresql(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """The same on PostgreSQL."""
    yield from _beside(places, "postgresql", sizes)


def _beside(places: Places, engine: Engine, sizes: Sizes) -> Iterator[Figure]:
    with places.of(engine) as place:
        pages = _store(place, sizes.large)
        marks = Marks(places.folder / f"dashboard_{engine}")
        drained = _Drained(place, marks, 5 * sizes.drained)
        with Dashboard(place, pages) as dashboard:
            dashboard.warm_up()
            before = dashboard.cpu_seconds
            shares, rates, polls = [], [], 0
            for _ in range(sizes.drains):
                alone = drained.rate()
                with dashboard.polled() as counted:
                    beside = drained.rate()
                polls += counted.answers
                shares.append(beside / alone)
                rates.append(alone)
            each_ms = (dashboard.cpu_seconds - before) / max(1, polls) * 1000
    yield at_least(
        "no-op tasks drained beside ten open pages",
        engine,
        median(shares),
        0.9,
        unit="x",
        detail=f"{median(rates):,.0f}/s alone; {polls} pages, {each_ms:.1f} ms of processor each",
    )


def _store(place: Place, count: int) -> tuple[str, ...]:
    """Tasks that ended in the last hour, and what a database knows after a while; its pages."""
    if place.engine == "postgresql":
        with connect_postgres(place) as connection:
            connection.execute(_POSTGRES.encode(), {"count": count})
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")
    else:
        raw = connect_sqlite(place)
        raw.execute(_SQLITE, {"count": count, "ms": time_ns() // 1_000_000 - 3_600_000})
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.close()
    with Holdfast(place.url) as app:
        app.control.schedules.add("nightly", "0 3 * * *", app.named("shop.done").call(1))
        ended = [app.control.tasks.list(status=s, limit=1).tasks[0].id for s in _ENDED]
    return (*_PAGES, *(f"/tasks/{id}" for id in ended))


class _Drained:
    """Fills and drains the queue again and again, with new numbers."""

    def __init__(self, place: Place, marks: Marks, count: int) -> None:
        self._place = place
        self._marks = marks
        self._count = count
        self._so_far = 0

    def rate(self) -> float:
        """Tasks a second, by the clock that tasks read."""
        first = self._so_far
        self._so_far += self._count
        fill(self._place, self._count, first=first)
        environment = {"HOLDFAST_URL": self._place.url}
        with MeasuredWorker(OURS, marks=self._marks, environment=environment) as worker:
            worker.wait_for(self._so_far, _PATIENCE_S)
        runs = sorted(run.at_ns for run in self._marks.read() if run.number >= first)
        return (len(runs) - 1) / max(runs[-1] - runs[0], 1) * 1e9


class Counted:
    """How many answers clients got."""

    def __init__(self) -> None:
        self.answers = 0
        self.stop = threading.Event()
        self.failed: list[str] = []


class Dashboard:
    """`holdfast web` in a process of its own; use it as a context manager."""

    def __init__(self, place: Place, pages: Sequence[str] = _PAGES) -> None:
        self._pages = pages
        self._port = _free_port()
        self._process = subprocess.Popen(
            (
                sys.executable, "-m", "holdfast", "web", "--url", place.url,
                "--port", str(self._port),
            ),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def __enter__(self) -> Self:
        deadline = monotonic() + _PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
                return self
            except OSError:
                if monotonic() > deadline or self._process.poll() is not None:
                    raise RuntimeError("`holdfast web` does not start") from None
                sleep(0.05)

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the server so far."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def warm_up(self) -> None:
        """Ask for every page once: templates are compiled, connections opened."""
        for page in self._pages:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
            connection.request("GET", page)
            connection.getresponse().read()
            connection.close()

    @contextmanager
    def polled(self) -> Iterator[Counted]:
        """Ten clients, for as long as a block takes."""
        counted = Counted()
        threads = [
            threading.Thread(target=self._poll, args=(place, counted)) for place in range(_CLIENTS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield counted
        finally:
            counted.stop.set()
            for thread in threads:
                thread.join()
        if counted.failed:
            raise RuntimeError(f"pages did not answer: {counted.failed[:3]}")

    def _poll(self, place: int, counted: Counted) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        tags: dict[str, str] = {}
        # Not all in the same moment.
        counted.stop.wait(place * _EVERY_S / _CLIENTS)
        turn = place
        while not counted.stop.is_set():
            page = self._pages[turn % len(self._pages)]
            turn += 1
            headers = {"X-Holdfast-Live": "1"}
            if page in tags:
                headers["If-None-Match"] = tags[page]
            try:
                connection.request("GET", page, headers=headers)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                counted.failed.append(f"{page}: {error}")
                connection.close()
                continue
            if answer.status in (200, 304):
                counted.answers += 1
                tags[page] = answer.headers.get("etag", "")
            else:
                counted.failed.append(f"{page}: {answer.status}")
            counted.stop.wait(_EVERY_S)
        connection.close()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
