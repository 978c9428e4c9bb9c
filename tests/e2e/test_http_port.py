"""A worker with a port of its own: health and metrics, also while its database is away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.deadline import until
from tests.support.postgres import PostgresServer
from tests.support.site import Site
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess

pytestmark = pytest.mark.mostly("postgresql")

PROGRAM = "tests.e2e.programs.outcomes"


def address(worker: WorkerProcess) -> str:
    found = re.search(r"health and metrics at (http://\S+)", worker.said)
    assert found is not None
    return found[1]


def series(at: str) -> dict[str, dict[tuple[str, ...], float]]:
    answer = httpx.get(f"{at}/metrics")
    assert answer.status_code == 200
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_health_and_metrics(make_site: MakeSite) -> None:
    site = make_site(PROGRAM)
    worker = site.worker("-c", "2", "--http", "127.0.0.1:0").ready()
    at = address(worker)
    until(lambda: httpx.get(f"{at}/health/ready").status_code == 200)
    assert httpx.get(f"{at}/health/live").json() == {"status": "live"}
    site.send("value", "a secret argument").get(20)
    site.send("boom").wait(20)
    # Those that end without a run are counted, too.
    site.app.control.tasks.cancel(site.options(delay=3600).send("value", 1).id)
    site.options(queue="nobody", good_for=0.2).send("value", 2)
    outcomes = (
        ("default", "value", "completed"),
        ("default", "boom", "failed"),
        ("default", "value", "cancelled"),
        ("nobody", "value", "expired"),
    )

    def counted() -> bool:
        finished = series(at).get("holdfast_tasks_finished_total", {})
        return [finished.get(outcome) for outcome in outcomes] == [1, 1, 1, 1]

    until(counted, within=30, what="the ends to be counted")
    assert "secret" not in httpx.get(f"{at}/metrics").text
    found = series(at)
    assert found["holdfast_workers"][("alive",)] == 1
    assert found["holdfast_worker_children"][("ready",)] >= 2
    assert found["holdfast_worker_ready"] == {(): 1}
    assert found["holdfast_task_duration_seconds_count"][("default", "value")] == 1
    # The same numbers from a program, without a worker's port.
    text = site.app.control.stats.prometheus()
    assert (
        'holdfast_tasks_finished_total{queue="default",task="value",outcome="completed"} 1' in text
    )
    # Another one on the same port is refused before it runs anything.
    second = site.worker("-c", "1", "--http", at.removeprefix("http://"))
    assert second.wait() == 2
    assert "give an address of this machine and a port that is free" in second.said
    assert "Traceback" not in second.said
    assert worker.stop() == 0
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"{at}/health/live")


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server of one's own, to be harmed."""
    with PostgresServer() as server:
        yield server


def test_while_the_database_is_away(server: PostgresServer, tmp_path: Path) -> None:
    with Site(PROGRAM, server.create_database(), tmp_path) as site:
        worker = site.worker("-c", "1", "--http", "0").ready()
        at = address(worker)
        assert at.startswith("http://127.0.0.1:")
        until(lambda: httpx.get(f"{at}/health/ready").status_code == 200)
        server.stop("immediate")
        until(lambda: httpx.get(f"{at}/health/ready").status_code == 503)
        assert httpx.get(f"{at}/health/ready").json()["status"] == "not ready"
        assert httpx.get(f"{at}/health/live").status_code == 200
        found = series(at)
        assert found["holdfast_worker_store_up"] == {(): 0}
        assert found["holdfast_worker_ready"] == {(): 0}
        assert "holdfast_workers" not in found
        server.start()
        until(lambda: httpx.get(f"{at}/health/ready").status_code == 200, within=30)
        until(lambda: series(at)["holdfast_worker_store_up"] == {(): 1}, within=30)
