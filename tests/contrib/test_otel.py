"""OpenTelemetry in a real worker: spans of sends and runs, in each kind of child."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, Workflow
from holdfast.core.errors import ConfigError, PayloadError
from tests.support.deadline import until
from tests.support.worker import WorkerProcess

APP = """
import json, os, time
from holdfast import Holdfast, Secret, Workflow, current_task
from holdfast.contrib.otel import instrument
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

app = Holdfast("sqlite:///tasks.db", kill_grace=1)
instrument(app, mode=os.environ.get("MODE", "link"), flush="FLUSH" in os.environ)

class ToFile(SpanExporter):
    def export(self, spans):
        with open("spans.jsonl", "a") as file:
            for span in spans:
                file.write(json.dumps(json.loads(span.to_json())) + "\\n")
        return SpanExportResult.SUCCESS

@app.hooks.child_started
def configure(event=None):
    provider = TracerProvider()
    # Long enough that only the end of the child sends anything.
    provider.add_span_processor(BatchSpanProcessor(ToFile(), schedule_delay_millis=600_000))
    trace.set_tracer_provider(provider)

def work(name):
    with trace.get_tracer("mine").start_as_current_span(f"inside {name}"):
        pass

@app.task("process")
def process(again: bool = True) -> None:
    work("process")
    if again:
        process.send(False)

@app.task("thread", executor="thread")
def thread() -> None:
    work("thread")

@app.task("coroutine")
async def coroutine() -> None:
    work("coroutine")

@app.task("boom")
def boom(secret: Secret[str]) -> None:
    raise ValueError(f"no {secret.reveal()}")

@app.task("slow", timeout=0.3)
def slow() -> None:
    time.sleep(60)
"""
SEND = """
import sys, app
from holdfast import Secret
app.configure()
def one(task, *args):
    task.send(*args)
for name in ("process", "thread", "coroutine", "slow"):
    one(getattr(app, name))
