"""A worker inside this process, for tests: it runs what there is, and returns.

Owns `run_until_idle`. The real engine and the real lifecycle, without children: tasks run one
after another in the calling thread, so a debugger and a test's own patches reach them; a task
that waits for others has them run meanwhile, inside its own wait. What
only a process of its own can give (time limits, captured output, surviving a crash) is not
here.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import random
import socket
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from time import monotonic, monotonic_ns

from holdfast.core.decide import decide
from holdfast.core.errors import UnreadableRow
from holdfast.core.limiting import LimitBook
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Returned
from holdfast.core.records import Answer, ClaimedTask
from holdfast.core.text import one_line
from holdfast.runtime.application import Application
from holdfast.runtime.child import hooks
from holdfast.runtime.child.context import TaskContext
from holdfast.runtime.child.task_run import TaskPlan, TaskRun
from holdfast.runtime.supervisor.state.child_handle import job_of
from holdfast.runtime.wire.messages import Note
from holdfast.runtime.workflow_steering import WorkflowSteering
from holdfast.store.callers.home import Home
from holdfast.store.protocol import Store
from holdfast.store.verbs import (
    claims,
    declarations,
    declared_limits,
    evidence,
    finish,
    limited_claims,
    limits,
    ticks,
    timing,
)
from holdfast.store.verbs.claims import Begin
from holdfast.store.verbs.evidence import TaskNote
from holdfast.store.verbs.finish import Completion, RunChange
from holdfast.store.verbs.key_walk import KeyPlace

log = logging.getLogger("holdfast.worker")

_BATCH = 50
_LEASE_US = 3_600_000_000
"""Long: nothing renews it, and a debugger may stand still in a task."""


class Inline:
    """Runs the tasks of an application in this thread."""

    def __init__(self, application: Application, store: Store) -> None:
        self._application = application
        self.store = store
        self._worker_id = f"inline-{os.urandom(6).hex()}"
        self._known = [claims.known_name(task.name, task.version) for task in application.tasks]
        self._policies = claims.rules(
            (task.name, task.version, task.task_options) for task in application.tasks
        )
        self._plans = {
            task.key: TaskPlan(
                task,
                self.max_payload,
                hooks.hooks_for(application.hooks, task),
                application.tracing,
            )
            for task in application.tasks
        }
        self._running: ClaimedTask | None = None
        self._names: Sequence[str] = ()
        self._found: deque[ClaimedTask] = deque()
        self._tokens: list[bytes] = []
        self._places: dict[str, KeyPlace] = {}
        """By queue: where the turns of concurrency keys go on."""
        self._steering = WorkflowSteering(store, monotonic)
        self._runs = 0
        self._thread = 0
        """The thread that runs tasks: what another one waits for is not our business."""

    # What `TaskContext` asks of the place it runs in.

    @property
    def home(self) -> Home:
        return self._application.home

    @property
    def max_payload(self) -> int:
        return self._application.config.max_payload

    def waits(self, slot: int, waiting: bool, /) -> None:
        """Code of ours waits for other tasks: there is no other process to run them."""
        if not waiting or threading.get_ident() != self._thread:
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._drain()
        else:
            # The loop of the task that waits is in this thread, and there cannot be another.
            helper = threading.Thread(target=self._drain, name="holdfast-inline")
            helper.start()
            helper.join()

    def note(self, note: Note, /) -> None:
        task = self._running
        assert task is not None
        said = note.progress, note.stage, note.meta, note.heartbeat, note.output
        self.store.run(evidence.write_notes([TaskNote(task.key, task.token, *said)]))

    def run_until_idle(self, queues: Sequence[str] = ()) -> int:
        """Run tasks until none is ready; how many runs there were.

        Tasks that are due are promoted first; one that is due later is left alone, and so is one
        that a limit holds back. What was begun with whole workflows goes on. Schedules that the app
        declares are brought into force, and what is due of any schedule is fired, once.
        """
        self._names = queues or sorted({task.queue for task in self._application.tasks})
        declared = {task.name: task.limits for task in self._application.tasks}
        self.store.attempt(lambda: declared_limits.declare(declared))
        for schedule in self._application.schedules:
            self.store.attempt(partial(declarations.declare, schedule))
        looked: set[str] = set()
        while names := self.store.run(ticks.due(looked)).names:
            looked.update(names)
            while names:
                names = [name for name in names if self._fire(name)]
                self._drain()
        self._drain()
        self.store.run(claims.clean(self._tokens))
        return self._runs

    def _fire(self, name: str) -> bool:
        """Fire what is due of a schedule; whether more waits until that has ended."""
        try:
            done = self.store.attempt(partial(ticks.fire, name, declared_here=True))
        except UnreadableRow as error:
            log.error("schedule %s cannot be fired: %s", one_line(name, 100), error)
            return False
        return done is not None and bool(done.waiting and done.runs)

    def _drain(self) -> None:
        """Run what there is. Once more inside a task that waits for others."""
        outer, self._thread = self._thread, threading.get_ident()
        try:
            while True:
                while self._find():
                    # First run, then count: inside it others may be run, and counted.
                    began = self._run(self._found.popleft())
                    self._runs += began
                # What was begun with whole workflows may give more to run.
                if not self._steering.round():
                    break
        finally:
            self._thread = outer

    def _find(self) -> bool:
        """Claim some more if nothing is left; whether there is something to run."""
        if self._found:
            return True
        while len(self.store.attempt(timing.promote)) == timing.BATCH:
            pass
        self.store.attempt(timing.expire)
        found = next(filter(None, map(self._claim, self._names)), ())
        self._tokens += [task.token for task in found[:1]]
        self._found.extend(found)
        return bool(found)

    def _claim(self, queue: str) -> Sequence[ClaimedTask]:
        """Some tasks of a queue; those that have a limit or a key one by one, as it allows."""
        book = self.store.run(limits.book())
        apart = [
            known for known in self._known if book.limits_whole(queue, claims.task_name_of(known))
        ]
        rest = [known for known in self._known if known not in apart]
        if rest:
            found = self.store.run(claims.claim(self._request(queue, rest, _BATCH, book)))
            if found.tasks:
                return found.tasks
        if apart:
            request = self._request(queue, apart, 1, book)
            limited = self.store.run(limited_claims.claim(request, book))
            if limited.claimed.tasks:
                return limited.claimed.tasks
        place = self._places.get(queue, KeyPlace()).anew()
        while True:
            request = self._request(queue, self._known, 1, book)
            turned = self.store.run(limited_claims.claim_keys(request, book, place))
            self._places[queue] = place = turned.place
            if turned.claimed.tasks or turned.saw_all:
                return turned.claimed.tasks

    def _request(
        self, queue: str, known: Sequence[str], wanted: int, book: LimitBook
    ) -> claims.Request:
        return claims.Request(
            token=os.urandom(16),
            worker_id=self._worker_id,
            queue=queue,
            known=known,
            wanted=wanted,
            lease_us=_LEASE_US,
            policies=self._policies,
            limits_version=book.version,
        )

    def _run(self, task: ClaimedTask) -> int:
        begin = Begin(task.key, task.token, os.getpid(), "inline")
        started = self.store.run(claims.start([begin], hostname=socket.gethostname()))[task.key]
        if started.answer is not Answer.LANDED:
            return 0
        job = job_of(task, 1, started.attempt or 0)
        plan = self._plans[task.task_name, task.version]
        outer, self._running = self._running, task
        try:
            run = TaskRun(plan, job, TaskContext(self, plan.definition, job, monotonic_ns()))
            contextvars.copy_context().run(_perform, run)
        finally:
            self._running = outer
        self._finish(task, run)
        return 1

    def _finish(self, task: ClaimedTask, run: TaskRun) -> None:
        outcome = run.outcome
        if isinstance(outcome, Returned):
            if run.context.completed:
                return
            done = Completion(
                task.key,
                task.token,
                outcome.result,
                os.getpid(),
                in_workflow=task.workflow_id is not None,
            )
            self.store.attempt(lambda: finish.finish([done], []))
        else:
            policy = Policy.decode(task.task_options)
            change = decide(task, outcome, policy, random.random)
            written = RunChange(task.key, task.token, change, os.getpid(), self._worker_id)
            self.store.attempt(lambda: finish.finish([], [written]))


def _perform(run: TaskRun) -> None:
    if run.plan.definition.executor == "async":
        asyncio.run(run.aperform())
    else:
        run.perform(hooks.call)
