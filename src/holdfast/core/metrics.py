"""What Prometheus is told of a fleet: the names, the labels, and the text.

Owns every metric's name and meaning, and how many series there can be: a store counts so many tasks
by name (`MOST_NAMES`) and no more, names are cut, and names that are equal then are added up.
Nothing here reads anything: the numbers come from the store's counters (`store/verbs/fleet.py`).
No label holds a payload, an id, or an error's text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from holdfast.core.statistics import BOUNDS, COUNTERS, ENDINGS, RUN, WAIT, Counts
from holdfast.core.text import one_line

__all__ = [
    "CONTENT_TYPE",
    "MOST_NAMES",
    "MOST_QUEUES",
    "OTHER",
    "DepthNow",
    "Family",
    "FleetReading",
    "Sample",
    "families",
    "metrics_text",
]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MOST_NAMES: Final = 1000
"""How many pairs of a queue and a task are counted by name, in a whole store."""
MOST_QUEUES: Final = 1000
"""How many queues are told by name, the deepest first."""
OTHER: Final = "(other)"
"""Stands for every name beyond that."""
_LONGEST: Final = 120

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Labels: TypeAlias = tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """One number: what follows the family's name, its labels, and the value."""

    suffix: str
    labels: Labels
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """One metric, and all its series."""

    name: str
    kind: Kind
    text: str
    samples: Sequence[Sample]


class DepthNow(NamedTuple):
    """How deep a queue is now."""

    pending: int = 0
    scheduled: int = 0
    claimed: int = 0
    running: int = 0
    dead: int = 0
    oldest_us: int = 0
    paused: bool = False


@dataclass(frozen=True, slots=True)
class FleetReading:
    """What was read of a store, at one moment."""

    totals: Sequence[tuple[str, str, Counts]]
    """Of each queue and task: what was ever counted."""
    depths: Mapping[str, DepthNow]
    workers: Mapping[str, int]
    """How many workers are in each state."""
    leases: int
    lease_overdue_us: int
    """For how long the oldest lease has been over without having been recovered."""
    schedules: int
    schedule_lag_us: int
    """For how long the most overdue schedule has been due."""


def families(found: FleetReading) -> list[Family]:
    """Every metric of a fleet."""
    counts = _by_name(found.totals)
    depths = _shown_depths(found.depths)
    return [
        *_counters(counts),
        _histogram(
            "holdfast_task_duration_seconds",
            "How long the code of attempts took.",
            counts,
            RUN,
            "run_us",
        ),
        _histogram(
            "holdfast_task_queue_wait_seconds",
            "From when a task could have been claimed until it was given to a process.",
            counts,
            WAIT,
            "wait_us",
        ),
        *_queues(depths),
        _gauge(
            "holdfast_workers",
            "Workers that have not stopped: alive, or silent for longer than their lease.",
            (((("state", state),), number) for state, number in sorted(found.workers.items())),
        ),
        _single("holdfast_leases", "Claims that are held by workers.", found.leases),
        _single(
            "holdfast_lease_overdue_seconds",
            "For how long the oldest lease has been over and its tasks not taken over; 0: none is.",
            found.lease_overdue_us / 1e6,
        ),
        _single("holdfast_schedules", "Schedules that are not paused.", found.schedules),
        _single(
            "holdfast_schedule_lag_seconds",
            "For how long the most overdue schedule has been due; 0: none is.",
            found.schedule_lag_us / 1e6,
        ),
    ]


def metrics_text(found: Iterable[Family]) -> str:
    """The text format of Prometheus, version 0.0.4."""
    return "".join(_lines(found))


def _lines(found: Iterable[Family]) -> Iterator[str]:
    for family in found:
        yield f"# HELP {family.name} {family.text}\n# TYPE {family.name} {family.kind}\n"
        for sample in family.samples:
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
            braces = f"{{{labels}}}" if labels else ""
            yield f"{family.name}{sample.suffix}{braces} {_number(sample.value)}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _shown(name: str) -> str:
    return one_line(name, _LONGEST)


def _by_name(
    totals: Sequence[tuple[str, str, Counts]],
) -> dict[tuple[str, str], dict[str, int]]:
    found: dict[tuple[str, str], dict[str, int]] = {}
    for queue, task, counts in totals:
        key = (_shown(queue), _shown(task))
        sums = found.setdefault(key, dict.fromkeys(COUNTERS, 0))
        for name in COUNTERS:
            sums[name] += counts.get(name, 0)
    return found


