"""The lifecycle in plain dictionaries: a third implementation, to hold the engines against.

Owns the verbs of senders, of time and of operators; those of workers are in `runs`, and what
every ending does is in `world`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from copy import deepcopy
from dataclasses import fields

from holdfast.core.records import Submission, SubmitAnswer, Submitted, TaskRecord
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import end_reasons
from tests.model.runs import Runs
from tests.model.world import (
    CANCELLED,
    CLAIMED,
    DROPPED,
    EXPIRED,
    FAILURES,
    PENDING,
    RUNNING,
    SCHEDULED,
    WAITING,
    Row,
)

RESUBMITTABLE = FAILURES | {CANCELLED}
COUNTERS = ("attempt", "retry_count", "crash_count", "deps_needed", "deps_open")
PAYLOAD = (
    "args",
    "kwargs",
    "task_options",
    "tags",
    "version",
    "max_retries",
    "good_for_us",
)


def _slot_order(s: Submission) -> tuple[str, int, int, bytes]:
    return s.unique_slot or "", s.run_at or 0, s.delay_us or 0, s.id


class SlotTaken(Exception):
    """A resubmit met a live holder of its unique key; nothing is written."""


class NeverAble(Exception):
    """A resubmit of a step whose parents can no longer give what it needs; nothing is written."""


class Model(Runs):
    """Everything that is stored, and every verb."""

    # Coming into being

    def submit(self, batch: Sequence[Submission]) -> list[Submitted]:
        unique = any(s.unique_slot for s in batch)
        order = sorted(batch, key=_slot_order) if unique else batch
        fresh: dict[bytes, Submission] = {}
        for s in order:
            if s.id not in self.tasks and self.holder(self.slot(s)) is None:
                self.tasks[s.id] = self._new(s)
                fresh[s.id] = s
        parents: set[bytes] = set()
        for s in fresh.values():
            for edge in s.depends_on:
                self.connect(edge.parent_id, s.id, edge.on)
                parents.add(edge.parent_id)
        self.resolve(id for id in parents if self.tasks[id]["status"].is_terminal)
        return [self._answer(s, fresh) for s in batch]

    def slot(self, s: Submission) -> str | None:
        """The slot it wants: of those that are unique for a period, in this one."""
        period, slot = s.unique_period_us, s.unique_slot
        if period is None:
            return slot
        run_at = s.run_at if s.delay_us is None else self.now + s.delay_us
        return f"@{max(run_at or 0, self.now) // period}/{period} {slot}"

    def _new(self, s: Submission) -> Row:
        task: Row = {field.name: getattr(s, field.name, None) for field in fields(TaskRecord)}
        task |= dict.fromkeys(COUNTERS, 0) | {"dead": False, "handed_over": False}
        task |= {"created_at": self.now, "updated_at": self.now, "expire_at": s.good_until}
        task |= dict.fromkeys(("unique_key", "unique_slot"), self.slot(s))
        if s.delay_us is not None:
            task["run_at"] = self.now + s.delay_us
        edges = len(s.depends_on)
        task |= {"deps_open": edges, "deps_needed": s.deps_needed if s.deps_needed else edges}
        if edges:
            return task | {"status": WAITING, "enqueued_at": max(task["run_at"] or 0, self.now)}
        self.enqueue(task, task["run_at"])
        self.limit(task, s.good_for_us, s.good_until)
        return task

    def _answer(self, s: Submission, fresh: dict[bytes, Submission]) -> Submitted:
        if fresh.pop(s.id, None) is not None:
            return Submitted(s.id, SubmitAnswer.CREATED)
        if s.id in self.tasks:
            same = self.tasks[s.id]["enqueue_sha"] == s.enqueue_sha
            return Submitted(s.id, SubmitAnswer.EXISTING if same else SubmitAnswer.MISMATCH)
        holder = self.holder(self.slot(s))
        assert holder is not None
        if s.on_conflict == "raise":
            return Submitted(holder, SubmitAnswer.CONFLICT)
        task = self.tasks[holder]
        unstarted = task["status"] in (PENDING, SCHEDULED) and task["attempt"] == 0
        if s.on_conflict == "replace" and unstarted:
            task |= {name: getattr(s, name) for name in PAYLOAD}
            self.limit(task, s.good_for_us, s.good_until)
            task["updated_at"] = self.now
            return Submitted(holder, SubmitAnswer.REPLACED)
        if s.on_conflict == "debounce" and unstarted:
            moved = self.reschedule([holder], move=True, delay_us=s.delay_us, run_at=s.run_at)
            if moved[holder]:
                task["good_for_us"] = s.good_for_us
                self.limit(task, s.good_for_us, s.good_until)
                return Submitted(holder, SubmitAnswer.DEBOUNCED)
        return Submitted(holder, SubmitAnswer.EXISTING)

    # Time and place

    def promote(self, ids: Collection[bytes] | None = None) -> set[bytes]:
        """SCHEDULED tasks that are due, or these at once; they keep their place."""
        scheduled = self.among(SCHEDULED)
        due = {
            id
            for id in scheduled
            if (id in ids if ids is not None else self.tasks[id]["due_at"] <= self.now)
        }
        for id in due:
            self.tasks[id] |= {"status": PENDING, "due_at": None, "updated_at": self.now}
        return due

    def reschedule(
        self,
        ids: Iterable[bytes],
        *,
        move: bool,
        delay_us: int | None = None,
        run_at: int | None = None,
        queue: str | None = None,
        priority: int | None = None,
    ) -> dict[bytes, bool]:
        answers = {}
        for id in ids:
            task = self.tasks.get(id, {})
            answers[id] = task.get("status") in (PENDING, SCHEDULED)
            if not answers[id]:
                continue
            if move:
                task["run_at"] = self.now + delay_us if delay_us is not None else run_at
                self.enqueue(task, task["run_at"])
            elif task["status"] is SCHEDULED and task["due_at"] <= self.now:
                task |= {"status": PENDING, "due_at": None}
            task["queue_name"] = queue or task["queue_name"]
            task["priority"] = priority or task["priority"]
            task["updated_at"] = self.now
        return answers

    def expire(self) -> set[bytes]:
        late = {
            id
            for id in self.among(WAITING, SCHEDULED, PENDING)
            if (until := self.tasks[id]["good_until"]) is not None and until <= self.now
        }
        return self.end_by_store(late, EXPIRED, end_reasons.EXPIRED)

    def drop(self, queue: str, known: Collection[str], before: int) -> set[bytes]:
        stray = {
            id
            for id in self.among(PENDING)
            if self.tasks[id]["queue_name"] == queue
            and self.tasks[id]["enqueued_at"] < before
            and self.name(id) not in known
        }
        return self.end_by_store(stray, DROPPED, end_reasons.DROPPED)

    def pause(self, queue: str, by: str | None) -> None:
        at, who = self.queues.get(queue, (None, None))
        self.queues[queue] = (self.now if at is None else at, by if who is None else who)

    def resume(self, queue: str) -> bool:
        paused = self.queues.get(queue, (None, None))[0] is not None
        if paused:
            self.queues[queue] = (None, None)
        return paused

    # Operators

    def cancel(self, ids: Sequence[bytes]) -> dict[bytes, TaskStatus | None]:
        known = [id for id in set(ids) if id in self.tasks]
        for id in known:
            if self.tasks[id]["status"] is RUNNING:
                wish = self.tasks[id]["cancel_requested_at"] or self.now
                self.tasks[id] |= {"cancel_requested_at": wish, "updated_at": self.now}
        open_ = {WAITING, SCHEDULED, PENDING, CLAIMED}
        held = [id for id in known if self.tasks[id]["status"] in open_]
        self.end_by_store(held, CANCELLED, end_reasons.CANCELLED)
        return {id: self.tasks[id]["status"] if id in self.tasks else None for id in ids}

    def resubmit(
        self,
        ids: Iterable[bytes],
        *,
        keep_retries: bool,
        good_until: int | None,
        run_at: int | None,
    ) -> dict[bytes, bool]:
        before = deepcopy((self.tasks, self.edges))
        asked, done, batch = list(ids), set[bytes](), set(ids)
        stuck: set[bytes] = set()
        while batch:
            ended = [id for id in batch if self.tasks.get(id, {}).get("status") in RESUBMITTABLE]
            stuck = self.revisit({id for id in ended if self.tasks[id]["deps_needed"] > 0})
            chosen = [id for id in ended if id not in stuck]
            keys = {id: key for id in chosen if (key := self.tasks[id]["unique_key"]) is not None}
            taken = any(self.holder(key) not in (None, id) for id, key in keys.items())
            if taken or len({*keys.values()}) < len(keys):
                self.tasks, self.edges = before
                raise SlotTaken
            if not chosen:
                break
            skipped = self.reopen(set(chosen))
            for id in chosen:
                self._resubmit(self.tasks[id], keep_retries, good_until, run_at)
            done |= set(chosen)
            batch = (stuck | skipped) - done
        if stuck.intersection(asked) - done:
            self.tasks, self.edges = before
            raise NeverAble
        return {id: id in done for id in asked}

    def _resubmit(
        self, task: Row, keep_retries: bool, good_until: int | None, run_at: int | None
    ) -> None:
        cleared = (
            "cancel_requested_at finished_at completed_at failed_at error_code failed_reason "
            "result progress stage stage_meta next_retry_at claimed_at claimed_by_worker_id"
        )
        task |= dict.fromkeys(cleared.split())
        task |= {"dead": False, "unique_slot": task["unique_key"], "updated_at": self.now}
        task |= {"good_until": good_until, "expire_at": good_until, "run_at": run_at}
        if not keep_retries:
            task |= {"retry_count": 0, "crash_count": 0}
        self.enqueue(task, run_at)
        if task["deps_needed"] > 0:
            task |= {"status": WAITING, "due_at": None}

    def delete(self, ids: Iterable[bytes]) -> dict[bytes, bool]:
        answers = {id: id in self.tasks and self.tasks[id]["status"].is_terminal for id in ids}
        for id in (id for id, gone in answers.items() if gone):
            del self.tasks[id]
            self.attempts = {key: row for key, row in self.attempts.items() if key[0] != id}
            self.edges = {edge: row for edge, row in self.edges.items() if id not in edge}
        return answers

    def prune(self, *, before: int | None, dead_before: int | None) -> int:
        past = []
        for id, task in self.tasks.items():
            limit = dead_before if task["dead"] else before
            if task["finished_at"] is not None and limit is not None:
                past += [id] if task["finished_at"] < limit else []
        return sum(self.delete(past).values())
