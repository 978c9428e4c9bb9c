"""OpenTelemetry: spans and metrics of a worker's claims and of the ends it writes.

Owns their names and attributes. They are made in the worker's own process, which never imports the
app: `holdfast worker --watcher holdfast.contrib.otel_worker:watch`, or a function of yours that
sets the SDK up there and returns `watch()`. Spans of sends and runs are `contrib/otel.py`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from holdfast.contrib.otel import SCOPE, attributes_of
from holdfast.core.errors import ConfigError
from holdfast.core.tracing import carried
from holdfast.core.watching import ClaimFacts, EndedFacts, Handled

try:
    from opentelemetry import metrics as otel_metrics
    from opentelemetry import propagate, trace
    from opentelemetry.trace import Link, SpanKind, Status, StatusCode
except ImportError as missing:
    raise ConfigError(
        "holdfast.contrib.otel_worker needs the OpenTelemetry API: pip install 'holdfast[otel]'"
    ) from missing

__all__ = ["OtelWorkerWatcher", "watch"]

_MOST_LINKS: Final = 128
"""As many as the SDK keeps of a span."""


def watch(*, metrics: bool = True) -> OtelWorkerWatcher:
    """The watcher, for `--watcher`; with `metrics`, how long claims and writes take, too."""
    return OtelWorkerWatcher(metrics=metrics)


class OtelWorkerWatcher:
    """`receive {queue}` for each claim that found something or failed, `settle` for each write."""

    def __init__(self, *, metrics: bool) -> None:
        self._duration: Any = None
        if metrics:
            self._duration = otel_metrics.get_meter(SCOPE).create_histogram(
                "messaging.client.operation.duration", unit="s"
            )

    def claimed(self, claim: ClaimFacts) -> None:
        """A claim was answered, or failed."""
        attributes = attributes_of("receive", claim.queue)
        if claim.tasks or claim.error is not None:
            # One that finds nothing is made every second or so, and tells nothing.
            _span(f"receive {claim.queue}", attributes, claim)
        self._measure(attributes, claim)

    def ended(self, write: EndedFacts) -> None:
        """Ends were written, or could not be."""
        queues = {task.queue for task in write.tasks}
        queue = queues.pop() if len(queues) == 1 else None
        attributes = attributes_of("settle", queue)
        outcomes = Counter(task.outcome for task in write.tasks if task.outcome)
        counts = {f"holdfast.outcomes.{name}": number for name, number in outcomes.items()}
        name = "settle" if queue is None else f"settle {queue}"
        _span(name, attributes | counts, write)
        self._measure(attributes, write)

    def _measure(self, attributes: dict[str, Any], facts: ClaimFacts | EndedFacts) -> None:
        if self._duration is not None:
            failed = {} if facts.error is None else {"error.type": facts.error}
            self._duration.record(facts.took_ns / 1e9, {**attributes, **failed})


def _span(name: str, attributes: dict[str, Any], facts: ClaimFacts | EndedFacts) -> None:
    tasks = facts.tasks
    about: dict[str, Any] = dict(attributes)
    if len(tasks) == 1:
        about["messaging.message.id"] = str(UUID(bytes=tasks[0].id))
        about["holdfast.task.name"] = tasks[0].task
    elif tasks:
        about["messaging.batch.message_count"] = len(tasks)
    span = trace.get_tracer(SCOPE).start_span(
        name,
        # A trace of its own, whatever is current in the program that embeds the worker.
        context=trace.set_span_in_context(trace.INVALID_SPAN),
        kind=SpanKind.CLIENT,
        links=_links(tasks),
        attributes=about,
        start_time=facts.began_ns,
    )
    if facts.error is not None:
        span.set_attribute("error.type", facts.error)
        span.set_status(Status(StatusCode.ERROR))
    span.end(facts.began_ns + facts.took_ns)


def _links(tasks: Sequence[Handled]) -> list[Link]:
    """To the sends of these tasks, as far as they are traced."""
    links: list[Link] = []
    for task in tasks:
        if task.trace_context and len(links) < _MOST_LINKS:
            sender = propagate.extract(carried(task.trace_context))
            origin = trace.get_current_span(sender).get_span_context()
            if origin.is_valid:
                links.append(Link(origin, {"messaging.message.id": str(UUID(bytes=task.id))}))
    return links
