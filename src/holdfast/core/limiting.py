"""What limits leave free at a moment, and what taking some of it costs.

Owns the arithmetic of limits: pure, over counters that a claim has read and locked. A counter is
named by its *scope*: `queue mail` and `task sync` for the whole, `queue mail acme` for one
concurrency key. (Names have no spaces in them, so a scope names one counter.)

Rates go by the generic cell rate algorithm: of a rate, a counter keeps one time, *paid until*. A
task that begins pays for one interval; none begins when more than `burst` intervals are paid for
in advance. So a rate is smooth, an idle one saves up `burst`, and no window has more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor
from typing import Final, NamedTuple

from holdfast.core.options.limit import NO_RULE, Limit, Rule, Rules, rules

PLENTY: Final = 1_000_000_000
"""What is free where there is no limit."""
QUEUE, TASK, QUEUE_KEY, TASK_KEY = 1, 2, 4, 8
"""The bits of `slots`: which counters a claimed task has taken one of."""
_NO_RULES: Final = Rules()


def queue_scope(queue: str, key: str | None = None) -> str:
    """The counter of a queue, or of one key in it."""
    return f"queue {queue}" if key is None else f"queue {queue} {key}"


def task_scope(task: str, key: str | None = None) -> str:
    """The counter of a task, or of one key of it."""
    return f"task {task}" if key is None else f"task {task} {key}"


class LimitBook(NamedTuple):
    """All limits, as they stood at one version."""

    version: str | None = None
    limits: Mapping[str, tuple[Limit, ...]] = {}
    """By the scope of a queue or a task."""
    unfair: frozenset[str] = frozenset()
    """Queues whose keys do not take turns."""
    rules: Mapping[str, Rules] = {}

    @classmethod
    def of(
        cls,
        version: str | None,
        limits: Mapping[str, tuple[Limit, ...]],
        unfair: Iterable[str] = (),
    ) -> LimitBook:
        """A book of these limits."""
        known = {scope: rules(given) for scope, given in limits.items()}
        return cls(version, limits, frozenset(unfair), known)

    def of_queue(self, queue: str) -> Rules:
        return self.rules.get(queue_scope(queue), _NO_RULES)

    def of_task(self, task: str) -> Rules:
        return self.rules.get(task_scope(task), _NO_RULES)

    def slots_of(self, queue: str, task: str) -> list[str]:
        """The scopes, without keys, of which such a task may hold slots."""
        found = (
            (queue_scope(queue), self.of_queue(queue)),
            (task_scope(task), self.of_task(task)),
        )
        return [
            scope
            for scope, of_scope in found
            if of_scope.whole.capacity is not None or of_scope.each.capacity is not None
        ]

    def limits_whole(self, queue: str, task: str) -> bool:
        """Whether a task without a key has a limit in this queue."""
        return bool(self.of_queue(queue).whole or self.of_task(task).whole)


NO_LIMITS: Final = LimitBook()


class Counter(NamedTuple):
    """What is known of one scope: slots that are held, and until when each rate is paid."""

    held: int = 0
    paid_until: tuple[int, ...] = ()


def free(rule: Rule, counter: Counter, now: int) -> int:
    """How many more may begin now."""
    left = PLENTY if rule.capacity is None else rule.capacity - counter.held
    for place, rate in enumerate(rule.rates):
        ahead = _paid_until(rule, counter, place, now) - now
        left = min(left, floor((rate.burst * rate.every_us - ahead) / rate.every_us + 1e-9))
    return max(0, left)


def next_at(rule: Rule, counter: Counter, now: int) -> int | None:
    """When the rates let another one begin; None if they do now."""
    latest = None
    for place, rate in enumerate(rule.rates):
        paid = _paid_until(rule, counter, place, now)
        begins = ceil(paid - (rate.burst - 1) * rate.every_us)
        if begins > now:
            latest = max(begins, latest or begins)
    return latest


def taken(rule: Rule, counter: Counter, number: int, now: int) -> Counter:
    """The counter after so many have begun."""
    paid = tuple(
        _paid_until(rule, counter, place, now) + ceil(number * rate.every_us)
        for place, rate in enumerate(rule.rates)
    )
    # What has only a rate holds nothing: nobody would give it back.
    return Counter(counter.held + (number if rule.capacity is not None else 0), paid)


def _paid_until(rule: Rule, counter: Counter, place: int, now: int) -> int:
    rate = rule.rates[place]
    paid = counter.paid_until[place] if place < len(counter.paid_until) else now
    if paid > now + ceil(rate.burst * rate.every_us):
        # More than that nobody pays: the rate was lower then, or somebody has written it by hand.
        return now
    return max(now, paid)


class Budget:
    """What one claim may take, counted down as it takes it."""

    def __init__(self, now: int) -> None:
        self.now = now
        self._rules: dict[str, Rule] = {}
        self._counters: dict[str, Counter] = {}
        self._free: dict[str, int] = {}
        self._folded: set[str] = set()
        self._taken: dict[str, int] = {}
        self.blocked: set[str] = set()
        """Scopes that kept something from being taken."""

    def add(self, scope: str, rule: Rule, counter: Counter, freed: int = 0) -> None:
        """A counter that the claim has locked; `freed`: what was given back since."""
        self._rules[scope] = rule
        self._counters[scope] = counter._replace(held=max(0, counter.held - freed))
        self._free[scope] = free(rule, self._counters[scope], self.now)
        if freed:
            self._folded.add(scope)

    def knows(self, scope: str) -> bool:
        return scope in self._rules

    def left(self, scopes: Iterable[str]) -> int:
        """How many more that count against all of these may begin."""
        return min((self._free[scope] for scope in scopes), default=PLENTY)

    def block(self, scopes: Iterable[str]) -> None:
        """Something is waiting for whichever of these has nothing left."""
        self.blocked.update(scope for scope in scopes if self._free[scope] <= 0)

    def take(self, scopes: Sequence[str]) -> bool:
        """Take one of each; False, and nothing is taken, if one has nothing left."""
        if self.left(scopes) <= 0:
            self.block(scopes)
            return False
        for scope in scopes:
            self._free[scope] -= 1
            self._taken[scope] = self._taken.get(scope, 0) + 1
        return True

    def give_back(self, scopes: Iterable[str]) -> None:
        """One that was to be taken was not."""
        for scope in scopes:
            self._taken[scope] -= 1

    def changed(self) -> dict[str, Counter]:
        """The counters as they have to be written."""
        took = {scope for scope, number in self._taken.items() if number}
        return {scope: self._after(scope) for scope in self._folded | took}

    def _after(self, scope: str) -> Counter:
        counter, number = self._counters[scope], self._taken.get(scope, 0)
        return taken(self._rules[scope], counter, number, self.now) if number else counter

    def next_at(self) -> int | None:
        """When one of the scopes that are in the way may let something begin by its rates; None:
        only when a slot comes free."""
        times = [
            next_at(self._rules[scope], self._after(scope), self.now) for scope in self.blocked
        ]
        return min((at for at in times if at is not None), default=None)


def scopes_of(
    book: LimitBook, queue: str, task: str, key: str | None
) -> list[tuple[str, Rule, int]]:
    """The scopes that a task counts against, with the rule and the bit of each."""
    of_queue, of_task = book.of_queue(queue), book.of_task(task)
    found = [
        (queue_scope(queue), of_queue.whole, QUEUE),
        (task_scope(task), of_task.whole, TASK),
    ]
    if key is not None:
        found += [
            (queue_scope(queue, key), of_queue.each, QUEUE_KEY),
            (task_scope(task, key), of_task.each, TASK_KEY),
        ]
    return [each for each in found if each[1] != NO_RULE]
