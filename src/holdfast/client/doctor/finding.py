"""What an examination finds: each thing with what it means and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from holdfast.core.moment import Span

__all__ = ["PATIENCE", "Diagnosis", "Finding", "Severity"]

PATIENCE: Final[Span] = "5m"
"""How long a transaction may be open, or a task wait, before it is reported."""


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
    """The gravest first, otherwise as they were found."""
    return tuple(sorted(findings, key=lambda finding: finding.severity.rank))
