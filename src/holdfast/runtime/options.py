"""How one worker works: one frozen value, checked once.

Owns the names, defaults and limits of a worker's own settings, and their order of precedence: what
was given here (a flag, a keyword of `app.worker`), then the app's own setting, then the
environment, then the default.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypedDict

from holdfast.core.errors import ConfigError
from holdfast.core.options import checks, setting_text
from holdfast.core.options.retention import Retention
from holdfast.core.redaction import redact
from holdfast.runtime.http_address import HttpAddress, as_address, parse_http
from holdfast.runtime.queue_choice import QueueChoice, Queues, choose_queues, parse_queues
from holdfast.store.verbs.claims import MAX_TASKS_PER_LEASE

MAX_BATCH = MAX_TASKS_PER_LEASE
"""Tasks of one claim at the most."""


def default_concurrency() -> int:
    """One child per processor that this process may use."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return max(1, os.cpu_count() or 1)


class WorkerSettings(TypedDict, total=False):
    """The keywords of `app.worker(…)`; what each means is said in `WorkerOptions`."""

    concurrency: int
    threads: int
    coroutines: int
    queues: Queues
    lease: float
    grace: float
    kill_grace: float
    outage_grace: float
    poll: float
    max_tasks_per_child: int | None
    max_memory_per_child: int | None
    drop_unknown_after: float | None
    snapshot_interval: float
    retention: Retention
    http: str | HttpAddress
    listen_url: str | None
    watcher: str | None
    burst: bool


def _setting(read: Callable[[str], Any], default: Any = MISSING, *, least: float = 0) -> Any:
    metadata = {"read": read, "least": least}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Every setting of one worker.

    Each has a keyword of `app.worker`, an environment variable (`HOLDFAST_` and the name in
    capitals) and a flag of `holdfast worker`. Durations are seconds.
    """

    concurrency: int = _setting(setting_text.whole, default_concurrency, least=1)
    """Processes that run tasks of the kind `process`, one each."""
    threads: int = _setting(setting_text.whole, 8, least=1)
    """Tasks of the kind `thread` that run at a time."""
    coroutines: int = _setting(setting_text.whole, 200, least=1)
    """Tasks of the kind `async` that run at a time."""
    queues: tuple[QueueChoice, ...] = _setting(parse_queues, ())
    """Which queues to serve, and how; empty: every queue that a known task names."""
    lease: float = _setting(setting_text.seconds, 30.0, least=1)
    grace: float = _setting(setting_text.seconds, 30.0)
    kill_grace: float = _setting(setting_text.seconds, 5.0)
    outage_grace: float = _setting(setting_text.seconds, 600.0)
    poll: float = _setting(setting_text.seconds, 1.0, least=0.01)
    """How often it looks by itself, hints or not."""
    max_tasks_per_child: int | None = _setting(setting_text.whole, None, least=1)
    """Replace a child after so many tasks."""
    max_memory_per_child: int | None = _setting(setting_text.whole, None, least=1)
    """Replace a child that has grown over so many megabytes."""
    drop_unknown_after: float | None = _setting(setting_text.seconds_or_never, None)
    """Seconds after which a task is dropped that no worker has known since; None: never."""
    snapshot_interval: float = _setting(setting_text.seconds, 30.0, least=0.1)
    """How often it writes down how it does (`holdfast workers list`)."""
    retention: Retention = _setting(setting_text.retention, Retention)
    http: HttpAddress | None = _setting(parse_http, None)
    """Where it serves health and metrics; a port alone: of this machine."""
    listen_url: str | None = _setting(str, None)
    """PostgreSQL: a URL that leads to the server directly, to hear of tasks behind a pooler."""
    watcher: str | None = _setting(str, None)
    """MODULE:FUNCTION that makes a watcher of claims and of written ends, for traces."""
    burst: bool = _setting(setting_text.flag, False)
    """Stop when there is nothing left to do."""

    def __post_init__(self) -> None:
        if self.queues != ():
            object.__setattr__(self, "queues", choose_queues(self.queues))
        if self.http is not None:
            object.__setattr__(self, "http", as_address(self.http))
        checks.flag(self.burst, "burst")
        if not isinstance(self.retention, Retention):
            raise ConfigError(
                f"retention={self.retention!r} is not usable: give a Retention(…)",
                option="retention",
            )
        for name in _WHOLE:
            value = getattr(self, name)
            if value is not None or name not in _OPTIONAL:
                checks.at_least(1, value, name)
        for setting in fields(self):
            if setting.name in _SECONDS:
                self._check_seconds(setting.name, setting.metadata["least"])
        self._check_drop_unknown_after()

    def _check_seconds(self, name: str, least: float) -> None:
        value = getattr(self, name)
        most = math.inf if name in _WITHOUT_END else setting_text.LONGEST_INTERVAL
        if type(value) not in (int, float) or not least <= value <= most:
            allowed = f"{least:g} or more" if most == math.inf else f"from {least:g} to {most:,}"
            raise ConfigError(
                f"{name}={value!r} is not usable: give a number of seconds, {allowed}",
                option=name,
            )

    def __repr__(self) -> str:
        shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self)]
        return redact(f"WorkerOptions({', '.join(shown)})")

    @classmethod
    def load(
        cls,
        given: Mapping[str, Any],
        app: Mapping[str, Any],
        environment: Mapping[str, str],
    ) -> WorkerOptions:
        """The settings of one worker, from what was given, what its app says, and what is set.

        What is None was not given. What the app says, it may have from the environment itself.
        """
        known = {setting.name: setting for setting in fields(cls)}
        chosen = {name: value for name, value in given.items() if value is not None}
        for name in chosen:
            if name not in known:
                names = ", ".join(sorted(known))
                raise ConfigError(f"a worker has no setting {name!r}; it has {names}", option=name)
        if isinstance(chosen.get("retention"), str):
            chosen["retention"] = _read_retention(chosen["retention"])
        said = {name: value for name, value in app.items() if name in known}
        if isinstance(said.get("retention"), Mapping):
            said["retention"] = Retention(**said["retention"])
        found = setting_text.in_environment(known.values(), environment, {*said, *chosen})
        return cls(**{**found, **said, **chosen})

    def _check_drop_unknown_after(self) -> None:
        after, name = self.drop_unknown_after, "drop_unknown_after"
        if after is None:
            return
        if type(after) not in (int, float) or not 0 < after < math.inf:
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


def _read_retention(text: str) -> Retention:
    try:
        return setting_text.retention(text)
    except ValueError as wanted:
        raise ConfigError(
            f"--retention is {text!r}; it must be {wanted}", option="retention"
        ) from None


_WHOLE = ("concurrency", "threads", "coroutines", "max_tasks_per_child", "max_memory_per_child")
_OPTIONAL = ("max_tasks_per_child", "max_memory_per_child")
_WITHOUT_END = ("grace", "kill_grace", "outage_grace")
_SECONDS = (*_WITHOUT_END, "lease", "poll", "snapshot_interval")