def _shown_depths(depths: Mapping[str, DepthNow]) -> dict[str, DepthNow]:
    found: dict[str, list[DepthNow]] = defaultdict(list)
    deepest = sorted(depths.items(), key=lambda item: -item[1].pending)
    for place, (name, depth) in enumerate(deepest):
        found[_shown(name) if place < MOST_QUEUES else OTHER].append(depth)
    return {name: _sum(found[name]) for name in sorted(found)}


def _sum(found: Sequence[DepthNow]) -> DepthNow:
    if len(found) == 1:
        return found[0]
    return DepthNow(
        sum(each.pending for each in found),
        sum(each.scheduled for each in found),
        sum(each.claimed for each in found),
        sum(each.running for each in found),
        sum(each.dead for each in found),
        max(each.oldest_us for each in found),
        any(each.paused for each in found),
    )


def _pair(key: tuple[str, str]) -> Labels:
    return (("queue", key[0]), ("task", key[1]))


def _counters(counts: Mapping[tuple[str, str], Counts]) -> Iterator[Family]:
    yield Family(
        "holdfast_tasks_sent_total",
        "counter",
        "Tasks that were sent.",
        [Sample("", _pair(key), each["sent"]) for key, each in counts.items()],
    )
    yield Family(
        "holdfast_tasks_finished_total",
        "counter",
        "Tasks that ended, by the status they ended in.",
        [
            Sample("", (*_pair(key), ("outcome", outcome)), number)
            for key, each in counts.items()
            for outcome, number in _outcomes(each)
        ],
    )
    for name, column, text in (
        ("retried", "retried", "Attempts that failed and are made again."),
        ("snoozed", "snoozed", "Attempts that asked to be made later."),
        ("interrupted", "interrupted", "Attempts that a shutdown interrupted."),
    ):
        yield Family(
            f"holdfast_tasks_{name}_total",
            "counter",
            text,
            [Sample("", _pair(key), each[column]) for key, each in counts.items()],
        )


def _outcomes(counts: Counts) -> Iterator[tuple[str, int]]:
    """These two also before the first one ended so: a rate needs a number to begin with."""
    for ending in ENDINGS:
        # What code before these counters counted, which did not say how they ended.
        number = counts[ending] + (counts["other"] if ending == "cancelled" else 0)
        if number or ending in ("completed", "failed"):
            yield ending, number


def _histogram(
    name: str,
    text: str,
    counts: Mapping[tuple[str, str], Counts],
    columns: Sequence[str],
    total: str,
) -> Family:
    samples: list[Sample] = []
    for key, each in counts.items():
        number = 0
        for bound, column in zip((*map(str, BOUNDS), "+Inf"), columns, strict=True):
            number += each[column]
            samples.append(Sample("_bucket", (*_pair(key), ("le", bound)), number))
        samples.append(Sample("_sum", _pair(key), each[total] / 1e6))
        samples.append(Sample("_count", _pair(key), number))
    return Family(name, "histogram", text, samples)


def _queues(depths: Mapping[str, DepthNow]) -> Iterator[Family]:
    yield _gauge(
        "holdfast_queue_tasks",
        "Tasks of a queue by their state; counted up to 100,000.",
        (
            ((("queue", queue), ("state", state)), getattr(depth, state))
            for queue, depth in depths.items()
            for state in ("pending", "scheduled", "claimed", "running")
        ),
    )
    for name, text, value in (
        (
            "holdfast_queue_oldest_pending_seconds",
            "For how long the oldest task of a queue could have been claimed.",
            lambda depth: depth.oldest_us / 1e6,
        ),
        ("holdfast_queue_paused", "1 while a queue is paused.", lambda depth: int(depth.paused)),
        (
            "holdfast_dead_letters",
            "Tasks that failed for good and that nobody has looked at; counted up to 100,000.",
            lambda depth: depth.dead,
        ),
    ):
        yield _gauge(
            name, text, (((("queue", queue),), value(depth)) for queue, depth in depths.items())
        )


def _gauge(name: str, text: str, found: Iterable[tuple[Labels, float]]) -> Family:
    return Family(name, "gauge", text, [Sample("", labels, value) for labels, value in found])


def _single(name: str, text: str, value: float) -> Family:
    return _gauge(name, text, [((), value)])
