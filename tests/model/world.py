"""Everything the model stores, and what every ending does to it.

Owns the tables, as dictionaries of rows, the common part of all endings, and the counting of
dependencies. With `runs` and `reference` it is a third implementation of the lifecycle, written
from its page and not from the store: of the product it uses only names (statuses, codes, the
words of endings) and the shapes of what verbs are given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from holdfast.core.status import TaskStatus
from holdfast.store.verbs import end_reasons
from holdfast.store.verbs.end_reasons import EndReason

Row: TypeAlias = dict[str, Any]

WAITING, SCHEDULED, PENDING = TaskStatus.WAITING, TaskStatus.SCHEDULED, TaskStatus.PENDING
CLAIMED, RUNNING = TaskStatus.CLAIMED, TaskStatus.RUNNING
COMPLETED, FAILED, CANCELLED = TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED
EXPIRED, STALLED, DROPPED = TaskStatus.EXPIRED, TaskStatus.STALLED, TaskStatus.DROPPED

FAILURES = {FAILED, STALLED, DROPPED, EXPIRED}
UPSTREAM = {
    words.code: words
    for words in (
        end_reasons.UPSTREAM_FAILED,
        end_reasons.UPSTREAM_CANCELLED,
        end_reasons.UPSTREAM_SUCCEEDED,
    )
}
"""Why a step may be skipped, the gravest reason first."""


class World:
    """The tables."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.tasks: dict[bytes, Row] = {}
        self.attempts: dict[tuple[bytes, int], Row] = {}
        self.leases: dict[bytes, Row] = {}
        self.edges: dict[tuple[bytes, bytes], Row] = {}
        self.queues: dict[str, tuple[int | None, str | None]] = {}
        self.slots: dict[bytes, int] = {}
        """Of claimed tasks, what they hold of limits (`limits`)."""

    def among(self, *statuses: TaskStatus) -> list[bytes]:
        """The tasks in these states."""
        return [id for id, task in self.tasks.items() if task["status"] in statuses]

    def name(self, id: bytes) -> str:
        """What a claim has to know."""
        return f"{self.tasks[id]['task_name']}@{self.tasks[id]['version']}"

    def holder(self, slot: str | None) -> bytes | None:
        """The live task that has this unique slot."""
        held = (id for id, task in self.tasks.items() if task["unique_slot"] == slot)
        return None if slot is None else next(held, None)

    def enqueue(self, task: Row, at: int | None) -> None:
        """Claimable from `at`, or from now on."""
        later = at is not None and at > self.now
        task["status"] = SCHEDULED if later else PENDING
        task["due_at"] = at if later else None
        task["enqueued_at"] = at if later else self.now

    def finish(self, task: Row, status: TaskStatus, words: EndReason | None = None) -> None:
        """What every ending does, whichever verb it is; `resolve` has to follow."""
        task |= {"status": status, "finished_at": self.now, "updated_at": self.now}
        task |= {"claim_token": None, "worker_pid": None}
        if task["unique_until"] != "deleted":
            task["unique_slot"] = None
        task |= {"due_at": None, "expire_at": None}
        if status in (FAILED, STALLED, DROPPED):
            task["failed_at"] = self.now
        if words is not None:
            task |= {"result": words.error, "error_code": words.code}
            task["failed_reason"] = words.reason

    def end_by_store(
        self, ids: Iterable[bytes], status: TaskStatus, words: EndReason
    ) -> set[bytes]:
        """Endings that are nobody's claim."""
        ended = set(ids)
        for id in ended:
            task = self.tasks[id]
            self.finish(task, status, words)
            kept = '"dead_letter":false' not in (task["task_options"] or "")
            task["dead"] = status is DROPPED and kept
        self.resolve(ended)
        return ended

    # Dependencies

    def connect(self, parent: bytes, child: bytes, on: str) -> None:
        self.edges[parent, child] = {"on": on, "resolved": False, "satisfied": None}

    def resolve(self, ended: Iterable[bytes]) -> None:
        """These tasks ended: count their open edges, each once, and those of what they skip."""
        parents = set(ended)
        while parents:
            counted: set[bytes] = set()
            for (parent, child), edge in self.edges.items():
                if parent in parents and not edge["resolved"]:
                    self._settle(edge, self.tasks[parent]["status"])
                    self._count(child, -1, -edge["satisfied"])
                    counted.add(child)
            parents = {child for child in counted if self._move_on(child)}

    def _settle(self, edge: Row, status: TaskStatus) -> None:
        wanted = {"success": {COMPLETED}, "failure": FAILURES, "always": set(TaskStatus)}
        edge |= {"resolved": True, "satisfied": status in wanted[edge["on"]]}

    def _count(self, child: bytes, open_: int, needed: int) -> None:
        task = self.tasks[child]
        task["deps_open"] += open_
        task["deps_needed"] += needed
        task["updated_at"] = self.now

    def _move_on(self, child: bytes) -> bool:
        """unblock or skip, if it is time; True if it was skipped."""
        task = self.tasks[child]
        if task["status"] is not WAITING:
            return False
        if task["deps_needed"] <= 0:
            # While its workflow is paused, more of the others cannot make up for that.
            if not self._is_held(child):
                self._unblock(task)
        elif task["deps_needed"] > task["deps_open"]:
            unmet = {
                self._reason(self.tasks[parent])
                for (parent, other), edge in self.edges.items()
                if other == child and edge["resolved"] and not edge["satisfied"]
            }
            # A parent that is deleted takes its edge with it, and what it was to blame for.
            code = min(unmet or UPSTREAM, key=list(UPSTREAM).index)
            self.finish(task, CANCELLED, UPSTREAM[code])
            return True
        return False

    def _unblock(self, task: Row) -> None:
        self.enqueue(task, task["run_at"])
        self.limit(task, task["good_for_us"], task["good_until"])
        task["updated_at"] = self.now

    def limit(self, task: Row, good_for_us: int | None, good_until: int | None) -> None:
        """How long a claim may come: until then, or for so long from when it may come."""
        if good_for_us is not None:
            good_until = max(task["enqueued_at"], self.now) + good_for_us
        task |= {"good_until": good_until, "expire_at": good_until}

    def _reason(self, parent: Row) -> str:
        """What a parent that did not end as it was to is to its child."""
        if parent["error_code"] in UPSTREAM:
            return str(parent["error_code"])
        if parent["status"] in FAILURES:
            return end_reasons.UPSTREAM_FAILED.code
        completed = parent["status"] is COMPLETED
        return (
            end_reasons.UPSTREAM_SUCCEEDED if completed else end_reasons.UPSTREAM_CANCELLED
        ).code

    def reopen(self, parents: set[bytes]) -> set[bytes]:
        """Children that have not run because of these wait for them again; the skipped ones."""
        skipped: set[bytes] = set()
        for (parent, child), edge in self.edges.items():
            task = self.tasks[child]
            was_skipped = task["status"] is CANCELLED and task["error_code"] in UPSTREAM
            waits = task["status"] is WAITING or was_skipped
            if parent in parents and edge["resolved"] and waits:
                edge["resolved"] = False
                self._count(child, 1, edge["satisfied"])
                skipped |= {child} if was_skipped else set()
        return skipped

    def revisit(self, children: set[bytes]) -> set[bytes]:
        """Count the edges of ended steps anew, as their parents stand now; who can never run."""
        for (parent, child), edge in self.edges.items():
            if child in children and parent in self.tasks and edge["resolved"]:
                edge["resolved"] = False
                self._count(child, 1, edge["satisfied"])
                status = self.tasks[parent]["status"]
                if status.is_terminal:
                    self._settle(edge, status)
                    self._count(child, -1, -edge["satisfied"])
        for child in children:
            self._count(child, 0, 0)
        return {
            id for id in children if self.tasks[id]["deps_needed"] > self.tasks[id]["deps_open"]
        }

    def hold(self, workflow: bytes) -> int:
        """The pause of a workflow is one more dependency of its steps that have not begun."""
        steps = [
            id
            for id in self.among(WAITING, SCHEDULED, PENDING)
            if self.tasks[id]["workflow_id"] == workflow and not self._is_held(id)
        ]
        for id in steps:
            self.connect(workflow, id, "always")
            self._count(id, 1, 1)
            self.tasks[id] |= {"status": WAITING, "due_at": None}
        return len(steps)

    def _is_held(self, id: bytes) -> bool:
        edge = self.edges.get((self.tasks[id]["workflow_id"], id))
        return edge is not None and not edge["resolved"]

    def let_go(self, workflow: bytes) -> None:
        """Undo `hold`: the workflow is a parent that has completed."""
        held = [
            child for (parent, child) in self.edges if parent == workflow and self._is_held(child)
        ]
        for child in held:
            self.edges[workflow, child] |= {"resolved": True, "satisfied": True}
            self._count(child, -1, -1)
        self.resolve({child for child in held if self._move_on(child)})
