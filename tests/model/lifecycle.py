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

PAST = ("completed", "failed", "stalled", "cancelled", "expired", "dropped", "scheduled")
KNOWN = ("t@1",)


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
        plain = [self.submission(policy=policy) for policy in policies]
        self.submit_all(*plain[:1], *steps, last, *plain[1:])
        for wanted in running:
            self.begin_runs(self.take("a", wanted, KNOWN, 5))
        for wanted in claimed:
            self.take("a", wanted, KNOWN, 30)

    def happen(self, what: str, policy: int) -> None:
        """One task of another queue that has come to this."""
        given: dict[str, Any] = {"queue_name": "b", "policy": policy}
        given["delay_us"] = 20 * SECOND if what == "scheduled" else None
        given["good_for"] = {"expired": 1, "scheduled": 60}.get(what)
        sent = self.submission(**given)
        self.submit_all(sent)
        match what:
            case "completed" | "failed" | "stalled":
                claims = self.take("b", 1, KNOWN, 5)
                self.begin_runs(claims)
                self.act(claims, {"failed": "fail", "stalled": "silence"}.get(what, "complete"))
            case "cancelled":
                self.cancel_all([sent.id])
            case "expired":
                self.let_pass(1)
                self.expire_all()
            case "dropped":
                self.drop_all("b", (), -1)