app.boom.send(Secret("hunter2-very-secret"))
app.thread.send_many([(), ()])
app.app.close()
"""


def write_app(place: Path) -> None:
    (place / "app.py").write_text(APP)
    (place / "send.py").write_text(SEND)


def spans(place: Path) -> list[dict[str, Any]]:
    path = place / "spans.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def send(place: Path, mode: str) -> None:
    import os

    subprocess.run(
        [sys.executable, "send.py"], cwd=place, env={**os.environ, "MODE": mode}, check=True
    )


def named(found: list[dict[str, Any]], name: str, task: str) -> list[dict[str, Any]]:
    return [
        each
        for each in found
        if each["name"] == name and each["attributes"]["holdfast.task.name"] == task
    ]


def all_ended(app: Holdfast, number: int) -> bool:
    tasks = app.control.tasks.list().tasks
    return len(tasks) == number and all(task.status.is_terminal for task in tasks)


@pytest.mark.parametrize("mode", ["link", "parent"])
def test_spans(tmp_path: Path, mode: str) -> None:
    write_app(tmp_path)
    send(tmp_path, mode)
    sent = spans(tmp_path)
    with (
        WorkerProcess(tmp_path, "app:app", "-c", "1", environment={"MODE": mode}) as worker,
        Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app,
    ):
        worker.ready()
        until(lambda: all_ended(app, 8), what="the tasks to end")
        contexts = {task.name: task.trace_context for task in app.control.tasks.list().tasks}
        assert worker.stop() == 0
    found = spans(tmp_path)
    for name in ("process", "thread", "coroutine", "boom", "slow"):
        producer = named(sent, "send default", name)[0]
        assert producer["kind"] == "SpanKind.PRODUCER"
        assert producer["attributes"]["messaging.system"] == "holdfast"
        trace_id = producer["context"]["trace_id"]
        consumers = [
            each
            for each in named(found, "process default", name)
            if trace_id in (each["context"]["trace_id"], *_linked(each))
        ]
        (consumer,) = consumers if mode == "link" else consumers[:1]
        assert consumer["kind"] == "SpanKind.CONSUMER"
        assert _linked(consumer) == [trace_id]
        attributes = consumer["attributes"]
        assert attributes["messaging.destination.name"] == "default"
        # More than one if it was behind the task that is ended for its timeout.
        assert attributes["holdfast.task.attempt"] >= 1
        if mode == "parent":
            assert consumer["parent_id"] == producer["context"]["span_id"]
        else:
            assert consumer["parent_id"] is None
            assert consumer["context"]["trace_id"] != trace_id
            message = producer["attributes"]["messaging.message.id"]
            assert attributes["messaging.message.id"] == message
    for name in ("process", "thread", "coroutine"):
        ids = {each["context"]["span_id"] for each in named(found, "process default", name)}
        inside = [each for each in found if each["name"] == f"inside {name}"]
        assert inside
        assert all(each["parent_id"] in ids for each in inside)
    # A send inside a task is a child of its run.
    (relayed,) = [each for each in named(found, "send default", "process") if each["parent_id"]]
    runs = [each["context"]["span_id"] for each in named(found, "process default", "process")]
    assert relayed["parent_id"] in runs
    assert str(contexts["thread"]).startswith("00-")
    (batch,) = [each for each in sent if "messaging.batch.message_count" in each["attributes"]]
    assert batch["attributes"]["messaging.batch.message_count"] == 2
    (boom,) = named(found, "process default", "boom")
    assert boom["status"] == {"status_code": "ERROR", "description": "no ***"}
    assert boom["attributes"]["error.type"] == "builtins.ValueError"
    assert "hunter2" not in (tmp_path / "spans.jsonl").read_text()
    (slow,) = named(found, "process default", "slow")
    assert slow["attributes"]["error.type"] == "timeout"


def _linked(span: dict[str, Any]) -> list[str]:
    return [link["context"]["trace_id"] for link in span["links"]]


def test_a_killed_child_has_told_of_its_runs(tmp_path: Path) -> None:
    write_app(tmp_path)
    with (
        WorkerProcess(tmp_path, "app:app", "-c", "1", environment={"FLUSH": "1"}) as worker,
        Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app,
    ):
        worker.ready()
        app.send("process", False).get(20)
        # No trace was sent along: the run has one of its own.
        until(lambda: named(spans(tmp_path), "process default", "process"))
        (span,) = named(spans(tmp_path), "process default", "process")
        assert (span["parent_id"], span["links"]) == (None, [])


def test_metrics_and_a_context_written_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry import metrics as api
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from holdfast.contrib.otel import instrument

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(api, "get_meter", provider.get_meter)
    with Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app:

        @app.task("add")
        def add(a: int) -> int:
            return 1 // a

        instrument(app, metrics=True)
        add.send(1)
        app.control.now()
        for hostile in (
            "{",
            '{"traceparent": 1}',
            "[]",
            "x" * 10_000,
            "00-zz-zz-00",
            '{"b": "\\u0000"}',
        ):
            handle = add.send(0)
            _write_context(tmp_path, handle.id, hostile)
        with pytest.raises(PayloadError, match="array"):
            add.send([])  # type: ignore[arg-type]
        app.worker().run_until_idle()
        statuses = [task.status.value for task in app.control.tasks.list().tasks]
        assert sorted(statuses) == ["COMPLETED"] + ["FAILED"] * 6
    data = json.loads(reader.get_metrics_data().to_json())  # type: ignore[union-attr]
    points = {
        metric["name"]: metric["data"]["data_points"]
        for resource in data["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
    }
    sent = points["messaging.client.sent.messages"]
    assert sorted((p["attributes"].get("error.type", ""), p["value"]) for p in sent) == [
        ("", 7),
        ("PayloadError", 1),
    ]
    consumed = points["messaging.client.consumed.messages"]
    assert sorted((p["attributes"].get("error.type", ""), p["value"]) for p in consumed) == [
        ("", 1),
        ("builtins.ZeroDivisionError", 6),
    ]
    assert sum(p["count"] for p in points["messaging.process.duration"]) == 7
    provider.shutdown()


def _write_context(place: Path, task: Any, text: str) -> None:
    code = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute("
        "'UPDATE holdfast_tasks SET trace_context = ? WHERE id = ?',"
        " (sys.argv[3], sys.argv[2])); assert db.total_changes; db.commit()"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(place / "tasks.db"), str(task), text], check=True
    )


def test_a_workflow_is_one_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from holdfast.contrib.otel import instrument

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    with Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app:
        instrument(app, mode="parent")

        @app.task("one")
        def one() -> int:
            return 1

        @app.task("two")
        def two(n: int) -> int:
            return n + 1

        @app.workflow("whole")
        def whole(wf: Workflow) -> int:
            return wf.step(two, wf.step(one).result).result

        handle = whole.send()
        again = asyncio.run(whole.asend())
        app.worker().run_until_idle()
        assert (handle.get(10), again.get(10)) == (2, 2)
    found = exporter.get_finished_spans()
    sends = {
        span.context.span_id: str((span.attributes or {})["messaging.message.id"])
        for span in found
        if span.name == "send default" and span.context is not None
    }
    assert sorted(sends.values()) == sorted([str(handle.id), str(again.id)])
    for span_id, workflow in sends.items():
        runs = [span for span in found if span.parent and span.parent.span_id == span_id]
        told = [run.attributes or {} for run in runs]
        assert sorted(str(each["holdfast.task.name"]) for each in told) == ["one", "two"]
        assert all(each["messaging.message.conversation_id"] == workflow for each in told)
    provider.shutdown()


def test_what_watches_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from opentelemetry import trace

    from holdfast.contrib.otel import instrument

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("the SDK is broken")

    with (
        pytest.MonkeyPatch.context() as patch,
        Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app,
    ):
        patch.setattr(trace, "get_tracer", lambda *_: Broken())

        @app.task("add")
        def add(a: int) -> int:
            return a

        instrument(app, metrics=True, flush=True)
        handle = add.send(1)
        app.worker().run_until_idle()
        assert handle.get(5) == 1
    assert "the SDK is broken" in caplog.text


def test_a_wrong_mode_and_a_missing_library() -> None:
    from holdfast.contrib.otel import instrument

    with pytest.raises(ConfigError, match="mode='x'"):
        instrument(Holdfast("sqlite:///:memory:"), mode="x")  # type: ignore[arg-type]
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import holdfast\n"
        "try:\n    import holdfast.contrib.otel\n"
        "except holdfast.ConfigError as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'holdfast[otel]'" in said.stdout
    code = (
        "import sys, holdfast.app, holdfast.runtime.worker; print('opentelemetry' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
