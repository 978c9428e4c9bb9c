"""A small store: one task in each of the common states, and a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast import Holdfast, TaskHandle, Unique, Workflow, WorkflowHandle
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Failed
from holdfast.core.result import TaskError
from holdfast.store.verbs import workers
from tests.client.conftest import Hands

WORKER = "worker-1"
SCHEDULE = "nightly"
HOSTILE = '"><script>document.title="owned"</script><img src=x onerror=alert(1)>\u202egnp'


@dataclass(frozen=True)
class Zoo:
    """What there is."""

    done: TaskHandle[Any]
    failed: TaskHandle[Any]
    running: TaskHandle[Any]
    cancelled: TaskHandle[Any]
    pending: TaskHandle[Any]
    scheduled: TaskHandle[Any]
    workflow: WorkflowHandle[Any]

    @property
    def all(self) -> list[TaskHandle[Any]]:
        return [
            self.done, self.failed, self.running, self.cancelled, self.pending, self.scheduled,
        ]  # fmt: skip


def fill(app: Holdfast, hands: Hands) -> Zoo:
    """Make it; the app's store has nothing in queue `default` yet."""
    done = app.options(tags=["nightly"]).send("shop.done", {"password": "hunter2"}, width=640)
    hands.complete(hands.take(done), '{"sent": true}')
    failed = app.options(unique=Unique("order:7")).send("shop.fail", [1, 2])
    error = TaskError("NO_ROOM", f"no space left {HOSTILE}", data={"path": HOSTILE})
    hands.end(hands.take(failed), Failed(error), Policy())
    running = app.send("shop.run", HOSTILE)
    hands.take(running)
    cancelled = app.send("shop.cancelled")
    cancelled.cancel()
    pending = app.options(priority=7, concurrency_key=HOSTILE).send("shop.pending", HOSTILE)
    scheduled = app.options(delay=3600, queue="later").send("shop.later")
    wf = Workflow("month", on_failure="pause")
    first = wf.step(app.named("wf.first"), HOSTILE)
    second = wf.options(name="second").step(app.named("wf.second"), first.result)
    wf.options(after=[first, second], name="third").step(app.named("wf.third"))
    workflow = wf.send()
    app.control.schedules.add(
        SCHEDULE, "30 2 * * *", app.named("shop.done").call(1), tz="Asia/Tokyo"
    )
    hands.run(
        workers.register(
            WORKER,
            hostname="host-1",
            pid=7,
            version="1",
            lease_us=30_000_000,
            queues='["default"]',
            known='["shop.run@1", "shop.done@1"]',
            settings='{"concurrency": 4}',
        )
    )
    return Zoo(done, failed, running, cancelled, pending, scheduled, workflow)
