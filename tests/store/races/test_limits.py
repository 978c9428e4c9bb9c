"""Claims under a limit meet each other, the end of a task, and another limit."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import accumulate
from pathlib import Path

import pytest

from holdfast.core.limiting import LimitBook, queue_scope
from holdfast.core.options.limit import Limit
from holdfast.store.open import open_store
from holdfast.store.settings import parse_url
from holdfast.store.verbs import limited_claims, limits
from holdfast.store.verbs.claims import Begin, Hold, Request, release, standing, start
from holdfast.store.verbs.finish import Completion, complete
from holdfast.store.verbs.inspect import attempts
from holdfast.store.verbs.submit import submit
from tests.store.races.actor import Hand
from tests.store.races.stage import Scene, Stage
from tests.support.stores import Lab
from tests.support.verbs import HOST, LEASE_US, QUEUE, submission

HERE = queue_scope(QUEUE)


def claim_request(wanted: int) -> Request:
    return Request(os.urandom(16), "w", QUEUE, ["t@1"], wanted, LEASE_US)


def claim(hand: Hand, book: LimitBook, wanted: int = 3) -> int:
    found = hand.run(limited_claims.claim(claim_request(wanted), book))
    return len(found.claimed.tasks)


def limited(lab: Lab, limit: Limit) -> LimitBook:
    lab.run(limits.choose(HERE, [limit]))
    return lab.run(limits.book())


def test_two_claims_take_no_more_than_the_limit(stage: Stage) -> None:
    def scene(lab: Lab) -> Scene:
        lab.send_many(6)
        book = limited(lab, Limit(concurrency=4))
        return {"one": lambda hand: claim(hand, book), "other": lambda hand: claim(hand, book)}

    for ended in stage.every_order(scene):
        assert sorted((ended["one"], ended["other"])) == [1, 3]
        assert stage.lab.run(limits.audit()) == []


def test_a_task_that_ends_while_others_are_claimed(stage: Stage) -> None:
    def scene(lab: Lab) -> Scene:
        lab.send_many(3)
        book = limited(lab, Limit(concurrency=1))
        (task,) = lab.run(limited_claims.claim(claim_request(1), book)).claimed.tasks
        lab.started(task)
        return {
            "claimer": lambda hand: claim(hand, book),
            "finisher": lambda hand: hand.complete(task),
        }

    for ended in stage.every_order(scene):
        assert ended["claimer"] in (0, 1)
        assert stage.lab.run(limits.audit()) == []


def test_a_limit_that_changes_while_tasks_end(stage: Stage) -> None:
    def scene(lab: Lab) -> Scene:
        lab.send_many(3)
        book = limited(lab, Limit(concurrency=3))
        task, _ = lab.run(limited_claims.claim(claim_request(2), book)).claimed.tasks
        lab.started(task)
        return {
            "operator": lambda hand: hand.run(limits.choose(HERE, [Limit(concurrency=2)])),
            "finisher": lambda hand: hand.complete(task),
        }

    for _ in stage.every_order(scene):
        assert stage.lab.run(limits.audit()) == []


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_eight_claimers_never_exceed_and_never_leak(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The most that ran at a time is counted from the history of attempts."""
    url = f"sqlite:///{tmp_path / 'tasks.db'}"
    if engine == "postgresql":
        url = request.getfixturevalue("postgres_url")
    total = 80
    with closing(open_store(parse_url(url))) as store:
        store.run(submit([submission(concurrency_key="ab"[n % 2]) for n in range(total)]))
        store.run(limits.choose(HERE, [Limit(concurrency=3, per_key=Limit(concurrency=2))]))
        book = store.run(limits.book())

        def worker(number: int) -> list[bytes]:
            ran: list[bytes] = []
            for _ in range(2_000):
                asked = claim_request(3)
                found = store.run(limited_claims.claim_keys(asked, book)).claimed.tasks
                for place, task in enumerate(found):
                    if place and number % 2:
                        store.run(release([Hold(task.key, task.token)]))
                        continue
                    begin = Begin(task.key, task.token, 1, "p")
                    store.run(start([begin], hostname=HOST))
                    store.run(complete([Completion(task.key, task.token, "null", 1)]))
                    ran.append(task.id)
                if not found and store.run(standing(QUEUE)).has_keys is False:
                    break
            return ran

        with ThreadPoolExecutor(8) as pool:
            ids = [id for ran in pool.map(worker, range(8)) for id in ran]
        assert len(ids) == len(set(ids)) == total
        assert store.run(limits.audit()) == []
        edges: list[tuple[int, int]] = []
        for id in ids:
            (attempt,) = store.run(attempts(id))
            edges += [(attempt.started_at, 1), (attempt.finished_at, -1)]
        most = max(accumulate(step for _, step in sorted(edges)))
        assert most <= 3
