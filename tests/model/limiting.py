"""Rules of limits, keys and routes, beside those of workers; `limits` says what should happen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from holdfast.core.limiting import NO_LIMITS, LimitBook
from holdfast.core.options.limit import Limit
from holdfast.core.records import Submission
from holdfast.core.routing import NO_ROUTES, RouteBook
from holdfast.store.op import Mode, Op, Steps
from holdfast.store.verbs import (
    cancel,
    claims,
    declared_limits,
    limited_claims,
    limits,
    queues,
    routes,
)
from holdfast.store.verbs.key_walk import KeyPlace
from tests.model.limits import LimitedModel
from tests.model.machine import NAMES, flags, known_names, pick, picks
from tests.model.reference import Model
from tests.model.runs import Claim
from tests.model.verdict import SECOND
from tests.model.working import Working, lease_seconds
from tests.model.world import CLAIMED, PENDING, RUNNING

ONE, TWO = Limit(concurrency=1), Limit(concurrency=2)
LIMITS: tuple[tuple[Limit, ...], ...] = (
    (),
    (ONE,),
    (TWO,),
    (Limit(concurrency=3, per_key=ONE),),
    (Limit(per_key=TWO),),
    (Limit(rate="1/s", burst=2),),
    (Limit(per_key=Limit(rate="1/m")), TWO),
    (Limit(rate="1/s", burst=3), Limit(rate="1/m", burst=4)),
)
SCOPES = ("queue a", "queue a", "queue b", "task t", "task t", "task u")
KEYS = ("k", "l", "m", "ü k")
scopes = st.sampled_from(SCOPES)
limit_lists = st.sampled_from(LIMITS)
busy = st.sampled_from(("a", "a", "a", "b"))


class Limiting(Working):
    """The verbs of workers, and of those who set limits and routes."""

    model: LimitedModel
    model_type: ClassVar[type[Model]] = LimitedModel

    def __init__(self) -> None:
        super().__init__()
        self.old: dict[str, LimitBook] = {side.name: NO_LIMITS for side in self.sides}
        self.books: dict[str, RouteBook] = {side.name: NO_ROUTES for side in self.sides}

    @initialize(
        given=st.lists(st.tuples(scopes, limit_lists), min_size=1, max_size=3),
        keys=st.lists(st.sampled_from((None, *KEYS)), min_size=6, max_size=14),
        before=st.integers(0, 3),
        after=st.integers(0, 4),
    )
    def begin(
        self,
        given: list[tuple[str, tuple[Limit, ...]]],
        keys: list[str | None],
        before: int,
        after: int,
    ) -> None:
        """Tasks of some keys, of which some are in flight from before there were limits."""
        self.submit_all(*(self.submission(concurrency_key=key) for key in keys))
        if before:
            self.begin_runs(self.take_limited("a", before, ("t@1",), 30, ""))
            self.take("a", before, ("t@1",), 30)
        for scope, limits_ in given:
            self.choose(scope, limits_)
        if after:
            self.claim_limited("a", after, ("t@1",), 30)
            self.begin_runs(self.take_limited("a", after, ("t@1",), 30, "k"))

    @invariant()
    def what_is_held_agrees(self) -> None:
        """Counters less what came free are what tasks in flight hold; no limit is passed."""
        expected = self.model.held()
        for side in self.sides:
            counted = side.lab.sql(
                "SELECT scope, held - (SELECT coalesce(sum(n), 0) FROM holdfast_freed AS freed"
                " WHERE freed.scope = counter.scope) FROM holdfast_counters AS counter"
                " WHERE place = 0"
            )
            found = {
                scope: int(held) for scope, held in counted if held and self.model.is_capped(scope)
            }
            assert found == expected, f"{side.name}: {found!r}, expected {expected!r}"

    # Sending

    @rule(
        name=st.sampled_from(NAMES),
        queue=busy,
        key=st.sampled_from((None, *KEYS)),
        priority=st.sampled_from((10, 50)),
        policy=pick,
        number=st.integers(1, 4),
    )
    def submit_keyed(
        self, name: str, queue: str, key: str | None, priority: int, policy: int, number: int
    ) -> None:
        given = {"queue_name": queue, "priority": priority, "policy": policy}
        self.submit_all(
            *(self.submission(task_name=name, concurrency_key=key, **given) for _ in range(number))
        )

    @rule(
        names=st.lists(st.sampled_from((*NAMES, "tu")), min_size=1, max_size=4),
        routable=flags,
        inside=flags,
    )
    def submit_routed(self, names: Sequence[str], routable: bool, inside: bool) -> None:
        """By the sender's copy of the rules, or by those that are read in the transaction."""
        batch = [self.submission(task_name=name, is_routable=routable) for name in names]
        expected = [self.model.routed(each) for each in batch]
        self.submit_all(*expected)
        for side in self.sides:
            if inside:
                assert side.run(_routed(batch)) == expected, side.name
                continue
            book = self.books[side.name]
            known = routes.ANY if book is NO_ROUTES else book.version
            changed = side.run(routes.changes(known))
            book = self.books[side.name] = book if changed is None else changed
            assert list(routes.along(book, batch)) == expected, side.name

    @rule(
        pattern=st.sampled_from(("t", "tu", "t*", "*", "u")),
        to=st.sampled_from((None, {"a": 1}, {"b": 1}, {"b": 1, "a": 2})),
    )
    def route(self, pattern: str, to: dict[str, int] | None) -> None:
        if to is not None:
            self.model.routes[pattern] = to
            self.both(None, lambda side: routes.set_route(pattern, to))
        else:
            was_there = self.model.routes.pop(pattern, None) is not None
            self.both(was_there, lambda side: routes.delete(pattern))

    # Limits

    @rule(scope=scopes, given=limit_lists)
    def choose(self, scope: str, given: tuple[Limit, ...]) -> None:
        self.model.choose(scope, given)
        self.both(None, lambda side: limits.choose(scope, given))
        self.learn()

    @rule(task=st.sampled_from(NAMES), given=limit_lists)
    def declare(self, task: str, given: tuple[Limit, ...]) -> None:
        self.model.declare(task, given)
        for side in self.sides:
            side.run(declared_limits.declare({task: given}))
        self.learn()

    @rule(queue=busy, fair=flags)
    def set_fair(self, queue: str, fair: bool) -> None:
        self.model.unfair = self.model.unfair - {queue} | ({queue} if not fair else set())
        self.model.queues.setdefault(queue, (None, None))
        self.both(None, lambda side: limits.set_fair(queue, fair))
        self.learn()

    @rule(queue=busy, paused=st.sampled_from((True, False, False)))
    def pause(self, queue: str, paused: bool) -> None:
        if paused:
            self.model.pause(queue, None)
            self.both(None, lambda side: queues.pause(queue))
        else:
            self.both(self.model.resume(queue), lambda side: queues.resume(queue))

    def learn(self) -> None:
        """Workers read the limits anew; `old` is what one knows that has not."""
        for side in self.sides:
            self.old[side.name], side.book = side.book, side.run(limits.book())

    @rule(scope=scopes, how=st.sampled_from(("recount", "fold", "prune")))
    def tidy(self, scope: str, how: str) -> None:
        """What the janitor does changes nothing that anybody could notice."""
        for side in self.sides:
            if how == "recount":
                side.run(limits.recount(scope))
            elif how == "fold":
                side.run(limits.fold())
            else:
                side.run(limits.prune_counters())

    # Claims

    def take(
        self,
        queue: str,
        wanted: int,
        known: Sequence[str],
        lease: int,
        child: claims.ChildIdentity | None = None,
    ) -> list[Claim]:
        """What has no limit is claimed as ever."""
        free = [name for name in known if not self.model.is_limited(queue, name)]
        return super().take(queue, wanted, free, lease, child) if free else []

    @precondition(lambda self: self.there_is(PENDING))
    @rule(queue=busy, wanted=st.integers(1, 4), known=known_names, lease=lease_seconds)
    def claim_limited(self, queue: str, wanted: int, known: Sequence[str], lease: int) -> None:
        names = [name for name in known if self.model.is_limited(queue, name)]
        if names:
            self.take_limited(queue, wanted, names, lease, None)

    @precondition(lambda self: self.there_is(PENDING))
    @rule(
        queue=busy,
        wanted=st.integers(1, 5),
        known=known_names,
        lease=lease_seconds,
        after=st.sampled_from(("", *KEYS, "kk", "zz")),
        begins=flags,
    )
    def claim_keys(
        self, queue: str, wanted: int, known: Sequence[str], lease: int, after: str, begins: bool
    ) -> None:
        taken = self.take_limited(queue, wanted, known, lease, after)
        if begins:
            self.begin_runs(taken)

    def take_limited(
        self, queue: str, wanted: int, known: Sequence[str], lease: int, after: str | None
    ) -> list[Claim]:
        token, worker = self.new_bytes(), f"worker-{self.made % 2}"
        given = token, worker, queue, known, wanted, lease * SECOND
        if after is None:
            expected = self.model.claim_limited(*given)
        else:
            expected = self.model.claim_keys(*given, after)
        for side in self.sides:
            request = claims.Request(*given)
            if after is None:
                found = side.run(limited_claims.claim(request, side.book))
            else:
                found = side.run(limited_claims.claim_keys(request, side.book, KeyPlace(after)))
            assert not found.is_stale
            ids = {task.id for task in found.claimed.tasks}
            assert ids == set(expected), f"{side.name}: {ids!r}, expected {expected!r}"
            side.claims |= {(task.id, token): task for task in found.claimed.tasks}
        taken = [(id, token) for id in expected]
        self.claims += taken
        return taken

    @precondition(lambda self: self.there_is(PENDING))
    @rule(queue=busy, how=st.sampled_from(("plain", "limited", "keys")))
    def claim_by_old_limits(self, queue: str, how: str) -> None:
        """Who does not know the latest limits gets nothing, whatever they were."""
        for side in self.sides:
            old = self.old[side.name]
            if old.version == side.book.version:
                continue
            request = claims.Request(self.new_bytes(), "late", queue, ("t@1", "u@1"), 4, SECOND)
            if how == "plain":
                found = side.run(claims.claim(request._replace(limits_version=old.version)))
                assert not found.tasks, side.name
                continue
            verb = limited_claims.claim if how == "limited" else limited_claims.claim_keys
            answer = side.run(verb(request, old))
            assert answer.is_stale, side.name
            assert not answer.claimed.tasks, side.name

    # What else frees slots

    @precondition(lambda self: self.there_is(CLAIMED, RUNNING))
    @rule(picked=picks)
    def cancel(self, picked: list[int]) -> None:
        ids = self.ids(picked, (CLAIMED, RUNNING))
        self.both(self.model.cancel(ids), lambda side: cancel.cancel(ids))

    @rule(by=st.sampled_from((0.4, 1, 6, 31)))
    def advance(self, by: float) -> None:
        for side in self.sides:
            self.model.now = side.lab.clock.advance(by)


def _routed(batch: Sequence[Submission]) -> Op[list[Submission]]:
    def steps() -> Steps[list[Submission]]:
        return list((yield from routes.routed(batch)))

    return Op(steps(), Mode.READ, "routed")
