"""All rules together, and where every example begins: with work done and work under way."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from holdfast.core.records import Edge
from tests.model.machine import WORKFLOWS, pick
from tests.model.operating import Operating
from tests.model.sending import Sending
from tests.model.verdict import SECOND
from tests.model.working import Working

PAST = (
    "completed",
    "failed",
    "failed twice",
    "stalled",
    "cancelled",
    "expired",
    "dropped",
    "scheduled",
)
KNOWN = ("t@1",)
RETRIES_AT_ONCE = 2
"""The place of a policy that has a retry without delay."""


class Lifecycle(Sending, Working, Operating):
    """Every verb of the lifecycle."""

    @initialize(
        past=st.lists(st.sampled_from(PAST), max_size=3),
        policies=st.lists(pick, min_size=2, max_size=4),
        running=st.lists(st.integers(1, 2), max_size=2),
        claimed=st.lists(st.just(1), max_size=2),
        workflow=st.sampled_from(WORKFLOWS),
    )
    def begin(
        self,
        past: list[str],
        policies: list[int],
        running: list[int],
        claimed: list[int],
        workflow: bytes,
    ) -> None:
        """Tasks with a past, some plain ones, and two steps with a third that waits for both."""
        for what in past:
            self.happen(what, policies[-1])
        given: dict[str, Any] = {"workflow_id": workflow, "policy": policies[0]}
        steps = [self.submission(**given) for _ in range(2)]
        last = self.submission(**given, depends_on=[Edge(s.id) for s in steps])
        # One has a unique slot, one a retry that may come too late.
        plain = [self.submission(policy=policy) for policy in policies[2:]]
        plain.insert(0, self.submission(policy=policies[0], unique_slot="x", priority=60))
        plain.insert(1, self.submission(policy=1, good_for=5, priority=40))
        self.submit_all(*plain[:2], *steps, last, *plain[2:])
        for wanted in running:
            self.begin_runs(self.take("a", wanted, KNOWN, 5))
        for wanted in claimed:
            self.take("a", wanted, KNOWN, 30)

    def happen(self, what: str, policy: int) -> None:
        """One task of another queue that has come to this."""
        again = what == "failed twice"
        given: dict[str, Any] = {"queue_name": "b", "policy": RETRIES_AT_ONCE if again else policy}
        given["delay_us"] = 20 * SECOND if what == "scheduled" else None
        given["good_for"] = {"expired": 1, "scheduled": 60}.get(what)
        sent = self.submission(**given)
        self.submit_all(sent)
        match what:
            case "completed":
                self.run_one("complete")
            case "failed" | "failed twice":
                for kind in ("retry", "fail")[not again :]:
                    self.run_one(kind)
            case "stalled":
                self.run_one("silence")
            case "cancelled":
                self.cancel_all([sent.id])
            case "expired":
                self.let_pass(1)
                self.expire_all()
            case "dropped":
                self.drop_all("b", (), -1)

    def run_one(self, verb: str) -> None:
        """Claim, start and end the task that stands first in the other queue."""
        claims = self.take("b", 1, KNOWN, 5)
        self.begin_runs(claims)
        self.act(claims, verb)
