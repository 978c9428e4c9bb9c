"""How one worker works: one frozen value, checked once.

Owns the names, defaults and limits of a worker's own settings, and the reading of `-q`.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from holdfast.core.errors import ConfigError
from holdfast.core.options import checks
from holdfast.core.options.retention import Retention
from holdfast.store.verbs.claims import MAX_TASKS_PER_LEASE

MAX_BATCH = MAX_TASKS_PER_LEASE
"""Tasks of one claim at the most."""


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """One queue a worker serves."""

    name: str
    weight: int | None = None
    """Its share of the claims when several queues have work; None: strictly in order."""
    cap: int | None = None
    """How many of its tasks this worker has in hand at the most."""


def default_processes() -> int:
    """One child per processor that this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return max(1, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Every setting of one worker."""

    processes: int = field(default_factory=default_processes)
    threads: int = 8
    coroutines: int = 200
    queues: tuple[QueueChoice, ...] = ()
    """Empty: every queue that a known task names."""
    lease: float = 30.0
    grace: float = 30.0
    kill_grace: float = 5.0
    outage_grace: float = 600.0
    poll: float = 1.0
    max_tasks_per_child: int | None = None
    max_memory_per_child_mb: int | None = None
    drop_unknown_after: float | None = None
    """Seconds after which a task is dropped that no worker has known since; None: never."""
    snapshot_interval: float = 30.0
    retention: Retention = field(default_factory=Retention)
    burst: bool = False
    """Stop when there is nothing left to do."""

    def __post_init__(self) -> None:
        for name in ("processes", "threads", "coroutines"):
            checks.at_least(1, getattr(self, name), name)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not value >= least:
                raise ConfigError(
                    f"{name}={value!r} is too small: give at least {least:g} seconds", option=name
                )

        self._check_drop_unknown_after()

    def _check_drop_unknown_after(self) -> None:
        after, name = self.drop_unknown_after, "drop_unknown_after"
        if after is None:
            return
        if not 0 < after < math.inf:
            raise ConfigError(
                f"{name}={after!r} is not usable: give a number of seconds above 0, or leave it "
                "out to keep such tasks",
                option=name,
            )
        remembered = self.retention.keep_us("worker_states")
        if remembered is not None and after * 1_000_000 > remembered:
            # A worker that is forgotten could not speak for the tasks it knew.
            raise ConfigError(
                f"{name}={after:g} is too long: workers are remembered for "
                f"{remembered / 1_000_000:g} seconds; give less, or a longer "
                "Retention(worker_states)",
                option=name,
            )

    @property
    def lease_us(self) -> int:
        return round(self.lease * 1_000_000)

    @property
    def gap(self) -> float:
        """For how long a store may go without maintenance before recovery has to wait."""
        return min(5.0, self.lease / 3)


_LEAST = {
    "lease": 1.0,
    "grace": 0.0,
    "kill_grace": 0.0,
    "outage_grace": 0.0,
    "poll": 0.01,
    "snapshot_interval": 0.1,
}


def parse_queues(text: str) -> tuple[QueueChoice, ...]:
    """Read `a,b` (in this order), `high:5,low:1` (by weight), `images=4` (at most four)."""
    found: list[QueueChoice] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        rest, _, cap = part.partition("=")
        name, _, weight = rest.rpartition(":") if ":" in rest else (rest, "", "")
        if ":" in rest and not weight.isdigit():
            # A queue's name may itself have a colon in it.
            name, weight = rest, ""
        found.append(
            QueueChoice(
                checks.queue_name(name),
                _positive(weight, part, "weight") if weight else None,
                _positive(cap, part, "limit") if cap else None,
            )
        )
    if not found:
        raise ConfigError(f"-q {text!r} names no queue: give for example -q high,low")
    names = [choice.name for choice in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"-q {text!r} names the queue {name!r} twice")
    if any(c.weight for c in found) and not all(c.weight for c in found):
        raise ConfigError(
            f"-q {text!r} gives weights to some queues only: give one to all, or none"
        )
    return tuple(found)


def _positive(text: str, part: str, what: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"-q {part!r}: the {what} {text!r} is not a positive whole number")
    return int(text)
