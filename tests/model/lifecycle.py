"""All rules together, and where every example begins: with work under way."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from holdfast.core.records import Edge
from tests.model.machine import WORKFLOWS, pick
from tests.model.operating import Operating
from tests.model.sending import Sending
from tests.model.working import Working


class Lifecycle(Sending, Working, Operating):
    """Every verb of the lifecycle."""

    @initialize(
        policies=st.lists(pick, min_size=2, max_size=4),
        running=st.integers(0, 4),
        claimed=st.integers(0, 2),
        workflow=st.sampled_from(WORKFLOWS),
    )
    def begin(self, policies: list[int], running: int, claimed: int, workflow: bytes) -> None:
        """Some plain tasks, and two steps with a third that waits for both."""
        given: dict[str, Any] = {"workflow_id": workflow, "policy": policies[0]}
        steps = [self.submission(**given) for _ in range(2)]
        last = self.submission(**given, depends_on=[Edge(s.id) for s in steps])
        plain = [self.submission(policy=policy) for policy in policies]
        self.submit_all(*plain[:1], *steps, last, *plain[1:])
        if running:
            self.begin_runs(self.take("a", running, ("t@1",), 5))
        if claimed:
            self.take("a", claimed, ("t@1",), 30)
