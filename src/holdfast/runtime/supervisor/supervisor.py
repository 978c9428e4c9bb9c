"""The supervisor: a worker, put together.

Owns the threads and the order in which they start and stop. It imports no user code and
runs none: it starts the template, learns from it what the application is, opens the store,
and lets every duty run in a thread of its own.

    message_loop     hears children          claimer      claims, starts, hands over
    time_limits      time limits             finisher     writes how runs ended
    lease_keeper     leases                  maintenance  promotes, expires, recovers
    request_poller   cancel requests         reporter     registration, snapshots
    hint_listener    hints                   janitor      retention
    evidence         output, progress        dropper      what nobody knows, if that is wanted

A duty that keeps raising ends the worker: its leases run out, and other workers take over.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from math import inf
from time import monotonic

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.queue_choice import QueueChoice
from holdfast.runtime.reaper import reap
from holdfast.runtime.supervisor.children.listening import Listening
from holdfast.runtime.supervisor.children.message_loop import MessageLoop
from holdfast.runtime.supervisor.children.pool import ChildPool
from holdfast.runtime.supervisor.children.questions import RemoteHooks, StackQueries
from holdfast.runtime.supervisor.children.template_keeper import TemplateKeeper
from holdfast.runtime.supervisor.children.template_process import TemplateProcess
from holdfast.runtime.supervisor.duties.claimer import Claimer
from holdfast.runtime.supervisor.duties.dropper import Dropper
from holdfast.runtime.supervisor.duties.evidence_recorder import EvidenceRecorder
from holdfast.runtime.supervisor.duties.finisher import Finisher
from holdfast.runtime.supervisor.duties.hint_listener import HintListener
from holdfast.runtime.supervisor.duties.janitor import Janitor
from holdfast.runtime.supervisor.duties.lease_keeper import LeaseKeeper
from holdfast.runtime.supervisor.duties.lock_watch import LockWatch
from holdfast.runtime.supervisor.duties.maintenance import Maintenance
from holdfast.runtime.supervisor.duties.reporter import Reporter
from holdfast.runtime.supervisor.duties.request_poller import RequestPoller
from holdfast.runtime.supervisor.duties.time_limits import TimeLimits
from holdfast.runtime.supervisor.duty import Duty, Loop, NoThread
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.relay.server import RelayServer
from holdfast.runtime.supervisor.shutdown import Shutdown
from holdfast.runtime.supervisor.state.assignment import Assignment
from holdfast.runtime.supervisor.state.child_handle import ChildHandle, ChildState
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.queue_source import sources
from holdfast.runtime.supervisor.state.refused_rows import RefusedRows
from holdfast.runtime.supervisor.status_report import report
from holdfast.runtime.supervisor.task_log import TaskLog
from holdfast.runtime.supervisor.wake_pipe import WakePipe
from holdfast.runtime.wire.messages import Kind, KnownTask, Manifest
from holdfast.store.protocol import Store
from holdfast.store.verbs.claims import known_name

log = logging.getLogger("holdfast.worker")

_STEP = 0.05
_REST = 1.0
"""Seconds after which the main thread looks around although nothing stirs."""
_PROMPT = 1.0
"""Seconds that everything else waits for a first child."""
_LAST_WORDS = 5.0
_MOST_SHOWN = 10
_LARGEST_BATCH = 64 * 1024 * 1024
_STOP_FIRST = frozenset(
    {"claimer", "hint_listener", "request_poller", "janitor", "dropper", "reporter", "lock_watch"}
)
"""Duties that no running task needs."""


class Supervisor:
    """One worker. `run` blocks until it has stopped; `stop` may come from anywhere."""

    def __init__(
        self,
        template: TemplateProcess,
        manifest: Manifest,
        store: Store,
        options: WorkerOptions,
        *,
        version: str,
        owns_process: bool = False,
        ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.worker_id = os.urandom(8).hex()
        self.options = options
        self.manifest = manifest
        self._store = store
        self._ready = ready
        self._failure: tuple[str, BaseException] | None = None
        self._is_asked = False
        self._owns_process = owns_process
        self._stirred = WakePipe()
        hostname = socket.gethostname()
        found = sources(_queues(options, manifest.tasks), manifest.tasks)
        self.ledger = Ledger(options, manifest.tasks)
        self._outage = Outage(options.gap / 2)
        task_log = TaskLog()
        lock_watch = LockWatch(store, self.ledger.held_rows)
        self._evidence = EvidenceRecorder(store, self.ledger, self._outage)
        self._hint_listener = HintListener(
            store,
            self._outage,
            poll=options.poll,
            ready=self._heard,
            paused=self._paused,
            ended=self._ended,
        )
        self._relay = RelayServer(
            store,
            follow_endings=self._hint_listener.follow_endings,
            held_rows=self.ledger.held_rows,
        )
        self._stack_queries = StackQueries()
        self._remote_hooks = RemoteHooks(self.ledger, manifest.hooks)
        listening = Listening()
        self._pool = ChildPool(
            template,
            self.ledger,
            pool_size(options, manifest.tasks),
            joined=listening.joined,
            stuck=listening.stuck,
            # The largest message of a child is a batch of sends, or results that ended together.
            largest_frame=_LARGEST_BATCH + 2 * int(manifest.settings.get("max_payload", 0)),
        )
        listening.listen_to(template)
        self._template_keeper = TemplateKeeper(
            template,
            manifest.tasks,
            self._pool,
            self.ledger,
            listening,
            failed=self._failed,
            stir=self._stirred.ring,
        )
        self._message_loop = MessageLoop(
            self.ledger,
            listening,
            self._pool,
            self._template_keeper,
            evidence=self._evidence,
            relay=self._relay,
            stacked=self._stack_queries.answered,
            told=self._remote_hooks.told,
        )
        self._time_limits = TimeLimits(self.ledger, self._pool)
        aside = RefusedRows()
        self._claimer = Claimer(
            store,
            self.ledger,
            found,
            self._outage,
            worker_id=self.worker_id,
            hostname=hostname,
            aside=aside,
        )
        self._reporter = Reporter(
            store,
            self.ledger,
            self._outage,
            worker_id=self.worker_id,
            hostname=hostname,
            version=version,
            tasks=manifest.tasks,
            sources=found,
            task_log=task_log,
        )
        self._shutdown = Shutdown(
            self.ledger, self._pool, self._time_limits, announce=self._reporter.farewell
        )
        maintenance = Maintenance(
            store,
            options,
            self._outage,
            promoted=lambda: self._claimer.rung(frozenset()),
            told_time=self.ledger.learn_time,
            task_log=task_log,
            aside=aside,
        )
        self._maintenance = Loop(maintenance, self._failed)
        lease_keeper = LeaseKeeper(store, self.ledger, self._outage, stop_code=self._lost)
        self._time_limits.judge = lease_keeper.judge
        duties: list[Duty] = [
            self._message_loop,
            self._time_limits,
            Finisher(
                store,
                self.ledger,
                self._outage,
                self._remote_hooks,
                worker_id=self.worker_id,
                kill=self._kill,
                put_off=self._maintenance.wake,
                task_log=task_log,
            ),
            lease_keeper,
            self._evidence,
            self._claimer,
            RequestPoller(store, self.ledger, self._outage, stack_queries=self._stack_queries),
            self._hint_listener,
            self._reporter,
            Janitor(store, options, self._outage),
            lock_watch,
        ]
        if options.drop_unknown_after is not None:
            known = [known_name(task.name, task.version) for task in manifest.tasks]
            duties.append(Dropper(store, options, self._outage, known=known))
        self._loops = {duty.name: Loop(duty, self._failed) for duty in duties}
        self.ledger.held_rows.wake = self._loops[lock_watch.name].wake
        self._queues = list(dict.fromkeys(source.queue for source in found))

    def run(self) -> int:
        """Work until asked to stop; the exit code."""
        try:
            self._begin()
        except NoThread:
            self._end()
            raise
        log.info(
            "worker %s is at work on %s: queues %s, %d task(s), %s",
            self.worker_id,
            self._store.settings.masked,
            _list(self._queues),
            len(self.manifest.tasks),
            _describe(self._pool_wanted()),
        )
        log.info("to see its tasks: holdfast tasks list --app %s", self.manifest.app_name)
        self._ready()
        try:
            while self._failure is None and not self._shutdown.step():
                if self.options.burst and self._is_drained():
                    self._shutdown.ask()
                self._template_keeper.step()
                self._answer()
                self._reap()
                busy = self.options.burst or self._shutdown.asked
                self._stirred.wait(_STEP if busy else _REST)
        finally:
            self._end()
        return self._exit_code()

    def _begin(self) -> None:
        """Start every thread; what a first task does not need does not keep it waiting."""
        with self.ledger.lock:
            self._pool.fill()
        try:
            # While the first children are being made.
            self._reporter.register()
        except BaseException:
            self._pool.end()
            raise
        self._loops["message_loop"].start()
        prompt = self._await_child(_PROMPT)
        if prompt:
            self._open()
        self._maintenance.start()
        for name, loop in self._loops.items():
            if name not in ("message_loop", "claimer"):
                loop.start()
        if not prompt:
            self._await_child(inf)
            self._open()

    def _await_child(self, patience: float) -> bool:
        """Wait until a child can take a task, so that hooks of the worker have one to run in."""
        deadline = monotonic() + patience
        while not self._shutdown.asked and self._failure is None and self._pool_wanted():
            with self.ledger.lock:
                if any(m.state is ChildState.READY for m in self.ledger.children.values()):
                    return True
                if monotonic() >= deadline:
                    return False
                self.ledger.work.wait(_STEP)
            self._template_keeper.step()
        return False

    def _open(self) -> None:
        self._remote_hooks.worker("worker_started", _LAST_WORDS)
        self._loops["claimer"].start()

    def stop(self) -> None:
        """Ask it to stop; asked again, it hurries. Safe in a signal handler."""
        self._shutdown.ask()
        self._stirred.ring()

    def tell(self) -> None:
        """Ask it to say what it is doing. Safe in a signal handler."""
        self._is_asked = True
        self._stirred.ring()

    def _answer(self) -> None:
        if not self._is_asked:
            return
        self._is_asked = False
        for line in report(self.ledger, self._queues, self._shutdown.asked):
            if log.isEnabledFor(logging.INFO):
                log.info("%s", line)
            else:
                # Somebody has asked for it.
                sys.stderr.write(f"{line}\n")

    def _reap(self) -> None:
        if self._owns_process:
            with self.ledger.lock:
                children = {child.pid for child in self.ledger.children.values()}
            reap(children | self._template_keeper.pids)

    def _pool_wanted(self) -> dict[Kind, tuple[int, int]]:
        return pool_size(self.options, self.manifest.tasks)

    def _end(self) -> None:
        """Stop every thread, in the order in which they stop needing each other."""
        with self.ledger.lock:
            self._pool.closing = True
            self.ledger.accepting = False
            self.ledger.stir()
        first = [loop for name, loop in self._loops.items() if name in _STOP_FIRST]
        for loop in first:
            loop.stop()
        self._maintenance.stop()
        self._hint_listener.wake()
        with self.ledger.lock:
            self.ledger.stir()
        deadline = monotonic() + _LAST_WORDS
        for loop in first:
            loop.join(max(0.0, deadline - monotonic()))
        self._loops["finisher"].stop()
        with self.ledger.lock:
            self.ledger.outcomes.notify_all()
        self._loops["finisher"].join(max(0.1, deadline - monotonic()))
        # One more tick writes the last lease row's end.
        for name in ("lease_keeper", "evidence_recorder", "time_limits"):
            self._loops[name].stop()
            self._loops[name].join(max(0.1, deadline - monotonic()))
        self._farewell()
        self._remote_hooks.worker("worker_stopping", _LAST_WORDS)
        if self._failure is None:
            self._shutdown.let_leave(min(self.options.grace, _LAST_WORDS))
        self._loops["message_loop"].stop()
        self._message_loop.wake()
        self._loops["message_loop"].join(1.0)
        self._template_keeper.close()
        self._pool.end()
        self._relay.close()
        self._hint_listener.close()
        self._reporter.farewell()
        self._let_go()

    def _let_go(self) -> None:
        """Close everything: this process may live on, with other things to do."""
        if all(loop.join(0.1) for loop in (self._maintenance, *self._loops.values())):
            self._message_loop.close()
            self._store.close()

    def _farewell(self) -> None:
        with self.ledger.lock:
            spent, self.ledger.spent = set(self.ledger.spent), set()
        if spent:
            from holdfast.store.verbs import leases

            try:
                self._store.run(leases.clean(list(spent)))
            except StoreUnavailable:
                # They expire by themselves.
                pass

    def _exit_code(self) -> int:
        if self._failure is not None:
            duty, error = self._failure
            log.critical("the worker's %s failed; it ends", duty, exc_info=error)
            return 70
        if self._shutdown.forced:
            return 1
        log.info("worker %s has stopped", self.worker_id)
        return 0

    def _is_drained(self) -> bool:
        with self.ledger.lock:
            return self.ledger.is_idle and self._claimer.found_nothing

    def _paused(self, queues: frozenset[str]) -> None:
        self._claimer.paused(queues)

    def _ended(self) -> None:
        self._relay.ended()

    def _heard(self, queues: frozenset[str]) -> None:
        self._claimer.rung(queues)
        self._maintenance.wake()

    def _kill(self, child: ChildHandle) -> None:
        with self.ledger.lock:
            child.killed = True
            self._pool.kill(child)

    def _lost(self, assignment: Assignment) -> None:
        self._time_limits.doom(assignment, "lost")

    def _failed(self, duty: str, error: BaseException) -> None:
        self._failure = self._failure or (duty, error)
        self._stirred.ring()


def _queues(options: WorkerOptions, tasks: Sequence[KnownTask]) -> Sequence[QueueChoice]:
    if options.queues:
        return options.queues
    names = dict.fromkeys(task.queue for task in tasks)
    return [QueueChoice(name) for name in names] or [QueueChoice("default")]


def pool_size(options: WorkerOptions, tasks: Sequence[KnownTask]) -> dict[Kind, tuple[int, int]]:
    """For each kind of child: how many there shall be, and how many tasks each runs at a time."""
    kinds = {task.kind for task in tasks}
    sizes: dict[Kind, tuple[int, int]] = {
        "process": (options.concurrency, 1),
        "thread": (1, options.threads),
        "async": (1, options.coroutines),
    }
    return {kind: size for kind, size in sizes.items() if kind in kinds}


def _list(queues: Sequence[str]) -> str:
    shown = ", ".join(queues[:_MOST_SHOWN]) or "none"
    more = len(queues) - _MOST_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _describe(pool: dict[Kind, tuple[int, int]]) -> str:
    words = []
    for kind, (count, lanes) in pool.items():
        words.append(f"{count} process(es)" if kind == "process" else f"{lanes} {kind} lanes")
    return ", ".join(words) or "no children"
