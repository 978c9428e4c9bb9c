"""OpenTelemetry in the worker's own process: spans and metrics of claims and of written ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from tests.support.deadline import until
from tests.support.sites import MakeSite, engine, fresh_site
from tests.support.worker import WorkerProcess

__all__ = ["MakeSite", "engine", "fresh_site"]

APP = """
import os
from holdfast import Holdfast
from holdfast.contrib.otel import instrument
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

app = Holdfast(os.environ["HOLDFAST_URL"])
instrument(app)
trace.set_tracer_provider(TracerProvider())

@app.task("add")
def add(a: int) -> int:
    return 1 // a
"""
TELEMETRY = """
import json
from holdfast.contrib.otel_worker import watch
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

reader = InMemoryMetricReader()

class ToFile(SpanExporter):
    def export(self, spans):
        with open("spans.jsonl", "a") as file:
            for span in spans:
                file.write(json.dumps(json.loads(span.to_json())) + "\\n")
        return SpanExportResult.SUCCESS

    def shutdown(self):
        with open("metrics.json", "w") as file:
            file.write(reader.get_metrics_data().to_json())

def setup():
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(ToFile(), schedule_delay_millis=600_000))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
    return watch()
"""


def test_claims_and_written_ends_are_traced(tmp_path: Path, fresh_site: MakeSite) -> None:
    url = fresh_site("tests.e2e.programs.outcomes").url
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "telemetry.py").write_text(TELEMETRY)
    send = "import app; print(*[app.add.send(n).id for n in (0, 1, 2)]); app.app.close()"
    environment = {"HOLDFAST_URL": url}
    with (
        WorkerProcess(
            tmp_path, "app:app", "-c", "1", "--watcher", "telemetry:setup", environment=environment
        ) as worker,
        Holdfast(url) as app,
    ):
        worker.ready()
        sent = _python(tmp_path, send, environment).split()
        until(
            lambda: [app.handle(id).status().is_terminal for id in sent] == [True] * 3,
            what="the tasks to end",
        )
        assert worker.stop() == 0
        senders = {
            task.trace_context.split("-")[1]
            for task in app.control.tasks.list().tasks
            if task.trace_context
        }
    found = [json.loads(line) for line in (tmp_path / "spans.jsonl").read_text().splitlines()]
    assert {span["name"] for span in found} == {"receive default", "settle default"}
    for name in ("receive default", "settle default"):
        spans = [span for span in found if span["name"] == name]
        assert {span["kind"] for span in spans} == {"SpanKind.CLIENT"}
        assert sum(_number(span) for span in spans) == 3
        links = {
            link["context"]["trace_id"].removeprefix("0x")
            for span in spans
            for link in span["links"]
        }
        assert links == senders
        assert len(links) == 3
        assert {span["parent_id"] for span in spans} == {None}
        assert {span["attributes"]["messaging.system"] for span in spans} == {"holdfast"}
        assert all(span["start_time"] <= span["end_time"] for span in spans)
    settled = [span["attributes"] for span in found if span["name"] == "settle default"]
    assert sum(each.get("holdfast.outcomes.completed", 0) for each in settled) == 2
    assert sum(each.get("holdfast.outcomes.failed", 0) for each in settled) == 1
    points = _points(json.loads((tmp_path / "metrics.json").read_text()))
    durations = points["messaging.client.operation.duration"]
    assert {each["attributes"]["messaging.operation.name"] for each in durations} == {
        "receive",
        "settle",
    }
    assert all(each["count"] >= 1 for each in durations)


def test_without_a_watcher_the_worker_imports_nothing_of_it(tmp_path: Path) -> None:
    said = _python(
        tmp_path,
        "import sys, holdfast.runtime.supervisor.supervisor\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])",
        {},
    )
    assert said.strip() == "[]"


def test_a_watcher_that_cannot_be_had_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from holdfast import Holdfast\napp = Holdfast('sqlite:///tasks.db')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", "worker", "app:app", "--watcher", "telemetry:setup"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "watcher='telemetry:setup' is not usable" in ended.stderr
    assert "No module named 'telemetry'" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("what", ["otel", "otel_worker"])
def test_without_the_api(what: str, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import holdfast\n"
        f"try:\n    import holdfast.contrib.{what}\n"
        "except holdfast.ConfigError as error:\n    print(error)"
    )
    assert "pip install 'holdfast[otel]'" in _python(tmp_path, code, {})


def _number(span: dict[str, Any]) -> int:
    return int(span["attributes"].get("messaging.batch.message_count", 1))


def _points(data: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {
        metric["name"]: metric["data"]["data_points"]
        for resource in data["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
    }


def _python(place: Path, code: str, environment: dict[str, str]) -> str:
    import os

    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=place,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
