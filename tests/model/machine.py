"""What all rules share: the model and both engines, acted on alike and compared after each step.

Whatever a rule asks is answered by the model first; each engine must give the same answer and
end in the same state, column for column, in every table of a task's life.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.records import Submission
from holdfast.core.status import TaskStatus
from holdfast.store.op import Op
from holdfast.store.verbs import submit
from tests.model.reference import Model
from tests.model.runs import Claim
from tests.model.side import Side, difference, tables_of
from tests.model.verdict import SECOND

T = TypeVar("T")

Move: TypeAlias = tuple[TaskStatus | None, TaskStatus | None]
"""From where to where; None: there is no such task."""

QUEUES = ("a", "b")
NAMES = ("t", "u")
WORKFLOWS = (b"\xf0" * 16, b"\xf1" * 16)
STRANGER = b"\xee" * 16
POLICIES = (
    Policy(),
    Policy(retry=Retry(2, delay=10)),
    Policy(retry=Retry(1), on_shutdown="stop"),
    Policy(max_crashes=2, dead_letter=False),
    Policy(on_crash="stall"),
    Policy(retry=Retry(5, delay=2), max_crashes=4),
)
picks = st.lists(st.integers(0, 31), min_size=1, max_size=3)
pick = st.integers(0, 31)
flags = st.booleans()
queue_names = st.sampled_from(QUEUES)
seconds = st.sampled_from((None, 1, 5, 60))
known_names = st.sampled_from((("t@1", "u@1"), ("t@1",), ("u@1",)))


class Machine(RuleBasedStateMachine):
    """The model, both engines, and what rules need to act on them alike."""

    open_sides: Callable[[ExitStack], Sequence[Side]]
    model_type: ClassVar[type[Model]] = Model
    seen: ClassVar[Counter[Move]]
    """From where to where tasks have gone, over all examples."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.sides = type(self).open_sides(self.closing)
        self.model = type(self).model_type(self.sides[0].lab.clock.now)
        self.sent: dict[bytes, Submission] = {}
        self.claims: list[Claim] = []
        self.made = 0
        self._before: dict[bytes, TaskStatus] = {}

    def teardown(self) -> None:
        self.closing.close()

    @invariant()
    def same_everywhere(self) -> None:
        expected = tables_of(self.model)
        for side in self.sides:
            found = side.tables()
            if found != expected:
                lines = difference(expected, found)
                raise AssertionError("\n  ".join([f"{side.name} differs:", *lines]))

    @invariant()
    def note_moves(self) -> None:
        now = {id: task["status"] for id, task in self.model.tasks.items()}
        ids = now.keys() | self._before.keys()
        self.seen.update((self._before.get(id), now.get(id)) for id in ids)
        self._before = now

    # What rules share

    def both(self, expected: object, make: Callable[[Side], Op[Any]]) -> None:
        """Run an operation on each engine; its answer must be the expected one."""
        for side in self.sides:
            answer = side.run(make(side))
            assert answer == expected, f"{side.name}: {answer!r}, expected {expected!r}"

    def ids_of(self, expected: set[bytes], make: Callable[[Side], Op[Any]]) -> None:
        """The same for verbs that answer with the tasks they changed, in any order."""
        for side in self.sides:
            answer = side.run(make(side))
            assert set(answer) == expected, f"{side.name}: {answer!r}, expected {expected!r}"

    def fenced(self, expected: list[Any], make: Callable[[Side], Op[dict[Any, Any]]]) -> None:
        """The same for verbs that answer for each task."""
        for side in self.sides:
            answer = list(side.run(make(side)).values())
            assert answer == expected, f"{side.name}: {answer!r}, expected {expected!r}"

    def new_bytes(self) -> bytes:
        # In no order: ids decide between tasks that are equal otherwise.
        self.made += 1
        return sha256(str(self.made).encode()).digest()[:16]

    def some(self, candidates: Sequence[T], picked: Sequence[int]) -> list[T]:
        return list(dict.fromkeys(candidates[p % len(candidates)] for p in picked))

    def ids(self, picked: Sequence[int], preferred: Collection[TaskStatus]) -> list[bytes]:
        """A task in one of these states, some in whatever state, and one that does not exist."""
        everything = list(self.model.tasks)
        there = [status for status in TaskStatus if status in preferred and self.there_is(status)]
        chosen = self.model.among(there[picked[0] % len(there)])
        ids = [*self.some(chosen, picked[-1:]), *self.some(everything, picked[1:]), STRANGER]
        return list(dict.fromkeys(ids))

    def there_is(self, *statuses: TaskStatus) -> bool:
        return bool(self.model.among(*statuses))

    def live(self, status: TaskStatus) -> list[Claim]:
        """Claims that are in force."""
        return [
            (id, token)
            for id, token in self.claims
            if id in self.model.tasks
            and self.model.tasks[id]["status"] is status
            and self.model.tasks[id]["claim_token"] == token
        ]

    def submission(self, **given: Any) -> Submission:
        policy = POLICIES[given.pop("policy", 0) % len(POLICIES)]
        good_for = given.pop("good_for", None)
        return Submission(
            **{
                "id": self.new_bytes(),
                "task_name": "t",
                "version": 1,
                "queue_name": "a",
                "priority": 50,
                "args": f"[{self.made}]",
                "kwargs": "{}",
                "enqueue_sha": f"sha-{self.made}",
                "sent_at": 1,
                "task_options": policy.encode(),
                "max_retries": policy.max_retries,
                "good_until": good_for and self.model.now + good_for * SECOND,
                **given,
            }
        )

    def submit_all(self, *batch: Submission) -> None:
        self.sent |= {s.id: s for s in batch}
        self.both(self.model.submit(batch), lambda side: submit.submit(batch))
