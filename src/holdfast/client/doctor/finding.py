"""What an examination finds: each thing with what it means and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from holdfast.core.moment import Span

__all__ = ["PATIENCE", "Diagnosis", "Finding", "Severity"]

PATIENCE: Final[Span] = "5m"
"""How long a transaction may be open, or a task wait, before it is reported."""


_MOST_ALIKE: Final = 20


class Severity(StrEnum):
    """How much a finding matters."""

    CRITICAL = "critical"
    """Tasks may be lost or run twice, or nothing goes on."""
    WARNING = "warning"
    """Something does not work, or soon will not."""
    NOTICE = "notice"
    """Worth knowing; it may be as it should be."""

    @property
    def rank(self) -> int:
        """0 is the gravest."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found."""

    code: str
    """Names the kind of finding, for programs: it never changes its meaning."""
    severity: Severity
    what: str
    """What was seen, with its figures."""
    meaning: str
    """Why it matters."""
    remedy: str
    """What to do about it."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """The figures, for programs."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The answer of an examination: the gravest findings first."""

    at: datetime
    database: str
    engine: str
    """`PostgreSQL 16.4`, `SQLite 3.51.3`."""
    examined: Sequence[str]
    """What was looked at, found in order or not."""
    findings: Sequence[Finding]

    @property
    def worst(self) -> Severity | None:
        """The gravest there is; None: nothing was found."""
        return self.findings[0].severity if self.findings else None


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The gravest first, otherwise as they were found; of a kind no more than can be read."""
    by_kind: dict[tuple[str, Severity], list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault((finding.code, finding.severity), []).append(finding)
    kept = [finding for alike in by_kind.values() for finding in _few(alike)]
    return tuple(sorted(kept, key=lambda finding: finding.severity.rank))


def _few(alike: Sequence[Finding]) -> Sequence[Finding]:
    if len(alike) <= _MOST_ALIKE:
        return alike
    left, first = len(alike) - _MOST_ALIKE, alike[0]
    more = replace(
        first,
        what=f"{left:,} more findings of this kind ({first.code})",
        remedy="mend those above, and look again",
        detail={"more": left},
    )
    return [*alike[:_MOST_ALIKE], more]
