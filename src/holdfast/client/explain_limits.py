"""Why limits keep a task waiting: which limit, who holds it, until when, and behind which keys.

Owns the sentences; what is free is `core.limiting`'s to say.
"""

from __future__ import annotations

from uuid import UUID

from holdfast.core.limiting import Counter, LimitBook, next_at, scopes_of
from holdfast.core.moment import from_us, length
from holdfast.core.options.limit import Rule
from holdfast.core.records import TaskRecord
from holdfast.store.op import Statement, Steps, Texts
from holdfast.store.verbs import limits
from holdfast.store.verbs.claims import next_key

_MOST_SHOWN = 3


def reasons(task: TaskRecord, now: int) -> Steps[list[str]]:
    """What limits and turns have to do with a task that is PENDING."""
    book = yield from limits.book()
    key = task.concurrency_key or None
    scopes = scopes_of(book, task.queue_name, task.task_name, key)
    found: list[str] = []
    if scopes:
        names = Texts(scope for scope, _, _ in scopes)
        known = limits.counters((yield Statement("read_counters", {"scopes": names})))
        for scope, rule, bit in scopes:
            found += yield from _of_scope(scope, rule, bit, known.get(scope, Counter()), now)
    if key is not None:
        found += yield from _turns(task, key, book)
    return found


def _of_scope(scope: str, rule: Rule, bit: int, counter: Counter, now: int) -> Steps[list[str]]:
    found: list[str] = []
    if rule.capacity is not None and counter.held >= rule.capacity:
        holders = yield from limits.scope_holders(scope, bit, most=_MOST_SHOWN)
        shown = ", ".join(str(UUID(bytes=holder)) for holder in holders)
        more = counter.held - len(holders)
        others = f" and {more:,} more" if more > 0 else ""
        held = f", held by {shown}{others}" if shown else ""
        found.append(f"the limit of {_named(scope)} is reached: {rule.capacity:,} at a time{held}")
    at = next_at(rule, counter, now)
    if at is not None:
        when = from_us(at).isoformat(timespec="milliseconds")
        wait = length((at - now) / 1_000_000)
        found.append(f"the rate of {_named(scope)} lets the next begin at {when}, in {wait}")
    return found


def _turns(task: TaskRecord, key: str, book: LimitBook) -> Steps[list[str]]:
    """Which other keys wait in the queue."""
    if task.queue_name in book.unfair:
        return []
    others: list[str] = []
    place: str | None = ""
    while place is not None and len(others) <= _MOST_SHOWN:
        place = yield from next_key(task.queue_name, place)
        if place is not None and place != key:
            others.append(place)
    if not others:
        return []
    shown = ", ".join(map(repr, others[:_MOST_SHOWN]))
    more = " and others" if len(others) > _MOST_SHOWN else ""
    return [f"its concurrency key {key!r} takes turns with {shown}{more}"]


def _named(scope: str) -> str:
    kind, _, rest = scope.partition(" ")
    name, _, key = rest.partition(" ")
    return f"{kind} {name!r}" + (f" for key {key!r}" if key else "")
