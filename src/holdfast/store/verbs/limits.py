"""limits: the rules of queues and tasks, and counters that agree with what is in flight.

Owns the changing of rules. A rule is what an operator chose, or else what code declares. All
rules have one version, which every claim names: one who claims under an old version gets nothing
and reads the rules first, so a change holds from its commit on, everywhere.

Invariant: what a counter holds, less what the ledger says came free, is the number of tasks in
flight that carry its bit in `slots`. Claims count up, under the counter's lock; a trigger of the
database writes the ledger, whatever ends a claim. `recount` makes it so by looking: for a new
rule, which counts what is in flight already, and if an audit finds that it is not so.

Lock order: the version, counters of queues and tasks, counters of keys, tasks.
"""

from __future__ import annotations

import os
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.core.errors import PayloadError, UnreadableRow
from holdfast.core.limiting import (
    QUEUE,
    QUEUE_KEY,
    TASK,
    TASK_KEY,
    Counter,
    LimitBook,
    queue_scope,
    task_scope,
)
from holdfast.core.options.limit import Limit, Rules, decode, encode, rules
from holdfast.store import rows
from holdfast.store.op import (
    Channel,
    Column,
    Hint,
    Row,
    Rows,
    Statement,
    Steps,
    Table,
    Texts,
    reads,
    writes,
)

