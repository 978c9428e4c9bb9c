"""How long records of the past are kept.

Owns the `Retention` setting. What is actually deleted, and in which batches, is the
janitor's business.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta

from holdfast.core.moment import Span, span_us

__all__ = ["Retention"]


@dataclass(frozen=True, slots=True)
class Retention:
    """How long each kind of record is kept after it ended; None keeps it forever.

    Durations are seconds, timedeltas, or text such as "30d" or "12h". `dead` is for tasks
    in the dead letters, which are otherwise kept until someone looks at them; `logs` is for
    the captured output of attempts; `stats` for the counters per minute of each task, of which
    hours are kept for at least 92 days and days for at least 3 years; `audit` for what operators
    did.
    """

    tasks: Span | None = "30d"
    worker_states: Span | None = "7d"
    stats: Span | None = "7d"
    workflows: Span | None = "30d"
    logs: Span | None = "30d"
    audit: Span | None = "365d"
    dead: Span | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Span | None = getattr(self, field.name)
            if value is not None:
                us = span_us(value, option=f"Retention({field.name})")
                object.__setattr__(self, field.name, timedelta(microseconds=us))

    def keep_us(self, kind: str) -> int | None:
        """Microseconds that records of this kind are kept, or None for forever."""
        value: Span | None = getattr(self, kind)
        return None if value is None else span_us(value, option=kind)
