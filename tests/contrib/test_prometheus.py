"""The fleet in a registry of the Prometheus client."""

from __future__ import annotations

import subprocess
import sys

from prometheus_client import CollectorRegistry, Counter, generate_latest

from holdfast import Holdfast
from holdfast.contrib.prometheus import FleetCollector
from tests.client.conftest import app, hands, open_app, postgres, shared_database, sqlite, url

__all__ = ["app", "hands", "open_app", "postgres", "shared_database", "sqlite", "url"]


def test_it_stands_beside_metrics_of_ones_own(app: Holdfast) -> None:
    app.send("resize")
    registry = CollectorRegistry()
    Counter("pages", "Pages.", registry=registry).inc()
    registry.register(FleetCollector(app))
    text = generate_latest(registry).decode()
    assert "pages_total 1.0" in text
    assert 'holdfast_queue_tasks{queue="default",state="pending"} 1.0' in text
    assert "# TYPE holdfast_tasks_sent_total counter" in text
    assert text.count("# TYPE holdfast_task_duration_seconds histogram") == 1
    assert registry.get_sample_value("holdfast_leases") == 0


def test_registering_it_opens_no_database() -> None:
    with Holdfast("postgresql://127.0.0.1:1/none") as away:
        CollectorRegistry().register(FleetCollector(away))


def test_without_the_client() -> None:
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "import holdfast\n"
        "try:\n    import holdfast.contrib.prometheus\n"
        "except holdfast.ConfigError as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'holdfast[prometheus]'" in said.stdout
