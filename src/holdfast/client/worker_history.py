"""How a worker was over time: what its snapshots say, by steps, for charts.

Owns the range and its steps. A worker makes a snapshot every `snapshot_interval` seconds, and they
are kept for as long as `Retention(worker_states=…)` says: a chart of a week reads some ten thousand
rows of one worker, by their key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypedDict

from holdfast.core.errors import ConfigError
from holdfast.core.moment import Span, from_us, optional_us, span_us
from holdfast.core.options import checks
from holdfast.store.op import Op, Steps, reads
from holdfast.store.verbs.timing import next_due
from holdfast.store.verbs.workers import WorkerStep
from holdfast.store.verbs.workers import history as read_history

__all__ = ["HistoryOptions", "WorkerHistory", "WorkerPoint", "history"]

_SECOND_US: Final = 1_000_000
_MINUTE_US: Final = 60 * _SECOND_US
_DAY_US: Final = 1440 * _MINUTE_US
_STEPS_US: Final = (
    10 * _SECOND_US,
    30 * _SECOND_US,
    *(minutes * _MINUTE_US for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440)),
)
_POINTS: Final = 120
_MOST_POINTS: Final = 2000


class HistoryOptions(TypedDict, total=False):
    """What a history shows."""

    last: Span
    """How far back it goes; default: an hour."""
    until: datetime
    """Where it ends; default: now."""
    step: Span
    """Whole seconds. Default: about 120 steps."""


@dataclass(frozen=True, slots=True)
class WorkerPoint:
    """What a worker said of itself in one step of time."""

    at: datetime
    processes: int
    tasks_running: float
    """On average."""
    most_running: int
    most_claimed: int
    memory_usage_mb: float | None
    """The most."""
    cpu_percent: float | None
    """On average."""
    most_cpu_percent: float | None


@dataclass(frozen=True, slots=True)
class WorkerHistory:
    """How a worker was from `start` to `until`, in steps; one without a snapshot is absent."""

    start: datetime
    until: datetime
    step: timedelta
    points: Sequence[WorkerPoint]

    @property
    def times(self) -> Sequence[datetime]:
        """Where each step begins, also of those that are absent."""
        number = (self.until - self.start) // self.step
        return [self.start + self.step * place for place in range(number)]


def history(worker: str, options: HistoryOptions) -> Callable[[], Op[WorkerHistory]]:
    """The snapshots of a worker, put together."""
    unknown = options.keys() - HistoryOptions.__annotations__.keys()
    if unknown:
        names = ", ".join(sorted(HistoryOptions.__annotations__))
        raise ConfigError(f"a history has no option {min(unknown)!r}: use {names}")
    name = checks.stored_text(worker, "worker")
    last = span_us(options.get("last", 3600), option="last")
    given = options.get("step")
    step = _step_for(last) if given is None else span_us(given, option="step")
    if step < _SECOND_US or step % _SECOND_US:
        raise ConfigError(f"step={given!r} is not usable: give whole seconds", option="step")
    if last > _MOST_POINTS * step:
        raise ConfigError(
            f"last={options.get('last')!r} has more than {_MOST_POINTS:,} steps of {given!r}: "
            "give a longer step",
            option="step",
        )
    end = optional_us(options.get("until"), option="until")
    return partial(_history, name, max(last, step) // step * step, end, step)


@reads
def _history(worker: str, last_us: int, end: int | None, step_us: int) -> Steps[WorkerHistory]:
    now = (yield from next_due()).now + 1
    ended = now if end is None else max(0, min(end, now))
    until = -(-ended // step_us) * step_us
    start = max(0, until - last_us)
    found = yield from read_history(worker, start=start, until=until, step_us=step_us)
    step = timedelta(microseconds=step_us)
    return WorkerHistory(from_us(start), from_us(until), step, [_point(each) for each in found])


def _step_for(last_us: int) -> int:
    fitting = (step for step in _STEPS_US if last_us <= step * _POINTS)
    return next(fitting, -(-last_us // (_POINTS * _DAY_US)) * _DAY_US)


def _point(found: WorkerStep) -> WorkerPoint:
    return WorkerPoint(
        from_us(found.at),
        found.processes,
        found.running,
        found.most_running,
        found.most_claimed,
        found.memory_mb,
        found.cpu_percent,
        found.most_cpu_percent,
    )
