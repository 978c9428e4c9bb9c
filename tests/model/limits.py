"""The model's limits, keys and routes: what may be claimed, whose turn it is, and where to.

A third implementation, like all of the model: no counters, ledgers or budgets. What is held is
counted among the tasks, each time; of the product it uses the shapes of what it is given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b

from holdfast.core.options.limit import Limit
from holdfast.core.records import Submission
from tests.model.reference import Model
from tests.model.verdict import SECOND
from tests.model.world import CLAIMED, RUNNING

EVERY_US = {"1/s": SECOND, "1/m": 60 * SECOND}
"""The rates that the rules use."""


class LimitedModel(Model):
    """Everything that is stored, with limits and routes."""

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.declared: dict[str, Sequence[Limit]] = {}
        self.chosen: dict[str, Sequence[Limit]] = {}
        self.unfair: set[str] = set()
        self.routes: dict[str, Mapping[str, int]] = {}
        self._paid: dict[tuple[str, int], int] = {}

    # Rules

    def choose(self, scope: str, limits: Sequence[Limit]) -> None:
        self.chosen[scope] = limits
        self._mark(scope)

    def declare(self, task: str, limits: Sequence[Limit]) -> None:
        if self.declared.get(f"task {task}", ()) != limits:
            self.declared[f"task {task}"] = limits
            self._mark(f"task {task}")

    def limits(self, scope: str) -> Sequence[Limit]:
        """What an operator chose, or else what code declares."""
        return self.chosen.get(scope) or self.declared.get(scope) or ()

    def of_each_key(self, scope: str) -> Sequence[Limit]:
        return [limit.per_key for limit in self.limits(scope) if limit.per_key is not None]

    def is_limited(self, queue: str, name: str) -> bool:
        """Whether a task without a key has a limit in this queue."""
        task = name.partition("@")[0]
        every = [*self.limits(f"queue {queue}"), *self.limits(f"task {task}")]
        return any(limit.concurrency is not None or limit.rate is not None for limit in every)

    def held(self) -> dict[str, int]:
        """What is held of every limit to which there is a most, as the tasks in flight have it."""
        found: dict[str, int] = {}
        for id in self.among(CLAIMED, RUNNING):
            for scope, bit, limits in self._scopes(id):
                if self.slots[id] & bit and _most(limits) is not None:
                    found[scope] = found.get(scope, 0) + 1
        return found

    def is_capped(self, scope: str) -> bool:
        """Whether there is a most for what a scope holds."""
        kind, _, rest = scope.partition(" ")
        name, _, key = rest.partition(" ")
        rule = f"{kind} {name}"
        return _most(self.of_each_key(rule) if key else self.limits(rule)) is not None

    def _mark(self, scope: str) -> None:
        """What is in flight counts against a limit that is new."""
        for id in self.among(CLAIMED, RUNNING):
            for each, bit, limits in self._scopes(id):
                is_ours = each == scope or each.startswith(f"{scope} ")
                if is_ours and _most(limits) is not None:
                    self.slots[id] |= bit

    def _scopes(self, id: bytes) -> Iterator[tuple[str, int, Sequence[Limit]]]:
        """Everything that a task counts against."""
        task = self.tasks[id]
        queue, name = f"queue {task['queue_name']}", f"task {task['task_name']}"
        yield queue, 1, self.limits(queue)
        yield name, 2, self.limits(name)
        if (key := task["concurrency_key"]) is not None:
            yield f"{queue} {key}", 4, self.of_each_key(queue)
            yield f"{name} {key}", 8, self.of_each_key(name)

    # Claims

    def claim_limited(
        self, token: bytes, worker: str, queue: str, known: Collection[str], wanted: int, lease: int
    ) -> list[bytes]:
        """Those without a key, in the order of the queue, as far as limits allow."""
        taken: list[bytes] = []
        for id in self.claimable(queue, known, keyed=False):
            if len(taken) < wanted and self._begin(id, token, worker):
                taken.append(id)
        self.lend(token, worker, taken, lease)
        return taken

    def claim_keys(
        self,
        token: bytes,
        worker: str,
        queue: str,
        known: Collection[str],
        wanted: int,
        lease: int,
        after: str,
    ) -> list[bytes]:
        """Those with keys: of each key one, then of each another; or in order."""
        waiting: dict[str, list[bytes]] = {}
        in_order = self.claimable(queue, known, keyed=True)
        for id in in_order:
            waiting.setdefault(self.tasks[id]["concurrency_key"], []).append(id)
        keys = sorted(waiting, key=lambda key: (key <= after, key))
        taken: list[bytes] = []
        if queue in self.unfair:
            keys, waiting = [""], {"": in_order}
        while len(taken) < wanted and any(waiting.values()):
            for key in keys:
                while waiting[key] and len(taken) < wanted:
                    if self._begin(id := waiting[key].pop(0), token, worker):
                        taken.append(id)
                        break
        self.lend(token, worker, taken, lease)
        return taken

    def _begin(self, id: bytes, token: bytes, worker: str) -> bool:
        """Claim a task if none of its limits is in the way."""
        scopes = list(self._scopes(id))
        if not all(self._has_room(scope, limits) for scope, _, limits in scopes):
            return False
        self.take(id, token, worker)
        for scope, bit, limits in scopes:
            self.slots[id] |= bit if _most(limits) is not None else 0
            for place, limit in enumerate(each for each in limits if each.rate is not None):
                paid = self._paid_until(scope, place, limit)
                self._paid[scope, place] = paid + EVERY_US[limit.rate or ""]
        return True

    def _has_room(self, scope: str, limits: Sequence[Limit]) -> bool:
        most = _most(limits)
        if most is not None and self.held().get(scope, 0) >= most:
            return False
        rates = [limit for limit in limits if limit.rate is not None]
        return all(
            # As many as `burst` begin at once, each paid for in advance but the first.
            self._paid_until(scope, place, limit) - self.now
            <= (limit.burst - 1) * EVERY_US[limit.rate or ""]
            for place, limit in enumerate(rates)
        )

    def _paid_until(self, scope: str, place: int, limit: Limit) -> int:
        paid = self._paid.get((scope, place), 0)
        if paid > self.now + limit.burst * EVERY_US[limit.rate or ""]:
            # Nobody pays for more than that: the rate was another one then.
            return self.now
        return max(paid, self.now)

    # Routes

    def routed(self, s: Submission) -> Submission:
        """A submission in the queue where the rules send it."""
        fit = [pattern for pattern in self.routes if _fits(pattern, s.task_name)]
        if not fit or not s.is_routable:
            return s
        fit.sort(key=lambda pattern: ("*" in pattern, -len(pattern.replace("*", "")), pattern))
        queues = self.routes[fit[0]]
        place = int.from_bytes(blake2b(s.id, digest_size=8).digest()) % sum(queues.values())
        drawn = [queue for queue, weight in queues.items() for _ in range(weight)][place]
        return s._replace(queue_name=drawn)


def _most(limits: Sequence[Limit]) -> int | None:
    """How many at a time: the least of what several limits allow."""
    return min((each.concurrency for each in limits if each.concurrency), default=None)


def _fits(pattern: str, name: str) -> bool:
    """Whether a name fits a pattern; those of the rules have a star at the end, or none."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
