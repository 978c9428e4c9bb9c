"""Rules of workers: claim, start, release, every way to end a run, and leases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from holdfast.core.options.policy import Policy
from holdfast.core.records import LOST, Usage
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import claims, finish, leases
from tests.model.machine import (
    STRANGER,
    Machine,
    flags,
    known_names,
    pick,
    picks,
    queue_names,
)
from tests.model.outcomes import KINDS, change_for, verdict_for
from tests.model.runs import Claim, Report
from tests.model.side import Side
from tests.model.verdict import SECOND, Verdict
from tests.model.world import CLAIMED, PENDING, RUNNING

HOST, PROCESS, PID = "host", "child", 7
lease_seconds = st.sampled_from((5, 30))


class Working(Machine):
    """The verbs of workers, and of those that only believe to be one."""

    @precondition(lambda self: self.there_is(PENDING))
    @rule(queue=queue_names, wanted=st.integers(1, 4), known=known_names, lease=lease_seconds)
    def claim(self, queue: str, wanted: int, known: Sequence[str], lease: int) -> None:
        self.take(queue, wanted, known, lease)

    @precondition(lambda self: self.there_is(PENDING))
    @rule(picked=pick, lease=lease_seconds)
    def claim_and_start(self, picked: int, lease: int) -> None:
        """As a worker with free children does."""
        queues = [self.model.tasks[id]["queue_name"] for id in self.model.among(PENDING)]
        self.begin_runs(self.take(queues[picked % len(queues)], 4, ("t@1", "u@1"), lease))

    @precondition(lambda self: self.there_is(PENDING))
    @rule(queue=queue_names, wanted=st.integers(1, 4), known=known_names, lease=lease_seconds)
    def claim_for_a_child(self, queue: str, wanted: int, known: Sequence[str], lease: int) -> None:
        """Claim and start in one statement."""
        self.take(queue, wanted, known, lease, claims.ChildIdentity(HOST, PID, PROCESS))

    def take(
        self,
        queue: str,
        wanted: int,
        known: Sequence[str],
        lease: int,
        child: claims.ChildIdentity | None = None,
    ) -> list[Claim]:
        token, worker = self.new_bytes(), f"worker-{self.made % 2}"
        lease_us = lease * SECOND
        expected = self.model.claim(token, worker, queue, known, wanted, lease_us)
        if child is not None:
            self.model.start(dict.fromkeys([(id, token) for id in expected], (PID, PROCESS)), HOST)
        for side in self.sides:
            claimed = side.run(
                claims.claim(
                    claims.Request(
                        token=token,
                        worker_id=worker,
                        queue=queue,
                        known=known,
                        wanted=wanted,
                        lease_us=lease_us,
                        child=child,
                        limits_version=side.book.version,
                    )
                )
            )
            assert [task.id for task in claimed.tasks] == expected, side.name
            side.claims |= {(task.id, token): task for task in claimed.tasks}
        taken = [(id, token) for id in expected]
        self.claims += taken
        return taken

    def begin_runs(self, chosen: list[Claim]) -> None:
        expected = self.model.start(dict.fromkeys(chosen, (PID, PROCESS)), HOST)
        self.fenced(
            expected,
            lambda side: claims.start(
                [claims.Begin(side.key(c), c[1], PID, PROCESS) for c in chosen], hostname=HOST
            ),
        )

    def give_back(self, chosen: list[Claim]) -> None:
        self.fenced(
            self.model.release(chosen),
            lambda side: claims.release([claims.Hold(side.key(c), c[1]) for c in chosen]),
        )

    @precondition(lambda self: self.live(CLAIMED))
    @rule(picked=picks)
    def start(self, picked: list[int]) -> None:
        self.begin_runs(self.some(self.live(CLAIMED), picked))

    @precondition(lambda self: self.live(CLAIMED))
    @rule(picked=picks)
    def release(self, picked: list[int]) -> None:
        self.give_back(self.some(self.live(CLAIMED), picked))

    # Ends of runs

    def policy(self, claim: Claim) -> Policy:
        return Policy.decode(self.model.tasks[claim[0]]["task_options"])

    def finish_runs(self, chosen: list[Claim], skip_locked: bool = False) -> None:
        reports = {
            claim: Report(
                Verdict("complete", TaskStatus.COMPLETED),
                change_for("complete", self.sides[0].claims[claim], self.policy(claim)),
                PID,
                self.model.tasks[claim[0]]["claimed_by_worker_id"],
                Usage(peak_memory_kb=place, cpu_time_us=place + 1),
            )
            for place, claim in enumerate(chosen)
        }
        expected = self.model.complete(reports)

        def make(side: Side) -> Any:
            done = [
                finish.Completion(
                    side.key(claim),
                    claim[1],
                    report.change.result or "",
                    report.pid,
                    report.usage,
                    in_workflow=side.claims[claim].workflow_id is not None,
                )
                for claim, report in reports.items()
            ]
            return finish.complete(done, skip_locked=skip_locked)

        self.fenced(expected, make)

    def end_runs(self, asked: dict[Claim, str], skip_locked: bool = False) -> None:
        """End runs as the code, its process or its worker did."""
        changes = {
            claim: change_for(kind, self.sides[0].claims[claim], self.policy(claim))
            for claim, kind in asked.items()
        }
        reports = {
            claim: Report(
                verdict_for(kind, self.model.tasks[claim[0]], self.policy(claim)),
                changes[claim],
                PID,
                "worker",
                Usage(peak_memory_kb=1),
            )
            for claim, kind in asked.items()
        }
        expected = self.model.end(reports)

        def make(side: Side) -> Any:
            ends = [
                finish.RunChange(
                    side.key(claim), claim[1], report.change, PID, "worker", report.usage
                )
                for claim, report in reports.items()
            ]
            return finish.end(ends, skip_locked=skip_locked)

        self.fenced(expected, make)

    def end_some(self, picked: list[int], kind: str) -> None:
        self.end_runs(dict.fromkeys(self.some(self.live(RUNNING), picked), kind))

    @precondition(lambda self: self.live(RUNNING))
    @rule(picked=picks, skip_locked=flags)
    def complete(self, picked: list[int], skip_locked: bool) -> None:
        self.finish_runs(self.some(self.live(RUNNING), picked), skip_locked)

    @precondition(lambda self: self.live(RUNNING))
    @rule(picked=picks)
    def fail(self, picked: list[int]) -> None:
        self.end_some(picked, "fail")

    @precondition(lambda self: self.live(RUNNING))
    @rule(picked=picks, kind=st.sampled_from(("retry", "retry_later")))
    def retry(self, picked: list[int], kind: str) -> None:
        self.end_some(picked, kind)

    @precondition(lambda self: self.live(RUNNING))
    @rule(picked=picks)
    def snooze(self, picked: list[int]) -> None:
        self.end_some(picked, "snooze")

    @precondition(lambda self: self.live(RUNNING))
    @rule(picked=picks, kind=st.sampled_from(("not_begun", "shutdown")))
    def interrupt(self, picked: list[int], kind: str) -> None:
        self.end_some(picked, kind)

    @precondition(lambda self: self.live(RUNNING))
    @rule(picked=picks)
    def stall(self, picked: list[int]) -> None:
        self.end_some(picked, "silence")

    @precondition(lambda self: self.live(RUNNING))
    @rule(picked=picks)
    def crash(self, picked: list[int]) -> None:
        self.end_some(picked, "crash")

    @precondition(lambda self: self.live(RUNNING))
    @rule(picked=picks)
    def ack_cancel(self, picked: list[int]) -> None:
        self.end_some(picked, "ack_cancel")

    @precondition(lambda self: self.live(RUNNING))
    @rule(kinds=st.lists(st.sampled_from(KINDS), min_size=3, max_size=3), skip_locked=flags)
    def end_batch(self, kinds: list[str], skip_locked: bool) -> None:
        """What had gathered while the last batch was written, of several claims."""
        self.end_runs(dict(zip(self.live(RUNNING), kinds, strict=False)), skip_locked)

    # Those that lost their claim

    @precondition(lambda self: self.claims)
    @rule(picked=pick, verb=st.sampled_from(("start", "release", "complete", *KINDS)))
    def zombie(self, picked: int, verb: str) -> None:
        """Any claim there ever was, in any state of its task: the token decides."""
        claim = self.claims[picked % len(self.claims)]
        if claim[0] in self.model.tasks:
            self.act([claim], verb)
        else:
            self.fenced(
                [LOST],
                lambda side: claims.start(
                    [claims.Begin(side.key(claim), claim[1], PID, PROCESS)], hostname=HOST
                ),
            )

    @precondition(lambda self: self.mixed())
    @rule(picked=pick, kind=st.sampled_from(KINDS), whole=flags)
    def swap(self, picked: int, kind: str, whole: bool) -> None:
        """Two tasks under each other's token, which both are good tokens of this batch."""
        claims = self.live(self.mixed()[picked % len(self.mixed())])
        first = claims[0]
        second = next(claim for claim in claims if claim[1] != first[1])
        swapped = [(first[0], second[1]), (second[0], first[1])]
        for side in self.sides:
            side.claims |= {
                new: side.claims[old] for new, old in zip(swapped, (first, second), strict=True)
            }
        if self.model.tasks[first[0]]["status"] is CLAIMED:
            self.act(swapped, "start" if whole else "release")
        else:
            self.act(swapped, "complete" if whole else kind)

    def mixed(self) -> list[TaskStatus]:
        """States in which there are tasks of several claims."""
        states = (CLAIMED, RUNNING)
        return [state for state in states if len({token for _, token in self.live(state)}) > 1]

    def act(self, chosen: list[Claim], verb: str) -> None:
        match verb:
            case "start":
                self.begin_runs(chosen)
            case "release":
                self.give_back(chosen)
            case "complete":
                self.finish_runs(chosen)
            case kind:
                self.end_runs(dict.fromkeys(chosen, kind))

    # Leases

    @rule(picked=picks, lease=st.sampled_from((1, 30)))
    def renew(self, picked: list[int], lease: int) -> None:
        tokens = [token for _, token in self.some(self.claims, picked)] if self.claims else []
        tokens.append(STRANGER)
        self.both(
            self.model.renew(tokens, lease * SECOND),
            lambda side: claims.renew(tokens, lease_us=lease * SECOND),
        )

    @precondition(lambda self: self.model.leases)
    @rule()
    def clean(self) -> None:
        """The keeper's tick: leases of batches that have ended."""
        over = [
            token
            for token in self.model.leases
            if not self.model.carried(token, CLAIMED) and not self.model.carried(token, RUNNING)
        ]
        self.both(self.model.clean(over), lambda side: claims.clean(over))

    @precondition(lambda self: self.model.leases)
    @rule(picked=pick)
    def lose_answer(self, picked: int) -> None:
        """A worker that never heard what its claim took gives it back by the token."""
        tokens = [t for t in self.model.leases if not self.model.carried(t, RUNNING)]
        token = tokens[picked % len(tokens)] if tokens else STRANGER
        self.both(
            self.model.release_token(token), lambda side: claims.release_token(token, queue="a")
        )

    def expired(self) -> list[bytes]:
        now = self.model.now
        return [token for token, row in self.model.leases.items() if row["expires_at"] < now]

    @precondition(lambda self: self.expired())
    @rule(picked=pick, undecidable=st.sets(st.integers(0, 3), max_size=1))
    def recover(self, picked: int, undecidable: set[int]) -> None:
        """The reaper takes one expired lease; a task nobody can decide about is set aside."""
        expired = self.expired()
        token = expired[picked % len(expired)]
        running = self.model.carried(token, RUNNING)
        bad = {id for place, id in enumerate(running) if place in undecidable}
        self.reap(token, bad)

    def reap(self, token: bytes, bad: set[bytes]) -> None:
        worker = self.model.leases[token]["worker_id"]
        reports = {
            id: Report(
                verdict_for("crash", self.model.tasks[id], self.policy((id, token))),
                change_for("vanish", self.sides[0].claims[id, token], self.policy((id, token))),
                self.model.tasks[id]["worker_pid"],
                worker,
            )
            for id in self.model.carried(token, RUNNING)
            if id not in bad
        }

        def decide(task: leases.Abandoned) -> Any:
            if task.id in bad:
                raise ValueError("nobody can read its options")
            return change_for("vanish", task, Policy.decode(task.task_options))

        others = [one for one in self.model.leases if one != token]
        expected = leases.Recovery(token, worker, *self.model.recover(token, reports))
        self.both(expected, lambda side: leases.recover(decide, tried=others))
