"""The record of what operators did: who, from where, what, to which tasks, and to how many.

Owns the rows of `audit`. An entry is written in the transaction of what it records. (The audit of
leases, `verbs/leases.py`, is something else.)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from holdfast.store.op import At, Statement, Steps, reads, writes


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action of an operator."""

    id: int
    at: int
    actor: str
    origin: str | None
    verb: str
    subject: str
    filter: str | None
    count: int
    detail: str | None


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An action that is being done."""

    actor: str
    origin: str | None
    verb: str
    subject: str
    filter: str | None
    count: int
    detail: str | None


def add_entry(entry: NewEntry) -> Steps[None]:
    """Write down what is done in the same transaction."""
    yield Statement("add_audit_entry", asdict(entry))


@reads
def entries(
    *,
    before: int | None = None,
    limit: int = 50,
    actor: str | None = None,
    verb: str | None = None,
    subject: str | None = None,
    since: int | None = None,
    until: int | None = None,
) -> Steps[list[AuditEntry]]:
    """One page of the actions that fit, the newest first, from behind the entry `before`."""
    found = yield Statement(
        "audit_entries",
        {
            "before_id": before,
            "limit": limit,
            "actor": actor,
            "verb": verb,
            "subject": subject,
            "since": None if since is None else At(since),
            "until": None if until is None else At(until),
        },
    )
    return [AuditEntry(*row) for row in found]


@writes
def prune_entries(*, before: int, batch: int = 1000) -> Steps[int]:
    """Remove entries older than `before`; fewer than `batch`: all of them."""
    found = yield Statement("prune_audit", {"before": At(before), "batch": batch})
    return len(found)
