"""Rules that submit: plain, delayed, unique, with dependencies, and once more."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from holdfast.core.records import Edge
from holdfast.store.verbs import submit
from tests.model.machine import (
    NAMES,
    WORKFLOWS,
    Machine,
    flags,
    pick,
    picks,
    queue_names,
    seconds,
)
from tests.model.verdict import SECOND


class Sending(Machine):
    """The verbs of senders."""

    @rule(
        name=st.sampled_from(NAMES),
        queue=queue_names,
        priority=st.sampled_from((10, 50)),
        policy=pick,
        good_for=seconds,
        number=st.integers(1, 3),
    )
    def submit_plain(
        self, name: str, queue: str, priority: int, policy: int, good_for: int | None, number: int
    ) -> None:
        given = {"queue_name": queue, "priority": priority, "policy": policy, "good_for": good_for}
        self.submit_all(*(self.submission(task_name=name, **given) for _ in range(number)))

    @rule(
        delay=st.sampled_from((0, 1, 20)),
        at=st.sampled_from((None, -5, 5)),
        good_for=seconds,
        from_then=flags,
    )
    def submit_delayed(
        self, delay: int, at: int | None, good_for: int | None, from_then: bool
    ) -> None:
        when: dict[str, int] = {"delay_us": delay * SECOND}
        if at is not None:
            when = {"run_at": self.model.now + at * SECOND}
        if from_then and good_for is not None:
            self.submit_all(self.submission(good_for_us=good_for * SECOND, **when))
        else:
            self.submit_all(self.submission(good_for=good_for, **when))

    @rule(
        slots=st.lists(st.sampled_from(("x", "y")), min_size=1, max_size=2),
        on_conflict=st.sampled_from(("return", "replace", "debounce", "raise")),
        delay=seconds,
        policy=pick,
        good_for=seconds,
        from_then=flags,
        until=st.sampled_from((None, None, "started", "deleted")),
        period=st.sampled_from((None, None, 60)),
    )
    def submit_unique(
        self,
        slots: list[str],
        on_conflict: str,
        delay: int | None,
        policy: int,
        good_for: int | None,
        from_then: bool,
        until: str | None,
        period: int | None,
    ) -> None:
        given: dict[str, Any] = {"on_conflict": on_conflict, "policy": policy}
        given |= {"unique_until": until, "unique_period_us": period and period * SECOND}
        if from_then:
            given["good_for_us"] = good_for and good_for * SECOND
        else:
            given["good_for"] = good_for
        delay_us = delay and delay * SECOND
        self.submit_all(
            *(self.submission(unique_slot=slot, delay_us=delay_us, **given) for slot in slots)
        )

    @rule(
        workflow=st.sampled_from(WORKFLOWS),
        parents=st.lists(pick, max_size=3),
        on=st.lists(st.sampled_from(("success", "success", "failure", "always")), min_size=3),
        needed=st.sampled_from((None, None, 1, 2)),
        policy=pick,
        good_for_us=st.sampled_from((None, 5 * SECOND)),
        good_for=seconds,
        delay=seconds,
    )
    def submit_step(
        self,
        workflow: bytes,
        parents: list[int],
        on: list[Any],
        needed: int | None,
        policy: int,
        good_for_us: int | None,
        good_for: int | None,
        delay: int | None,
    ) -> None:
        steps = [id for id, task in self.model.tasks.items() if task["workflow_id"] == workflow]
        ids = self.some(steps, parents) if steps else []
        edges = [Edge(id, kind) for id, kind in zip(ids, on, strict=False)]
        given: dict[str, Any] = {"depends_on": edges, "workflow_id": workflow, "policy": policy}
        given["good_for"] = good_for
        if edges:
            given |= {"good_for_us": good_for_us, "delay_us": delay and delay * SECOND}
            given["deps_needed"] = min(needed, len(edges)) if needed else None
        self.submit_all(self.submission(**given))

    @precondition(lambda self: self.sent)
    @rule(picked=picks, same=flags)
    def submit_again(self, picked: list[int], same: bool) -> None:
        """A send whose answer was lost is repeated; the task may have ended, or be forgotten."""
        batch = [self.sent[id] for id in self.some(list(self.sent), picked)]
        gone = [s for s in batch if any(e.parent_id not in self.model.tasks for e in s.depends_on)]
        batch = [s for s in batch if s not in gone]
        if not same:
            batch += [self.submission(id=s.id, unique_slot=s.unique_slot) for s in batch]
        self.both(self.model.submit(batch), lambda side: submit.submit(batch))