_EVERYWHERE = Hint(Channel.READY, ("",))
_BATCH = 500
_NO_RULES = Rules()


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """The limits of one queue or task, as declared and as chosen."""

    scope: str
    declared: tuple[Limit, ...]
    chosen: tuple[Limit, ...]
    chosen_by: str | None
    updated_at: int

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Those that hold."""
        return self.chosen or self.declared


@reads
def book(set_aside: list[UnreadableRow] | None = None) -> Steps[LimitBook]:
    """Every rule that holds, and the version of all."""
    return (yield from whole_book(set_aside))


def whole_book(set_aside: list[UnreadableRow] | None = None) -> Steps[LimitBook]:
    found, places = yield (Statement("read_limits"), Statement("unfair_queues"))
    version = next((row[1] for row in places if row[0] is None), None)
    unfair = set(rows.texts(row[0] for row in places))
    limits = {each.scope: each.limits for each in _records(found, set_aside) if each.limits}
    return LimitBook.of(rows.optional_text(version), limits, unfair)


@reads
def list_rules(set_aside: list[UnreadableRow] | None = None) -> Steps[list[RuleRecord]]:
    """Every rule, as declared and as chosen."""
    found = _records((yield Statement("read_limits")), set_aside)
    # Of some there is only what code once declared.
    return [each for each in found if each.limits]


def _records(found: Rows, set_aside: list[UnreadableRow] | None) -> list[RuleRecord]:
    return list(rows.readable(_record, found, set_aside))


def _record(row: Row) -> RuleRecord:
    scope, declared, chosen, chosen_by, updated_at = row
    known = rows.optional_text(scope)
    if known is None or known.partition(" ")[0] not in ("queue", "task"):
        raise UnreadableRow("holdfast_limits", rows.named(scope), "scope", "names nothing")
    given: dict[str, tuple[Limit, ...]] = {}
    for column, text in (("declared", declared), ("chosen", chosen)):
        try:
            given[column] = decode(text)
        except PayloadError as error:
            raise UnreadableRow("holdfast_limits", known, column, str(error)) from error
    by = rows.optional_text(chosen_by)
    return RuleRecord(known, given["declared"], given["chosen"], by, updated_at)


@writes
def choose(scope: str, limits: Sequence[Limit], *, by: str | None = None) -> Steps[None]:
    """Set the limits of a queue or task; none: as its code declares, or no more."""
    yield from renew()
    yield Statement(
        "choose_limit",
        {"scope": scope, "limits": encode(limits), "chosen_by": by if limits else None},
    )
    yield Statement("forget_limits")
    yield from counted_anew(scope)
    yield from say_so()


@writes
def set_fair(queue: str, fair: bool) -> Steps[None]:
    """Whether the keys of a queue take turns, or its tasks go in strict order."""
    yield from renew()
    yield Statement("set_fair", {"queue_name": queue, "fair": fair})
    yield from say_so()


def renew() -> Steps[None]:
    """Give the rules another version; until the end of the transaction nobody else changes any."""
    yield Statement("renew_limits", {"version": os.urandom(8).hex()})


def say_so() -> Steps[None]:
    """Wake every worker: it may do more, or less."""
    yield Statement("notify", hint=_EVERYWHERE)


@writes
def recount(scope: str) -> Steps[None]:
    """Count what is in flight under a rule anew. It waits for tasks that are being ended."""
    yield from counted_anew(scope)


def counted_anew(scope: str) -> Steps[None]:
    """The same as a part of another operation."""
    found = _records((yield Statement("read_limits")), None)
    limits = next((each.limits for each in found if each.scope == scope), ())
    rule = rules(limits)
    kind, _, name = scope.partition(" ")
    of_queue = kind == "queue"
    where = {"queue_name": name if of_queue else None, "task_name": None if of_queue else name}
    keys = {"from": f"{scope} ", "until": f"{scope}!"}
    yield Statement("add_counters", table=_places([scope], len(rule.whole.rates)))
    yield Statement("lock_counters", {"scopes": Texts([scope])})
    held = yield Statement("lock_key_counters", keys)
    counted: dict[str, int] = {
        scope: 0,
        **{row[0]: 0 for row in held if rows.optional_text(row[0])},
    }
    if rule.whole.capacity is not None:
        bit = QUEUE if of_queue else TASK
        marked = yield Statement("mark_slots", {"bit": bit, "keyed": False, **where})
        counted[scope] = len(marked)
    if rule.each.capacity is not None:
        bit = QUEUE_KEY if of_queue else TASK_KEY
        marked = yield Statement("mark_slots", {"bit": bit, "keyed": True, **where})
        for key, number in Tally(rows.texts(row[0] for row in marked)).items():
            counted[f"{scope} {key}"] = number
    # After the tasks: what had left before they were locked is in the ledger by now.
    yield Statement("drop_freed", {"scope": scope, **keys})
    columns = {"scope": Column.TEXT, "held": Column.INT}
    yield Statement("set_held", table=Table(columns, sorted(counted.items())))


def counters(found: Rows) -> dict[str, Counter]:
    """Counters of rows (scope, place, held, paid until, …), by scope."""
    held: dict[str, int] = {}
    paid: dict[str, dict[int, int]] = {}
    for scope, place, number, until, *_ in found:
        paid.setdefault(scope, {})[place] = until
        if place == 0:
            held[scope] = number
    return {
        scope: Counter(held.get(scope, 0), tuple(times[place] for place in sorted(times)))
        for scope, times in paid.items()
    }


def writing(changed: Mapping[str, Counter]) -> Statement:
    """The statement that writes these counters."""
    table: list[Row] = []
    for scope, counter in sorted(changed.items()):
        for place in range(max(1, len(counter.paid_until))):
            until = counter.paid_until[place] if place < len(counter.paid_until) else 0
            table.append((scope, place, counter.held if place == 0 else 0, until))
    return Statement("write_counters", table=Table(_COUNTER, table))


_COUNTER = {
    "scope": Column.TEXT,
    "place": Column.INT,
    "held": Column.INT,
    "paid_until": Column.TIME,
}


def _places(scopes: Sequence[str], number: int) -> Table:
    table = [(scope, place) for scope in scopes for place in range(max(1, number))]
    return Table({"scope": Column.TEXT, "place": Column.INT}, table)


def adding(scopes: Sequence[str]) -> Statement:
    """The statement that makes the counters of these scopes, if they are not there."""
    return Statement("add_counters", table=_places(scopes, 1))


class Drift(NamedTuple):
    """A counter that does not agree with what is in flight."""

    scope: str
    held: int
    """Of the counter, less what came free."""
    in_flight: int


@reads
def audit() -> Steps[list[Drift]]:
    """The counters that do not agree with the tasks in flight; of limits that hold. Of one that is
    gone, tasks in flight still give back what nobody counts any more."""
    found = yield Statement("audit_counters")
    if not found:
        return []
    known = yield from whole_book()
    drifts = [Drift(*row) for row in found if rows.optional_text(row[0])]
    return [drift for drift in drifts if _counts(known, drift.scope)]


def _counts(known: LimitBook, scope: str) -> bool:
    """Whether a counter says how much is in flight."""
    limit = known.rules.get(rule_of(scope), _NO_RULES)
    return (limit.whole if scope == rule_of(scope) else limit.each).capacity is not None


def rule_of(scope: str) -> str:
    """The rule to which a counter belongs: without the key."""
    kind, _, rest = scope.partition(" ")
    return f"{kind} {rest.partition(' ')[0]}"


@writes
def fold(batch: int = _BATCH) -> Steps[int]:
    """Subtract from counters what came free and nobody has asked about; how many scopes."""
    found = yield Statement("old_freed", {"batch": batch})
    scopes = sorted(rows.texts(row[0] for row in found))
    if not scopes:
        return 0
    held = counters((yield Statement("lock_counters", {"scopes": Texts(scopes)})))
    came_free: Tally[str] = Tally()
    for scope, number in (yield Statement("fold_freed", {"scopes": Texts(scopes)})):
        came_free[scope] += number
    # Of a rule that is gone there is no counter, and nothing to subtract from.
    changed = {
        scope: counter._replace(held=max(0, counter.held - came_free[scope]))
        for scope, counter in held.items()
        if came_free[scope]
    }
    if changed:
        yield writing(changed)
    return len(scopes)


@writes
def prune_counters(batch: int = _BATCH) -> Steps[int]:
    """Remove counters of keys that count nothing; fewer than `batch`: all of them."""
    return len((yield Statement("prune_counters", {"batch": batch})))


@reads
def scope_holders(scope: str, bit: int, *, most: int = 5) -> Steps[list[bytes]]:
    """Some of the tasks that hold a counter, those first that have held it longest."""
    kind, _, rest = scope.partition(" ")
    name, _, key = rest.partition(" ")
    found = yield Statement(
        "scope_holders",
        {
            "bit": bit,
            "queue_name": name if kind == "queue" else None,
            "task_name": name if kind == "task" else None,
            "concurrency_key": key or None,
            "most": most,
        },
    )
    return list(rows.uuids(found))


__all__ = [
    "Drift",
    "RuleRecord",
    "adding",
    "audit",
    "book",
    "choose",
    "counted_anew",
    "counters",
    "fold",
    "list_rules",
    "prune_counters",
    "queue_scope",
    "recount",
    "renew",
    "rule_of",
    "say_so",
    "scope_holders",
    "set_fair",
    "task_scope",
    "whole_book",
    "writing",
]
