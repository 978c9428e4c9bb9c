"""The model's claims: taking, starting, giving back, ending, and leases that run out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.core.decide import Change
from holdfast.core.records import LOST, NO_USAGE, Answer, Landing, Usage
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import end_reasons
from holdfast.store.verbs.claims import Renewed
from holdfast.store.verbs.end_reasons import EndReason
from tests.model.verdict import RUN_AGAIN, Verdict
from tests.model.world import (
    CANCELLED,
    CLAIMED,
    COMPLETED,
    FAILED,
    PENDING,
    RUNNING,
    SCHEDULED,
    STALLED,
    Row,
    World,
)

Claim: TypeAlias = tuple[bytes, bytes]
"""A task and the token under which it was claimed."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a run ended: the verdict, and the words and numbers that are stored with it."""

    verdict: Verdict
    change: Change
    pid: int | None
    worker: str | None
    usage: Usage = NO_USAGE


class Runs(World):
    """The verbs of workers."""

    def claim(
        self,
        token: bytes,
        worker: str,
        queue: str,
        known: Collection[str],
        wanted: int,
        lease_us: int,
    ) -> list[bytes]:
        chosen = self.claimable(queue, known, keyed=False)[:wanted]
        for id in chosen:
            self.take(id, token, worker)
        self.lend(token, worker, chosen, lease_us)
        return chosen

    def claimable(self, queue: str, known: Collection[str], *, keyed: bool) -> list[bytes]:
        """What may be claimed from a queue, in its order; with or without a concurrency key."""
        if self.queues.get(queue, (None, None))[0] is not None:
            return []
        fit = [
            id
            for id in self.among(PENDING)
            if self.tasks[id]["queue_name"] == queue
            and self.name(id) in known
            and (self.tasks[id]["good_until"] or self.now + 1) > self.now
            and (self.tasks[id]["concurrency_key"] is not None) == keyed
        ]
        return sorted(
            fit, key=lambda id: (self.tasks[id]["priority"], self.tasks[id]["enqueued_at"], id)
        )

    def take(self, id: bytes, token: bytes, worker: str) -> None:
        """Claim one task; `lend` has to follow."""
        self.slots[id] = 0
        self.tasks[id] |= {
            "status": CLAIMED,
            "claim_token": token,
            "claimed_at": self.now,
            "claimed_by_worker_id": worker,
            "expire_at": None,
            "updated_at": self.now,
        }

    def lend(self, token: bytes, worker: str, ids: Collection[bytes], lease_us: int) -> None:
        """The lease of what was claimed."""
        if ids:
            self.leases[token] = {
                "worker_id": worker,
                "expires_at": self.now + lease_us,
                "task_ids": set(ids),
            }

    def start(self, claims: Mapping[Claim, tuple[int, str]], host: str) -> list[Landing]:
        answers = []
        for claim, (pid, process) in claims.items():
            task = self._fenced(claim, CLAIMED)
            if task is None:
                answers.append(LOST)
                continue
            task |= {
                "status": RUNNING,
                "attempt": task["attempt"] + 1,
                "started_at": self.now,
                "first_started_at": task["first_started_at"] or self.now,
                "heartbeat_at": self.now,
                "next_retry_at": None,
                "worker_pid": pid,
                "worker_process_name": process,
                "worker_hostname": host,
                "updated_at": self.now,
            }
            if task["unique_until"] == "started":
                task["unique_slot"] = None
            if task["retry_count"]:
                task["retried_at"] = self.now
            answers.append(Landing(Answer.LANDED, RUNNING, task["attempt"], self.now))
        return answers

    def release(self, claims: Iterable[Claim]) -> list[Landing]:
        answers = []
        for claim in claims:
            task = self._fenced(claim, CLAIMED)
            if task is not None:
                task |= {"status": PENDING, "expire_at": task["good_until"]}
                self._leave(task)
            answers.append(LOST if task is None else Landing(Answer.LANDED, PENDING))
        return answers

    def _fenced(self, claim: Claim, status: TaskStatus) -> Row | None:
        id, token = claim
        task = self.tasks.get(id)
        held = task is not None and task["status"] is status and task["claim_token"] == token
        return task if held else None

    def _leave(self, task: Row) -> None:
        """A claim is over, and the task goes on without one."""
        task |= {"claim_token": None, "claimed_at": None, "claimed_by_worker_id": None}
        task |= {"worker_pid": None, "updated_at": self.now}

    def complete(self, reports: Mapping[Claim, Report]) -> list[Landing]:
        answers: list[Landing] = []
        ended: list[bytes] = []
        for claim, report in reports.items():
            task = self._fenced(claim, RUNNING)
            if task is None:
                answers.append(LOST)
                continue
            self._attempt(task, claim, report)
            self.finish(task, COMPLETED)
            task |= {"result": report.change.result, "completed_at": self.now}
            ended.append(claim[0])
            answers.append(Landing(Answer.LANDED, COMPLETED, task["attempt"]))
        self.resolve(ended)
        return answers

    def end(self, reports: Mapping[Claim, Report]) -> list[Landing]:
        answers: list[Landing] = []
        ended: list[bytes] = []
        for claim, report in reports.items():
            verdict = report.verdict
            task = self._fenced(claim, RUNNING)
            cancelled = task is not None and task["cancel_requested_at"] is not None
            if task is None or (verdict.verb == "ack_cancel" and not cancelled):
                answers.append(LOST)
                continue
            status = CANCELLED if cancelled else verdict.status_for(task, self.now)
            self._attempt(task, claim, report)
            task["crash_count"] += verdict.verb == "recover"
            if status in RUN_AGAIN:
                self.attempts[claim[0], task["attempt"]]["will_retry"] = verdict.is_failure
                self._run_again(task, verdict)
            else:
                self.finish(task, status, end_reasons.CANCELLED if cancelled else _words(report))
                task["dead"] = status in (FAILED, STALLED) and verdict.dead_letter
                ended.append(claim[0])
            redirected = cancelled and verdict.verb != "ack_cancel"
            answer = Answer.CANCELLED if redirected else Answer.LANDED
            answers.append(Landing(answer, status, task["attempt"], self.now))
        self.resolve(ended)
        return answers

    def _run_again(self, task: Row, verdict: Verdict) -> None:
        place = task["enqueued_at"]
        at = self.now + (verdict.delay_us or 0)
        self.enqueue(task, at)
        if task["status"] is SCHEDULED:
            task["run_at"] = at
        if verdict.verb == "retry":
            task |= {"retry_count": task["retry_count"] + 1, "next_retry_at": at}
        elif not verdict.delay_us:
            task["enqueued_at"] = place
        task["expire_at"] = task["good_until"]
        self._leave(task)

    def _attempt(self, task: Row, claim: Claim, report: Report) -> None:
        change, number = report.change, task["attempt"]
        assert (claim[0], number) not in self.attempts, "one start, one attempt row"
        self.attempts[claim[0], number] = {
            "task_id": claim[0],
            "attempt": number,
            "outcome": report.verdict.outcome,
            "will_retry": False,
            "claim_token": claim[1],
            "started_at": task["started_at"],
            "finished_at": self.now,
            "created_at": self.now,
            "error_code": report.verdict.code,
            "error_message": change.error.message if change.error else None,
            "failed_reason": change.failed_reason,
            "error": change.result if change.error else None,
            "worker_id": report.worker,
            "worker_hostname": task["worker_hostname"],
            "worker_pid": report.pid,
            "worker_process_name": task["worker_process_name"],
            "exit_code": change.exit_code,
            "exit_signal": change.exit_signal,
            "peak_memory_kb": report.usage.peak_memory_kb,
            "cpu_time_us": report.usage.cpu_time_us,
        }

    # Leases

    def renew(self, tokens: Iterable[bytes], lease_us: int) -> Renewed:
        held = {token for token in tokens if token in self.leases}
        for token in held:
            self.leases[token]["expires_at"] = self.now + lease_us
        return Renewed(held, set())

    def clean(self, tokens: Iterable[bytes]) -> int:
        return sum(self.leases.pop(token, None) is not None for token in set(tokens))

    def release_token(self, token: bytes) -> int:
        """The answer of a claim was lost: give back what it took."""
        lease = self.leases.pop(token, None)
        taken = self.release((id, token) for id in lease["task_ids"]) if lease else []
        return sum(answer is not LOST for answer in taken)

    def carried(self, token: bytes, status: TaskStatus) -> list[bytes]:
        """The tasks of a lease that still carry its token."""
        ids = sorted(self.leases[token]["task_ids"])
        return [id for id in ids if self._fenced((id, token), status)]

    def recover(self, token: bytes, reports: Mapping[bytes, Report]) -> tuple[int, int, int]:
        """Take over an expired lease: how many were released, recovered, and left for later.

        What cannot be decided has no report; it stays in the lease row.
        """
        assert self.leases[token]["expires_at"] < self.now
        released = self.release((id, token) for id in self.carried(token, CLAIMED))
        running = self.carried(token, RUNNING)
        left = {id for id in running if id not in reports}
        ended = self.end({(id, token): reports[id] for id in running if id in reports})
        if left:
            self.leases[token]["task_ids"] = left
        else:
            del self.leases[token]
        return len(released), len(ended), len(left)


def _words(report: Report) -> EndReason:
    code, change = report.verdict.code, report.change
    assert code is not None
    assert change.failed_reason is not None
    assert change.result is not None
    return EndReason(code, change.failed_reason, change.result)
