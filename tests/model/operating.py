"""Rules of time and of operators: promote, expire, drop, cancel, resubmit, reschedule, prune."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from holdfast.core.errors import UniqueConflict, UpstreamEnded
from holdfast.core.status import TASK_TERMINAL_STATES
from holdfast.store.verbs import cancel, dependents, operate, queues, retention, timing
from tests.model.machine import (
    QUEUES,
    WORKFLOWS,
    Machine,
    flags,
    known_names,
    pick,
    picks,
    queue_names,
    seconds,
)
from tests.model.reference import RESUBMITTABLE, NeverAble, SlotTaken
from tests.model.verdict import SECOND
from tests.model.world import CLAIMED, PENDING, RUNNING, SCHEDULED, WAITING

OPEN = (RUNNING, CLAIMED, PENDING, SCHEDULED, WAITING)


class Operating(Machine):
    """The verbs that are nobody's claim."""

    @rule(by=st.sampled_from((0.000001, 1, 4, 12, 65)))
    def advance(self, by: float) -> None:
        self.let_pass(by)

    @precondition(lambda self: self.coming())
    @rule(picked=pick, then=st.sampled_from(("promote", "expire", "nothing")))
    def await_something(self, picked: int, then: str) -> None:
        """Let the time of a delay, of a task's good_until or of a lease come."""
        times = self.coming()
        self.let_pass((times[picked % len(times)] - self.model.now + 1) / SECOND)
        if then == "promote":
            self.promote_all()
        elif then == "expire":
            self.expire_all()

    def coming(self) -> list[int]:
        times = [lease["expires_at"] for lease in self.model.leases.values()]
        for task in self.model.tasks.values():
            times += [at for at in (task["due_at"], task["expire_at"]) if at is not None]
        return sorted(at for at in times if at >= self.model.now)

    def let_pass(self, by: float) -> None:
        for side in self.sides:
            self.model.now = side.lab.clock.advance(by)

    @precondition(lambda self: self.there_is(SCHEDULED))
    @rule()
    def promote(self) -> None:
        self.promote_all()

    def promote_all(self) -> None:
        self.ids_of(self.model.promote(), lambda side: timing.promote())

    @precondition(lambda self: self.there_is(SCHEDULED))
    @rule(picked=picks)
    def promote_now(self, picked: list[int]) -> None:
        ids = self.ids(picked, {SCHEDULED})
        self.ids_of(self.model.promote(ids), lambda side: timing.promote_now(ids))

    @precondition(lambda self: any(task["expire_at"] for task in self.model.tasks.values()))
    @rule()
    def expire(self) -> None:
        self.expire_all()

    def expire_all(self) -> None:
        self.ids_of(self.model.expire(), lambda side: timing.expire())

    @precondition(lambda self: self.there_is(PENDING))
    @rule(queue=queue_names, known=known_names, age=st.sampled_from((-1, 5, 5)))
    def drop(self, queue: str, known: Sequence[str], age: int) -> None:
        self.drop_all(queue, known, age)

    def drop_all(self, queue: str, known: Sequence[str], age: int) -> None:
        before = self.model.now - age * SECOND
        self.ids_of(
            self.model.drop(queue, known, before),
            lambda side: timing.drop(queue, known=known, before=before),
        )

    @precondition(lambda self: self.there_is(*OPEN))
    @rule(picked=picks)
    def cancel(self, picked: list[int]) -> None:
        self.cancel_all(self.ids(picked, OPEN))

    def cancel_all(self, ids: list[bytes]) -> None:
        self.both(self.model.cancel(ids), lambda side: cancel.cancel(ids))

    @precondition(lambda self: self.live(RUNNING))
    @rule(picked=picks)
    def request_cancel(self, picked: list[int]) -> None:
        """Of tasks that run: they go on until their worker hears of it."""
        self.cancel_all([id for id, _ in self.some(self.live(RUNNING), picked)])

    @rule(queue=queue_names, by=st.sampled_from((None, "ada", "bob")))
    def pause(self, queue: str, by: str | None) -> None:
        self.model.pause(queue, by)
        self.both(None, lambda side: queues.pause(queue, by=by))

    @precondition(lambda self: self.model.queues)
    @rule(queue=queue_names)
    def resume(self, queue: str) -> None:
        self.both(self.model.resume(queue), lambda side: queues.resume(queue))

    @precondition(lambda self: self.there_is(*RESUBMITTABLE))
    @rule(
        picked=picks,
        keep_retries=flags,
        good_for=seconds,
        at=st.sampled_from((None, -1, 9)),
    )
    def resubmit(
        self,
        picked: list[int],
        keep_retries: bool,
        good_for: int | None,
        at: int | None,
    ) -> None:
        now = self.model.now
        run_at = at and now + at * SECOND
        good_until = good_for and now + good_for * SECOND
        self.resubmit_all(self.ids(picked, RESUBMITTABLE), keep_retries, good_until, run_at)

    @precondition(lambda self: self.there_is(*RESUBMITTABLE))
    @rule(picked=picks)
    def resubmit_for_later(self, picked: list[int]) -> None:
        later = self.model.now + 9 * SECOND
        self.resubmit_all(self.ids(picked, RESUBMITTABLE), False, None, later)

    def resubmit_all(
        self, ids: list[bytes], keep_retries: bool, good_until: int | None, run_at: int | None
    ) -> None:
        expected: dict[bytes, bool] | type[Exception]
        try:
            expected = self.model.resubmit(
                ids, keep_retries=keep_retries, good_until=good_until, run_at=run_at
            )
        except SlotTaken:
            expected = UniqueConflict
        except NeverAble:
            expected = UpstreamEnded
        for side in self.sides:
            answer: dict[bytes, bool] | type[Exception]
            try:
                answer = side.run(
                    operate.resubmit(
                        ids, keep_retries=keep_retries, good_until=good_until, run_at=run_at
                    )
                )
            except (UniqueConflict, UpstreamEnded) as error:
                answer = type(error)
            assert answer == expected, side.name

    @precondition(lambda self: self.there_is(PENDING, SCHEDULED))
    @rule(
        picked=picks,
        move=flags,
        delay=st.sampled_from((None, 0, 8)),
        at=st.sampled_from((None, -3, 3)),
        queue=st.sampled_from((None, *QUEUES)),
        priority=st.sampled_from((None, 1, 99)),
    )
    def reschedule(
        self,
        picked: list[int],
        move: bool,
        delay: int | None,
        at: int | None,
        queue: str | None,
        priority: int | None,
    ) -> None:
        ids = self.ids(picked, {PENDING, SCHEDULED})
        delay_us = None if delay is None else delay * SECOND
        run_at = at and self.model.now + at * SECOND
        self.both(
            self.model.reschedule(
                ids, move=move, delay_us=delay_us, run_at=run_at, queue=queue, priority=priority
            ),
            lambda side: operate.reschedule(
                ids, move=move, delay_us=delay_us, run_at=run_at, queue=queue, priority=priority
            ),
        )

    @precondition(lambda self: self.there_is(*TASK_TERMINAL_STATES))
    @rule(picked=picks)
    def delete(self, picked: list[int]) -> None:
        ids = self.ids(picked, TASK_TERMINAL_STATES)
        self.both(self.model.delete(ids), lambda side: operate.delete(ids))

    @precondition(lambda self: self.there_is(*TASK_TERMINAL_STATES))
    @rule(age=st.sampled_from((None, 3, 30)), dead_age=st.sampled_from((None, 0)))
    def prune(self, age: int | None, dead_age: int | None) -> None:
        now = self.model.now
        before = None if age is None else now - age * SECOND
        dead_before = None if dead_age is None else now - dead_age * SECOND
        there = len(self.model.tasks)
        removed = self.model.prune(before=before, dead_before=dead_before)
        self.both(
            retention.Pruned(there, removed, None),
            lambda side: retention.prune(before=before, dead_before=dead_before),
        )

    @precondition(lambda self: any(task["workflow_id"] for task in self.model.tasks.values()))
    @rule(workflow=st.sampled_from(WORKFLOWS))
    def hold(self, workflow: bytes) -> None:
        self.both(self.model.hold(workflow), lambda side: dependents.hold(workflow))

    @precondition(lambda self: any(parent in WORKFLOWS for parent, _ in self.model.edges))
    @rule(workflow=st.sampled_from(WORKFLOWS))
    def let_go(self, workflow: bytes) -> None:
        self.model.let_go(workflow)
        for side in self.sides:
            side.run(dependents.resume(workflow))
