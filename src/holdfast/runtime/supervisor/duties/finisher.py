"""The finisher: ended runs → `decide` → one transaction.

Invariant: an outcome that arrived is written exactly once, or was refused because the claim
was lost; its token is renewed until then.

It takes whatever has gathered while its last commit ran: no timer, so one task alone is not
delayed, and batches form by themselves under load. A row that the store refuses fails
alone: the batch is halved until it is found. While the store is away outcomes stay here.

A row that another transaction holds delays no other: the batch is written without it, and it
is set aside and tried again, without waiting for it, until it can be written.

Failure: a commit whose answer was lost is repeated; rows that are then lost but have an
attempt row with our token had landed the first time.
"""

from __future__ import annotations

import logging
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from time import monotonic

import msgspec

from holdfast.core.decide import decide
from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import StoreUnavailable
from holdfast.core.outcome import Failed, Returned
from holdfast.core.records import Answer, ClaimedTask, Landing
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus
from holdfast.core.text import one_line
from holdfast.core.watching import Handled
from holdfast.runtime.supervisor.children.questions import RemoteHooks
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.child_handle import ChildHandle, ChildState
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.outcome_queue import Finished
from holdfast.runtime.supervisor.state.run_counts import HANDED_OVER, RunCounts, counted_as
from holdfast.runtime.supervisor.task_log import TaskLog, named
from holdfast.runtime.watch import WorkerWatch, handled
from holdfast.store.op import Channel, Key, Op, apart, at_once, came_free
from holdfast.store.protocol import Store
from holdfast.store.verbs import finish, inspect
from holdfast.store.verbs.finish import NO_EXTRAS, Completion, Extras, RunChange

log = logging.getLogger("holdfast.worker")

MOST = 1000
_KEY = attrgetter("assignment.task.key")
_ROLLED_BACK = TaskError.ours(
    ErrorCode.COMPLETION_ROLLED_BACK,
    "the task called complete_in and returned, but its transaction was not committed",
)
_TALLY_EVERY = 1.0
_TALLY_LATER = 10.0
"""When somebody may be holding our counters."""
_MOST_HALVINGS = 4
_SUMMED_AS: dict[str, str] = {
    "completed": "completed",
    HANDED_OVER: "completed",
    "failed": "failed",
    "retried": "retried",
    "snoozed": "retried",
    "interrupted": "retried",
}
"""How a worker's own report names what it counts; the rest is `other`."""
_COMPLETED_ITSELF = Landing(Answer.LANDED, TaskStatus.COMPLETED)
_task_logger = logging.getLogger("holdfast.task")


