"""What the claimer does when a claim or a start has not gone as planned.

Owns what has to be given back: claims and starts whose commit was not answered, and claimed tasks
whose rows another transaction holds. Invariant: an unknown commit is resolved before any other
claim; until then these tasks are ours, and no other worker touches them. What may have landed
unseen is handed back at no cost. A task whose row is held by another transaction is set aside and
tried again; the rest does not wait for it.

Owns rows that cannot be run, too, which are rare, and must not affect other rows. A row that was
claimed and cannot be read is ended: FAILED, INVALID_ROW. A row because of which the store refuses a
whole claim, or a start, is found by trying one by one, and passed over.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from holdfast.core.decide import Change
from holdfast.core.errors import StoreUnavailable
from holdfast.core.lifecycle import Verb
from holdfast.core.records import ClaimedTask, Refused
from holdfast.core.status import TaskStatus
from holdfast.core.text import one_line
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.blocked_rows import RefusedRows
from holdfast.runtime.supervisor.state.child_handle import Assignment
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.outcome_queue import SetAside
from holdfast.runtime.supervisor.task_log import named
from holdfast.store import rows
from holdfast.store.op import Key, at_once
from holdfast.store.protocol import Store
from holdfast.store.row_refused import RowRefused
from holdfast.store.verbs import claims, leases, refusal
from holdfast.store.verbs.claims import Request

log = logging.getLogger("holdfast.worker")

INTERRUPTED = Change(verb=Verb.INTERRUPT, target=TaskStatus.PENDING)
_SAID = 20
"""Rows of one claim that are named in the log one by one."""
_CULPRITS = 50
"""Rows that are found and set aside before the next claim is tried."""


@dataclass(slots=True, eq=False)
class _Open:
    token: bytes
    tasks: Sequence[ClaimedTask] | None
    """None: whatever the claim took."""


class UnknownCommits:
    """Of one duty: called from its thread only."""

    def __init__(self, store: Store, ledger: Ledger, outage: Outage) -> None:
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._open: list[_Open] = []
        self._aside: SetAside[_Open] = SetAside()
        self.is_open = False
        """Whether there is anything to give back."""

    def of_claim(self, token: bytes) -> None:
        """Whether this claim took anything is not known."""
        self._open.append(_Open(token, None))
        self.is_open = True

    def of_tasks(self, tasks: Iterable[ClaimedTask]) -> None:
        """What became of these tasks, which were ours, is not known; or they are to go back."""
        by_token: dict[bytes, list[ClaimedTask]] = defaultdict(list)
        for task in tasks:
            by_token[task.token].append(task)
        self._open += [_Open(token, some) for token, some in by_token.items()]
        self.is_open = bool(self._open or self._aside)

    @property
    def until_due(self) -> float:
        """Seconds until something held is to be tried again."""
        return self._aside.until_due

    def settle(self) -> bool:
        """Give back what may have landed unseen; False while the store cannot be asked."""
        self._open += self._aside.due()
        while self._open:
            one = self._open[-1]
            keys = None if one.tasks is None else [task.key for task in one.tasks]
            held: Collection[Key] | None = None
            try:
                done = self._store.run(at_once(leases.hand_back(one.token, INTERRUPTED, keys=keys)))
                held = done.held
            except StoreUnavailable as error:
                self._outage.noted(error)
                if not error.locked:
                    self._outage.wait()
                    return False
                # Something that one of them has to write, further away.
                held = keys
            except RowRefused as error:
                log.error(
                    "tasks that this worker does not run cannot be given back: the store refuses "
                    "to have them written (%s); they stay claimed until their lease has run out",
                    one_line(str(error)),
                )
                self._open.pop()
                self._aside.settled(one)
                self._ledger.leave_to_lease(one.tasks or ())
                self._ledger.set_held_back(self._held_back())
                continue
            self._outage.over()
            self._open.pop()
            self._settled(one, held)
        self.is_open = bool(self._aside)
        return True

    def _settled(self, one: _Open, held: Collection[Key] | None) -> None:
        """Forget what was given back, and set aside what another transaction holds."""
        given_back: list[ClaimedTask] = []
        if one.tasks is not None and held is not None:
            given_back = [task for task in one.tasks if task.key not in held]
            one.tasks = [task for task in one.tasks if task.key in held]
        if held or held is None:
            self._aside.add(one, one)
        else:
            self._aside.settled(one)
        self._ledger.forget(given_back)
        self._ledger.set_held_back(self._held_back())
        self._ledger.held_rows.free("task", (task.id for task in given_back))
        for task in one.tasks or ():
            label = f"the row of {named(task)}, which is to go back,"
            self._ledger.held_rows.held("task", task.id, label)

    def _held_back(self) -> int:
        return sum(len(other.tasks or ()) for other in self._aside)


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
            # The worker that recovers the lease does the same with them.
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
                self._ledger.leave_to_lease(self._ledger.put_back([assignment]))
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
