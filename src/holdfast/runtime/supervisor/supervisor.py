"""The supervisor: a worker, put together.

Owns the threads and the order in which they start and stop: `Supervisor._duties` is the table of
them. It imports no user code and runs none (but for a watcher, if somebody has asked for one): it
starts the template, learns from it what the application is, opens the store, and lets every duty
run in a thread of its own.

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
from typing import TYPE_CHECKING

from holdfast.core.errors import StoreUnavailable
from holdfast.runtime.options import WorkerOptions
from holdfast.runtime.orphan_guard import reap
from holdfast.runtime.queue_choice import QueueChoice
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
from holdfast.runtime.supervisor.duties.scheduler import Scheduler, known
from holdfast.runtime.supervisor.duties.stats_collector import StatsCollector
from holdfast.runtime.supervisor.duties.time_limits import TimeLimits
from holdfast.runtime.supervisor.duty import Duty, DutyTable, Loop, NoThread, Start, Stop
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.readiness import Readiness
from holdfast.runtime.supervisor.relay.server import RelayServer
from holdfast.runtime.supervisor.shutdown import Shutdown
from holdfast.runtime.supervisor.state.blocked_rows import RefusedRows
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.state.queue_source import sources
from holdfast.runtime.supervisor.status_report import report
from holdfast.runtime.supervisor.task_log import TaskLog
from holdfast.runtime.supervisor.wake_pipe import WakePipe
from holdfast.runtime.watch import load_watch
from holdfast.runtime.wire.messages import Kind, KnownTask, Manifest
from holdfast.store.protocol import Store
from holdfast.store.verbs import claims
from holdfast.store.verbs.claims import known_name
from holdfast.store.verbs.workers import WorkerOrder

if TYPE_CHECKING:
    from holdfast.runtime.supervisor.http_port import HttpPort

log = logging.getLogger("holdfast.worker")

_STEP = 0.05
_REST = 1.0
"""Seconds between checks when nothing wakes the main thread."""
_PROMPT = 1.0
"""Seconds that everything else waits for a first child."""
_STOP_PATIENCE = 5.0
_MOST_SHOWN = 10
_LARGEST_BATCH = 64 * 1024 * 1024


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
        self._changed = WakePipe()
        self._hostname = socket.gethostname()
        self.ledger = Ledger(
            options, manifest.tasks, sources(_queues(options, manifest.tasks), manifest.tasks)
        )
        self._queues = self.ledger.sources.queues
        self._outage = Outage(options.gap / 2)
        self._readiness = Readiness(self._outage, options.poll)
        self._watch = load_watch(options.watcher)
        self._http = self._listen(version)
        self._task_log = TaskLog()
        self._refused = RefusedRows()
        self._maintenance = self._loop(
            Maintenance(
                store,
                options,
                self._outage,
                promoted=lambda: self.ledger.hinted(frozenset()),
                told_time=self._told_time,
                task_log=self._task_log,
                refused=self._refused,
            )
        )
        self._schedules = Scheduler(
            store,
            self._outage,
            worker_id=self.worker_id,
            declared=known(manifest.schedules),
            poll=options.poll,
        )
        self._scheduler = self._loop(self._schedules)
        self._hint_listener = HintListener(
            store,
            self.ledger,
            self._outage,
            wake_timers=self._maintenance.wake,
            wake_schedules=self._scheduler.wake,
            ended=self._task_ended,
            worker_id=self.worker_id,
        )
        self._relay = RelayServer(
            store,
            follow_endings=self._hint_listener.follow_endings,
            held_rows=self.ledger.held_rows,
        )
        self._evidence = EvidenceRecorder(store, self.ledger, self._outage)
        self._stack_queries = StackQueries()
        self._remote_hooks = RemoteHooks(self.ledger, manifest.hooks, manifest.tasks)
        self._pool_size = pool_size(options, manifest.tasks)
        listening = Listening()
        self._pool = ChildPool(
            template,
            self.ledger,
            self._pool_size,
            joined=listening.joined,
            stuck=listening.stuck,
            worker_id=self.worker_id,
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
            stir=self._changed.wake,
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
        self._reporter = Reporter(
            store,
            self.ledger,
            self._outage,
            worker_id=self.worker_id,
            hostname=self._hostname,
            version=version,
            tasks=manifest.tasks,
            task_log=self._task_log,
        )
        self._shutdown = Shutdown(
            self.ledger, self._pool, self._outage, announce=self._reporter.say_leaving
        )
        self._table = self._duties()

    def _duties(self) -> DutyTable:
        """What this worker does, each in its own thread: when that starts, and when it stops."""
        store, ledger, outage, loop = self._store, self.ledger, self._outage, self._loop
        claimer = Claimer(
            store,
            ledger,
            outage,
            worker_id=self.worker_id,
            hostname=self._hostname,
            tasks=self.manifest.tasks,
            refused=self._refused,
            readiness=self._readiness,
            watch=self._watch,
        )
        finisher = Finisher(
            store,
            ledger,
            outage,
            self._remote_hooks,
            worker_id=self.worker_id,
            kill=lambda child: self._pool.kill(child, on_purpose=True),
            put_off=self._maintenance.wake,
            scheduled_run_ended=self._scheduled_run_ended,
            task_log=self._task_log,
            watch=self._watch,
        )
        lease_keeper = LeaseKeeper(store, ledger, outage)
        time_limits = TimeLimits(ledger, self._pool, judge=lease_keeper.judge)
        requests = RequestPoller(
            store,
            ledger,
            outage,
            stack_queries=self._stack_queries,
            worker_id=self.worker_id,
            obey=self.obey,
        )
        evidence = loop(self._evidence)
        self._evidence.wake = evidence.wake
        rows = [
            # hears children: what they say, that they come up, that they die
            (loop(self._message_loop, self._message_loop.wake), Start.FIRST, Stop.LAST),
            # claims tasks, starts them, hands them to children
            (loop(claimer, ledger.wake), Start.CLAIMS, Stop.AT_ONCE),
            # promotes what is due, expires what is too late, recovers what others left
            (self._maintenance, Start.BESIDE, Stop.UNAWAITED),
            # fires the ticks of schedules
            (self._scheduler, Start.BESIDE, Stop.UNAWAITED),
            # ends code that is over its time, cancelled, or silent; children that do not end
            (loop(time_limits), Start.BESIDE, Stop.SETTLED),
            # writes how runs ended
            (loop(finisher, ledger.outcomes.wake), Start.BESIDE, Stop.WRITTEN),
            # renews leases; stops code whose lease may be taken
            (loop(lease_keeper), Start.BESIDE, Stop.SETTLED),
            # writes what running tasks print, and say about themselves
            (evidence, Start.BESIDE, Stop.SETTLED),
            # reads cancel requests, questions where code is, and orders to stop
            (loop(requests), Start.BESIDE, Stop.AT_ONCE),
            # hears hints of the store
            (loop(self._hint_listener, self._hint_listener.wake), Start.BESIDE, Stop.AT_ONCE),
            # registers the worker, and writes how it does
            (loop(self._reporter), Start.BESIDE, Stop.AT_ONCE),
            # removes what is old
            (loop(Janitor(store, self.options, outage)), Start.BESIDE, Stop.AT_ONCE),
            # counts what is sent, and adds up what workers counted
            (loop(StatsCollector(store, outage)), Start.BESIDE, Stop.AT_ONCE),
            # says who holds rows that have to be written
            (loop(LockWatch(store, ledger.held_rows)), Start.BESIDE, Stop.AT_ONCE),
        ]
        if self.options.drop_unknown_after is not None:
            known = [known_name(task.name, task.version) for task in self.manifest.tasks]
            dropper = Dropper(store, self.options, outage, known=known)
            # ends what no worker knows, if that is wanted
            rows.append((loop(dropper), Start.BESIDE, Stop.AT_ONCE))
        return DutyTable(*rows)

    def _listen(self, version: str) -> HttpPort | None:
        """Take the worker's own port, if it should have one; `ConfigError` if it cannot."""
        if self.options.http is None:
            return None
        # Few workers have one; the server's modules take 15 ms to import, and two megabytes.
        from holdfast.runtime.supervisor.http_port import HttpPort
        from holdfast.runtime.supervisor.worker_metrics import WorkerMetrics

        metrics = WorkerMetrics(
            self._store,
            self.ledger,
            self._outage,
            self._readiness,
            worker_id=self.worker_id,
            version=version,
        )
        return HttpPort(self.options.http, why_not=self._readiness.why_not, metrics=metrics.text)

    def _loop(self, duty: Duty, end_wait: Callable[[], None] = lambda: None) -> Loop:
        return Loop(duty, self._failed, end_wait)

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
            _describe(self._pool_size),
        )
        log.info("to see its tasks: holdfast tasks list --app %s", self.manifest.app_name)
        self._ready()
        try:
            while self._failure is None and not self._shutdown.step():
                if self.options.burst and self.ledger.is_drained:
                    self._shutdown.ask()
                self._template_keeper.step()
                self._answer()
                self._reap()
                busy = self.options.burst or self._shutdown.asked
                self._changed.wait(_STEP if busy else _REST)
        finally:
            self._end()
        return self._exit_code()

    def _begin(self) -> None:
        """Start every thread; what a first task does not need does not keep it waiting."""
        self._pool.fill()
        if self._http is not None:
            self._http.start()
        try:
            # While the first children are being made.
            self._reporter.register()
        except BaseException:
            self._pool.end()
            raise
        self._table.start(Start.FIRST)
        prompt = self._await_child(_PROMPT)
        if prompt:
            self._open()
        self._table.start(Start.BESIDE)
        if not prompt:
            self._await_child(inf)
            self._open()

    def _await_child(self, patience: float) -> bool:
        """Wait until a child can take a task, so that hooks of the worker have one to run in."""
        deadline = monotonic() + patience
        while not self._shutdown.asked and self._failure is None and self._pool_size:
            if self.ledger.roster.wait_ready(_STEP):
                return True
            if monotonic() >= deadline:
                return False
            self._template_keeper.step()
        return False

    def _open(self) -> None:
        self._remote_hooks.worker("worker_started", _STOP_PATIENCE)
        self._table.start(Start.CLAIMS)
        self._readiness.is_open = True

    def stop(self) -> None:
        """Ask it to stop; asked again, it hurries. Safe in a signal handler."""
        self._shutdown.ask()
        self._readiness.is_stopping = True
        self._changed.wake()

    def obey(self, order: WorkerOrder) -> None:
        """Stop as an operator has ordered, from wherever."""
        log.info("an operator orders this worker to %s", order.name.lower())
        self._shutdown.obey(order)
        self._readiness.is_stopping = True
        self._changed.wake()

    def tell(self) -> None:
        """Ask it to say what it is doing. Safe in a signal handler."""
        self._is_asked = True
        self._changed.wake()

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
            children = {child.pid for child in self.ledger.roster.all()}
            reap(children | self._template_keeper.pids)

    def _end(self) -> None:
        """Stop every thread, in the order in which they stop needing each other."""
        self._readiness.is_stopping = True
        self._pool.close()
        self.ledger.stop_accepting()
        deadline = monotonic() + _STOP_PATIENCE
        self._table.stop(Stop.UNAWAITED, Stop.AT_ONCE, deadline=deadline)
        self._table.stop(Stop.WRITTEN, deadline=deadline)
        self._table.stop(Stop.SETTLED, deadline=deadline)
        self._remove_leases()
        self._remote_hooks.worker("worker_stopping", _STOP_PATIENCE)
        if self._failure is None:
            self._shutdown.let_leave(min(self.options.grace, _STOP_PATIENCE))
        self._table.stop(Stop.LAST, deadline=monotonic() + 1.0)
        self._template_keeper.close()
        self._pool.end()
        self._relay.close()
        self._hint_listener.close()
        if self._http is not None:
            self._http.close()
        self._reporter.say_stopped()
        # This process may live on, with other things to do.
        if self._table.have_ended():
            self._message_loop.close()
            self._store.close()

    def _remove_leases(self) -> None:
        """Remove the rows of the last leases."""
        spent = self.ledger.take_spent()
        try:
            if spent:
                self._store.run(claims.clean(list(spent)))
        except StoreUnavailable:
            # They expire by themselves.
            pass

    def _exit_code(self) -> int:
        if self._failure is not None:
            duty, error = self._failure
            log.critical("the worker's %s failed; it ends", duty, exc_info=error)
            return 70
        if self._shutdown.forced or self._shutdown.gave_up:
            return 1
        log.info("worker %s has stopped", self.worker_id)
        return 0

    def _told_time(self, now: int) -> None:
        self.ledger.learn_time(now)
        self._readiness.heard()

    def _scheduled_run_ended(self) -> None:
        if self._schedules.awaits_run:
            self._scheduler.wake()

    def _task_ended(self) -> None:
        self._relay.ended()

    def _failed(self, duty: str, error: BaseException) -> None:
        self._failure = self._failure or (duty, error)
        self._changed.wake()


def _queues(options: WorkerOptions, tasks: Sequence[KnownTask]) -> Sequence[QueueChoice]:
    if options.queues:
        return options.queues
    names = dict.fromkeys(task.queue for task in tasks)
    return [QueueChoice(name) for name in names] or [QueueChoice("default")]


def pool_size(options: WorkerOptions, tasks: Sequence[KnownTask]) -> dict[Kind, tuple[int, int]]:
    """For each kind of child: how many there should be, and how many tasks each runs at a time."""
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