class Finisher:
    """A duty: call `tick` from one thread only."""

    name = "finisher"

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        outage: Outage,
        remote_hooks: RemoteHooks,
        *,
        worker_id: str,
        kill: Callable[[ChildHandle], None],
        put_off: Callable[[], None],
        scheduled_run_ended: Callable[[], None] = lambda: None,
        task_log: TaskLog | None = None,
        watch: WorkerWatch | None = None,
    ) -> None:
        self._watch = watch or WorkerWatch()
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._remote_hooks = remote_hooks
        self._task_log = task_log or TaskLog()
        self._kill = kill
        self._worker_id = worker_id
        self._put_off = put_off
        """Called when a task was put off to a later time, which may be a soon one."""
        self._scheduled_run_ended = scheduled_run_ended
        """Called when a task that a schedule had sent may have ended: the next may wait for it."""
        self._counts = RunCounts()
        self._tally_at = monotonic() + _TALLY_EVERY
        self._unsure = False

    def tick(self) -> float:
        """Wait for ended runs, then write all there are."""
        batch, again = self._ledger.outcomes.take(MOST, _TALLY_EVERY)
        if batch:
            if any(done.committed for done in batch):
                batch = self._reread(batch)
            # A claim that was lost may end together with the one that came after it; a write
            # answers for each task, so it cannot answer for both.
            for part in apart(batch, _KEY):
                self._write(part)
        elif self._counts and monotonic() >= self._tally_at:
            self._write([])
        for part in apart(again, _KEY):
            self._write(part, waits=False)
        if self._task_log.has_left_out:
            self._task_log.flush()
        return 0.0

    def _write(self, batch: list[Finished], *, waits: bool = True, halvings: int = 0) -> None:
        completions, changes = self._decide(batch)
        extras = self._extras(batch, tallies=waits)

        def make() -> Op[dict[Key, Landing]]:
            if waits:
                return finish.finish(completions, changes, extras)
            return at_once(finish.finish(completions, changes, extras, skip_locked=True))

        began = self._watch.begin() if batch else 0
        try:
            answers = self._store.attempt(make)
            if self._unsure:
                answers = self._look_again(batch, answers)
        except StoreUnavailable as error:
            self._watch.ended(began, lambda: (), type(error).__name__)
            if error.locked:
                self._held_up(batch, extras, waits, halvings)
            else:
                self._away(batch, error)
            return
        except MemoryError:
            self._away(batch, StoreUnavailable("this worker has no memory to write outcomes with"))
            return
        except Exception as error:  # noqa: BLE001 - an outcome is never lost for a row nobody foresaw
            if extras.tallies:
                # Counters that somebody wrote by hand may not be counted up any further.
                self._counts.clear()
                log.error("statistics were refused and are dropped: %s", one_line(str(error), 300))
                self._write(batch, waits=waits)
            else:
                self._refused(batch, error, waits)
            return
        if self._outage.is_unsettled:
            self._outage.over()
        # Of one that is held it is still not known whether its end had landed.
        self._unsure = self._unsure and any(
            landing.answer is Answer.BUSY for landing in answers.values()
        )
        if extras.tallies:
            self._counts.clear()
            self._tally_at = monotonic() + _TALLY_EVERY
        self._watch.ended(began, lambda: _landed(batch, answers), error=None)
        self._settle(batch, answers)
        if changes or _task_logger.isEnabledFor(logging.DEBUG):
            self._tell(batch, changes, answers)
        if any(landing.status is TaskStatus.SCHEDULED for landing in answers.values()):
            self._put_off()
        if any(done.assignment.task.schedule_tick is not None for done in batch):
            self._scheduled_run_ended()
        self._run_hooks(batch, changes, answers)

    def _run_hooks(
        self, batch: Sequence[Finished], changes: Sequence[RunChange], answers: dict[Key, Landing]
    ) -> None:
        """Have some child run the hooks of tasks whose own child is dead."""
        orphans = {d.assignment.task.key: d.assignment for d in batch if d.orphaned}
        for run in changes if orphans else ():
            landing = answers.get(run.key)
            if run.key in orphans and landing is not None and landing.status is not None:
                self._remote_hooks.orphaned(orphans[run.key], run.change, landing.status)

    def _tell(
        self, batch: Sequence[Finished], changes: Sequence[RunChange], answers: dict[Key, Landing]
    ) -> None:
        """Have the log say what became of these runs."""
        by_key = {run.key: run.change for run in changes}
        completions = _task_logger.isEnabledFor(logging.DEBUG)
        for done in batch:
            assignment = done.assignment
            task = assignment.task
            landing = answers.get(task.key, _COMPLETED_ITSELF)
            change = by_key.get(task.key)
            if landing.answer is not Answer.LANDED:
                continue
            if change is None:
                if completions:
                    self._task_log.completed(task, assignment.attempt, done.run_us)
            else:
                self._task_log.ended(
                    task,
                    assignment.attempt,
                    done.outcome,
                    change,
                    landing.status or change.target,
                    assignment.policy,
                    done.run_us,
                )

    def _reread(self, batch: list[Finished]) -> list[Finished]:
        """Ask the rows of tasks that say they have completed themselves (`complete_in`).

        A task that returned without having committed has lied, or its transaction is still
        open somewhere: its child is ended first, so that nothing can commit any more, and the
        row is asked again.
        """
        told = {d.assignment.task.id: d for d in batch if d.committed}
        try:
            statuses = self._store.run(inspect.statuses(list(told)))
        except StoreUnavailable as error:
            self._outage.noted(error)
            self._ledger.outcomes.put_off(told.values())
            self._outage.wait()
            return [done for done in batch if not done.committed]
        kept: list[Finished] = []
        for done in batch:
            if not done.committed or statuses.get(done.assignment.task.id) is TaskStatus.COMPLETED:
                kept.append(done)
            elif done.assignment.child.state is ChildState.DEAD:
                kept.append(
                    Finished(done.assignment, Failed(_ROLLED_BACK), done.usage, done.run_us)
                )
            else:
                self._kill(done.assignment.child)
                self._ledger.outcomes.put_off([done])
        return kept

    def _decide(self, batch: Sequence[Finished]) -> tuple[list[Completion], list[RunChange]]:
        completions: list[Completion] = []
        changes: list[RunChange] = []
        for done in batch:
            assignment = done.assignment
            task, pid = assignment.task, assignment.child.pid
            if done.committed:
                continue
            if isinstance(done.outcome, Returned):
                # As `decide` would say, whatever the task and its policy.
                completions.append(
                    Completion(
                        task.key,
                        task.token,
                        done.outcome.result,
                        pid,
                        done.usage,
                        task.workflow_id is not None,
                    )
                )
            else:
                change = decide(task, done.outcome, assignment.policy, random.random)
                changes.append(
                    RunChange(task.key, task.token, change, pid, self._worker_id, done.usage)
                )
        return completions, changes

    def _settle(self, batch: Sequence[Finished], answers: dict[Key, Landing]) -> None:
        busy: list[Finished] = []
        ended: list[ClaimedTask] = []
        runs: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
        waits: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        came_back: set[str] = set()
        ahead_us = self._ledger.ahead_us
        for done in batch:
            task = done.assignment.task
            landing = answers.get(task.key, _COMPLETED_ITSELF)
            if landing.answer is Answer.BUSY:
                busy.append(done)
                continue
            ended.append(task)
            if landing.answer is not Answer.LOST:
                kind = counted_as(landing.status, done.outcome)
                runs[task.queue_name, task.task_name, kind].append(done.run_us)
                if landing.status is TaskStatus.PENDING:
                    came_back.add(task.queue_name)
                given_at = done.assignment.given_at
                if given_at and ahead_us is not None:
                    wait_us = round(given_at * 1_000_000) + ahead_us - task.enqueued_at
                    waits[task.queue_name, task.task_name].append(max(0, wait_us))
                continue
            log.warning(
                "%s: its lease was lost; what attempt %d came to is discarded",
                named(task),
                done.assignment.attempt,
            )
        totals: Counter[str] = Counter()
        for (queue, name, kind), took in runs.items():
            totals[_SUMMED_AS.get(kind, "other")] += len(took)
            self._counts.ran(queue, name, kind, took)
        freed = self._ledger.gated.freed_by(ended)
        self._ledger.settled(ended, came_back=came_back, freed=freed, totals=totals)
        if freed:
            # Others may be waiting for the room that this has made.
            said = [came_free(scope, self._worker_id) for scope in sorted(freed)]
            self._store.hint(Channel.READY, said)
        if busy:
            self._set_aside(busy)
        if self._ledger.held_rows.has_any:
            self._ledger.held_rows.free("task", (task.id for task in ended))
        for (queue, name), waited_us in waits.items():
            self._counts.waited(queue, name, waited_us)

    def _held_up(self, batch: list[Finished], extras: Extras, waits: bool, halvings: int) -> None:
        """Another transaction holds one of the rows: write the others."""
        if extras.tallies:
            self._tally_at = monotonic() + _TALLY_LATER
        if waits:
            if batch:
                self._write(batch, waits=False)
        elif len(batch) > 1 and halvings < _MOST_HALVINGS:
            # Not a task of the batch is held, which would have been skipped, but something further
            # away that one of them has to write.
            self._write_halves(batch, waits=False, halvings=halvings + 1)
        else:
            self._set_aside(batch)

    def _write_halves(self, batch: list[Finished], *, waits: bool, halvings: int = 0) -> None:
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            self._write(half, waits=waits, halvings=halvings)

    def _set_aside(self, batch: Sequence[Finished]) -> None:
        self._ledger.outcomes.set_aside(batch)
        for done in batch:
            task = done.assignment.task
            label = f"the row of {named(task)}, which has ended,"
            self._ledger.held_rows.held("task", task.id, label)

    def _extras(self, batch: Sequence[Finished], *, tallies: bool) -> Extras:
        notes = [done.note for done in batch if done.note is not None]
        logs = [done.printed for done in batch if done.printed is not None]
        due = tallies and monotonic() >= self._tally_at
        counted = self._counts.tallies(self._worker_id) if due else []
        return Extras(notes, logs, counted) if notes or logs or counted else NO_EXTRAS

    def _away(self, batch: Sequence[Finished], error: StoreUnavailable) -> None:
        """Keep the outcomes and try again; the keeper decides when that has no sense any more."""
        self._outage.noted(error)
        self._unsure = self._unsure or error.commit_unknown
        self._ledger.outcomes.put_back(batch)
        self._outage.wait()

    def _look_again(
        self, batch: Sequence[Finished], answers: dict[Key, Landing]
    ) -> dict[Key, Landing]:
        missing = [
            (done.assignment.task.key, done.assignment.task.token)
            for done in batch
            if answers.get(done.assignment.task.key, Landing(Answer.LANDED)).answer is Answer.LOST
        ]
        if not missing:
            return answers
        landed = self._store.run(finish.ended_under(missing))
        return answers | {key: Landing(Answer.LANDED) for key, _ in landed}

    def _refused(self, batch: list[Finished], error: Exception, waits: bool) -> None:
        """Find the row that the store refuses, and let it alone fail."""
        if len(batch) != 1:
            if batch:
                self._write_halves(batch, waits=waits)
            return
        done = batch[0]
        task, why = done.assignment.task, one_line(str(error), 300)
        if done.note is not None or done.printed is not None:
            # Its end matters more than what it said.
            log.error("%s: what it noted and printed is dropped: %s", named(task), why)
            self._write([msgspec.structs.replace(done, note=None, printed=None)], waits=waits)
        elif isinstance(done.outcome, Failed):
            log.error(
                "%s: the store refuses to have its end written, so it stays as it is until its "
                "lease has run out: %s",
                named(task),
                why,
            )
            self._ledger.leave_to_lease([task])
        else:
            reason = TaskError.ours(
                ErrorCode.RESULT_NOT_SERIALISABLE, f"the store refused the result: {error}"
            )
            failed = Finished(done.assignment, Failed(reason), done.usage, done.run_us)
            self._write([failed], waits=waits)


def _landed(batch: Sequence[Finished], answers: dict[Key, Landing]) -> Iterator[Handled]:
    """What was written, for whoever watches."""
    for done in batch:
        task = done.assignment.task
        landing = answers.get(task.key, _COMPLETED_ITSELF)
        if landing.answer not in (Answer.BUSY, Answer.LOST):
            status = landing.status or TaskStatus.COMPLETED
            yield handled(task)._replace(outcome=status.value.lower())
