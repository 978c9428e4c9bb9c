"""What the claimer does with rows that cannot be run.

Owns two cases, both rare and neither the row's neighbours' fault. A row that was claimed and cannot
be read is ended: FAILED, INVALID_ROW. A row because of which the store refuses a whole claim, or a
start, is found by trying one by one, and set aside.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

from holdfast.core.errors import StoreUnavailable
from holdfast.core.records import ClaimedTask, Refused
from holdfast.core.text import one_line
from holdfast.runtime.supervisor.duties.unknown_commits import UnknownCommits
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.blocked_rows import RefusedRows
from holdfast.runtime.supervisor.state.child_handle import Assignment
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.store import rows
from holdfast.store.protocol import Store
from holdfast.store.row_refused import RowRefused
from holdfast.store.verbs import claims, refusal
from holdfast.store.verbs.claims import Request

log = logging.getLogger("holdfast.worker")

_SAID = 20
"""Rows of one claim that are named in the log one by one."""
_CULPRITS = 50
"""Rows that are found and set aside before the next claim is tried."""


class Refuser:
    """Of the claimer: called from its thread only."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        outage: Outage,
        refused: RefusedRows,
        unknown_commits: UnknownCommits,
        *,
        worker_id: str,
        hostname: str,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._refused = refused
        self._unknown_commits = unknown_commits
        self._worker_id = worker_id
        self._hostname = hostname

    def refuse(self, token: bytes, refused: Sequence[Refused], *, alone: bool) -> None:
        """End claimed tasks whose rows cannot be read; `alone`: nothing else was claimed."""
        for each in refused[:_SAID]:
            log.error(
                "INVALID_ROW: task row %s cannot be read and fails: %s",
                one_line(rows.named(each.key), 100),
                one_line(each.reason, 300),
            )
        if len(refused) > _SAID:
            log.error("INVALID_ROW: and %d more task rows of this claim", len(refused) - _SAID)
        try:
            ended = self._end(token, refused)
        except StoreUnavailable as error:
            # Whoever recovers the lease does the same with them.
            self._outage.noted(error)
            return
        if alone and ended:
            self._ledger.spend([token])

    def _end(self, token: bytes, refused: Sequence[Refused]) -> bool:
        """Whether all of them have ended."""
        try:
            self._store.attempt(
                lambda: refusal.refuse(
                    refused, token=token, hostname=self._hostname, worker_id=self._worker_id
                )
            )
        except RowRefused as error:
            if len(refused) == 1:
                self._refused.add(refused[0].key, error, "end")
                return False
            # All of them are tried.
            ended = [self._end(token, [each]) for each in refused]
            return all(ended)
        return True

    def start(self, given: Sequence[Assignment]) -> None:
        """Start tasks one by one: the store has refused to have them started together."""
        for assignment in given:
            start = claims.start([assignment.begin()], hostname=self._hostname)
            try:
                landings = self._store.run(start)
            except RowRefused as error:
                self._refused.add(assignment.task.key, error, "start")
                self._ledger.give_up(self._ledger.put_back([assignment]))
                continue
            for child, runs in self._ledger.started([assignment], landings):
                child.run(runs)

    def claim(self, request: Request) -> Sequence[ClaimedTask]:
        """Claim one task that can be claimed, and set aside those before it that cannot."""
        for _ in range(_CULPRITS):
            alone = request._replace(
                token=os.urandom(16), wanted=1, child=None, aside=self._refused.keys
            )
            blamed = self._store.run(
                claims.candidate(
                    alone.queue, known=alone.known, after=alone.after, aside=alone.aside
                )
            )
            try:
                claimed = self._store.run(claims.claim(alone))
            except StoreUnavailable as error:
                if error.commit_unknown:
                    self._unknown_commits.of_claim(alone.token)
                raise
            except RowRefused as error:
                if blamed is not None:
                    self._refused.add(blamed, error, "claim")
                continue
            if claimed.refused:
                self.refuse(alone.token, claimed.refused, alone=True)
            return claimed.tasks
        return ()
