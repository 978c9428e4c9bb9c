"""OpenTelemetry: spans and metrics of sends and runs.

Owns their names and attributes, which are those of the messaging conventions. It uses the API alone
(extra `otel`): where spans go is a matter of the program's SDK, in each process: yours and the
children of the worker, which run the tasks. A watcher that fails must not harm what it watches, so
whatever the SDK raises is logged once and dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar
from uuid import UUID

from holdfast.core.errors import ConfigError
from holdfast.core.result import TaskError
from holdfast.core.tracing import RunFacts, carried, learn_current, to_carry

try:
    from opentelemetry import context as otel_context
    from opentelemetry import metrics as otel_metrics
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
except ImportError as missing:
    raise ConfigError(
        "holdfast.contrib.otel needs the OpenTelemetry API: pip install 'holdfast[otel]'"
    ) from missing

if TYPE_CHECKING:
    from holdfast.app import Holdfast

__all__ = ["SCOPE", "OtelTracing", "attributes_of", "instrument"]

log = logging.getLogger("holdfast.otel")
T = TypeVar("T")
Mode = Literal["link", "parent"]

SCOPE: Final = "holdfast"
_FLUSH_MS: Final = 2_000


def instrument(
    app: Holdfast, *, mode: Mode = "link", metrics: bool = False, flush: bool = False
) -> None:
    """Watch the sends of this app in this process, and its runs in workers that import it.

    `mode`: a run is a trace of its own that links to its send (`"link"`), or a child of it
    (`"parent"`). `metrics`: record the messaging metrics as well. `flush`: have the SDK send its
    spans at the end of each run, for tasks whose processes may be killed.
    """
    if mode not in ("link", "parent"):
        raise ConfigError(f'mode={mode!r} is not usable: give "link" or "parent"', option="mode")
    learn_current(_current_trace_id)
    app.trace_with(OtelTracing(mode, metrics=metrics, flush=flush))


class OtelTracing:
    """What `instrument` puts around sends and runs."""

    def __init__(self, mode: Mode, *, metrics: bool, flush: bool) -> None:
        self.mode: Mode = mode
        self.flushes = flush
        self._with_metrics = metrics
        self._instruments: dict[str, Any] = {}

    def send(self, queue: str, task: str, number: int) -> SendSpan:
        """Around a send."""
        return SendSpan(self, queue, task, number)

    def process(self, run: RunFacts) -> RunSpan:
        """Around the code of a run."""
        return RunSpan(self, run)

    def count(self, name: str, number: int, attributes: dict[str, Any]) -> None:
        """Add to a counter, if there are metrics."""
        if self._with_metrics:
            self._instrument("counter", name, "{message}").add(number, attributes)

    def measure(self, name: str, seconds: float, attributes: dict[str, Any]) -> None:
        """Add to a histogram, if there are metrics."""
        if self._with_metrics:
            self._instrument("histogram", name, "s").record(seconds, attributes)

    def _instrument(self, kind: str, name: str, unit: str) -> Any:
        found = self._instruments.get(name)
        if found is None:
            meter = otel_metrics.get_meter(SCOPE)
            make = meter.create_counter if kind == "counter" else meter.create_histogram
            found = self._instruments[name] = make(name, unit=unit)
        return found


class _Watched:
    """A span around a block, which is the current one inside it."""

    def __init__(self, tracing: OtelTracing) -> None:
        self._tracing = tracing
        self._span: Span | None = None
        self._token: Any = None
        self._began = 0.0

    def _enter(self, begin: Callable[[], tuple[Span, Context | None]]) -> None:
        self._began = perf_counter()
        begun = _safely(begin)
        if begun is not None:
            self._span, outside = begun
            inside = trace.set_span_in_context(self._span, outside)
            self._token = _safely(lambda: otel_context.attach(inside))

    def _leave(self) -> None:
        token, span = self._token, self._span
        if token is not None:
            _safely(lambda: otel_context.detach(token))
        if span is not None:
            _safely(span.end)

    @property
    def _took(self) -> float:
        return perf_counter() - self._began

    def _failed(self, kind: str, message: str | None) -> None:
        span = self._span
        if span is not None:
            span.set_attribute("error.type", kind)
            span.set_status(Status(StatusCode.ERROR, message))


class SendSpan(_Watched):
    """`send {queue}`, PRODUCER."""

    def __init__(self, tracing: OtelTracing, queue: str, task: str, number: int) -> None:
        super().__init__(tracing)
        self.context: str | None = None
        """What the rows carry."""
        self._queue = queue
        self._number = number
        self._attributes = {**attributes_of("send", queue), "holdfast.task.name": task}

    def __enter__(self) -> Self:
        attributes = dict(self._attributes)
        if self._number != 1:
            attributes["messaging.batch.message_count"] = self._number
        tracer = trace.get_tracer(SCOPE)
        self._enter(
            lambda: (
                tracer.start_span(
                    f"send {self._queue}", kind=SpanKind.PRODUCER, attributes=attributes
                ),
                None,
            )
        )
        self.context = _safely(_injected)
        return self

    def sent(self, ids: Sequence[bytes]) -> None:
        """These tasks are stored."""
        if self._span is not None and len(ids) == 1:
            self._span.set_attribute("messaging.message.id", str(UUID(bytes=ids[0])))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        attributes = dict(self._attributes)
        if kind is not None:
            attributes["error.type"] = kind.__qualname__
            self._failed(kind.__qualname__, None)
        self._leave()
        _safely(
            lambda: self._tracing.count("messaging.client.sent.messages", self._number, attributes)
        )
        _safely(
            lambda: self._tracing.measure(
                "messaging.client.operation.duration", self._took, attributes
            )
        )


class RunSpan(_Watched):
    """`process {queue}`, CONSUMER."""

    def __init__(self, tracing: OtelTracing, run: RunFacts) -> None:
        super().__init__(tracing)
        self._run = run
        self._attributes = {
            **attributes_of("process", run.queue),
            "holdfast.task.name": run.task,
        }
        self._error: str | None = None

    def __enter__(self) -> Self:
        self._enter(self._begin)
        return self

    def _begin(self) -> tuple[Span, Context]:
        run = self._run
        attributes: dict[str, Any] = {
            **self._attributes,
            "messaging.message.id": str(UUID(bytes=run.id)),
            "holdfast.task.version": run.version,
            "holdfast.task.attempt": run.attempt,
        }
        if run.workflow_id is not None:
            attributes["messaging.message.conversation_id"] = str(UUID(bytes=run.workflow_id))
        sender = propagate.extract(carried(run.trace_context))
        origin = trace.get_current_span(sender).get_span_context()
        if self._tracing.mode == "link":
            # A trace of its own; what the sender has sent along as baggage is kept.
            sender = trace.set_span_in_context(trace.INVALID_SPAN, sender)
        span = trace.get_tracer(SCOPE).start_span(
            f"process {run.queue}",
            context=sender,
            kind=SpanKind.CONSUMER,
            links=[Link(origin)] if origin.is_valid else [],
            attributes=attributes,
        )
        return span, sender

    def ended(self, outcome: str, error: TaskError | None) -> None:
        """The code has ended so."""
        span = self._span
        if span is None:
            return
        span.set_attribute("holdfast.outcome", outcome)
        if error is None:
            return
        self._error = error.exception or str(error.error_code)
        self._failed(self._error, error.message)
        if error.exception is not None:
            # Not `record_exception`: that would show secrets among the arguments.
            span.add_event(
                "exception",
                {
                    "exception.type": error.exception,
                    "exception.message": error.message,
                    "exception.stacktrace": error.traceback or "",
                },
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            # It was ended from outside: for its timeout, by a cancel.
            self._error = str(getattr(error, "why", kind.__qualname__))
            self._failed(self._error, "the worker has ended the code")
        self._leave()
        attributes = dict(self._attributes)
        if self._error is not None:
            attributes["error.type"] = self._error
        tracing, took = self._tracing, self._took
        _safely(lambda: tracing.count("messaging.client.consumed.messages", 1, attributes))
        _safely(lambda: tracing.measure("messaging.process.duration", took, attributes))
        if tracing.flushes:
            _safely(_flush)


def attributes_of(operation: str, queue: str | None) -> dict[str, Any]:
    """What spans and metrics of an operation have in common; a queue, if there is one of it."""
    destination = {} if queue is None else {"messaging.destination.name": queue}
    return {
        "messaging.system": "holdfast",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        **destination,
    }


def _injected() -> str | None:
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return to_carry(carrier)


def _current_trace_id() -> str | None:
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else None


def _flush() -> None:
    # Of the SDK; the API has no word for it.
    for provider in (trace.get_tracer_provider(), otel_metrics.get_meter_provider()):
        flush = getattr(provider, "force_flush", None)
        if flush is not None:
            flush(_FLUSH_MS)


_complained: set[str] = set()


def _safely(step: Callable[[], T]) -> T | None:
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - a watcher must not harm what it watches
        told = f"{type(error).__name__}: {error}"
        if told not in _complained and len(_complained) < 100:
            _complained.add(told)
            log.warning("OpenTelemetry failed, and the task goes on: %s", told)
        return None
