"""The cursor against a queue in a list: bounded looks, and nothing is passed over."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.records import HEAD, Position
from holdfast.runtime.supervisor.state.cursor import HEAD_EVERY, PATIENCE, Cursor
from tests.core.quick import quick

PAGE = 10
WANTED = 3


@dataclass
class Queue:
    """Entries in order; a claim examines a page and takes those it knows."""

    entries: dict[Position, bool] = field(default_factory=dict)
    cursor: Cursor = field(default_factory=Cursor)
    now: float = 0.0
    cost: float = 0.001
    starts: list[Position] = field(default_factory=list)

    def add(self, at: int, *, priority: int = 50, known: bool = True) -> Position:
        place = Position(priority, at, bytes(16))
        self.entries[place] = known
        return place

    def claim(self) -> list[Position]:
        start = self.cursor.start(self.now)
        self.starts.append(start)
        page = sorted(place for place in self.entries if place > start)[:PAGE]
        taken = [place for place in page if self.entries[place]][:WANTED]
        for place in taken:
            del self.entries[place]
        self.now += self.cost
        full = len(taken) == WANTED
        end = taken[-1] if full else page[-1] if len(page) == PAGE else None
        self.cursor.looked(end, full=full, now=self.now)
        return taken

    def drain(self, most: int = 1_000) -> list[Position]:
        """Claim as long as the cursor sees a chance."""
        found: list[Position] = []
        while self.cursor.may_find(self.now):
            most -= 1
            assert most > 0, "the cursor never comes to rest"
            found += self.claim()
        return found

    def known(self) -> list[Position]:
        return [place for place, known in self.entries.items() if known]


def test_a_plain_queue_is_drained_in_order_without_looking_back() -> None:
    queue = Queue()
    places = [queue.add(n) for n in range(20)]
    assert [place for _ in range(6) for place in queue.claim()] == places[:18]
    assert queue.starts == [HEAD, *places[2:17:3]]


def test_after_a_hint_one_claim_finds_what_is_new() -> None:
    queue = Queue()
    queue.drain()
    for at in range(3):
        queue.now += 0.5
        place = queue.add(at)
        queue.cursor.hinted()
        assert queue.claim() == [place]


def test_a_hint_during_a_claim_is_not_lost() -> None:
    queue = Queue()
    queue.cursor.start(queue.now)
    queue.add(1)
    queue.cursor.hinted()
    queue.cursor.looked(None, full=False, now=queue.now)
    assert queue.cursor.may_find(queue.now)
    assert len(queue.drain()) == 1


def test_unknown_tasks_in_front_are_passed_and_stay_passed() -> None:
    queue = Queue()
    for at in range(100):
        queue.add(at, known=False)
    queue.drain()
    behind = [queue.add(1_000 + n) for n in range(12)]
    queue.cursor.hinted()
    found = [place for _ in range(6) for place in queue.claim()]
    assert len(found) >= 9
    assert set(found) <= set(behind)


def test_what_comes_up_before_the_front_is_found() -> None:
    queue = Queue()
    for at in range(100):
        queue.add(at, known=False)
    queue.drain()
    for at in (5, 55, 95):
        place = queue.add(at)
        queue.cursor.hinted()
        assert queue.drain() == [place]


def test_a_higher_priority_goes_before_a_long_backlog() -> None:
    queue = Queue()
    for at in range(200):
        queue.add(at, priority=90)
    for _ in range(10):
        queue.claim()
    urgent = [queue.add(at, priority=1) for at in range(5)]
    queue.cursor.hinted()
    queue.now += 1
    assert (queue.claim() + queue.claim())[:5] == urgent
    assert queue.claim()[0].priority == 90


def test_vain_looks_back_cost_a_tenth_of_the_time() -> None:
    queue = Queue()
    for at in range(2_000):
        queue.add(at, known=at >= 50)
    for _ in range(10):
        queue.claim()
    spent = {True: 0.0, False: 0.0}
    for _ in range(600):
        queue.cursor.hinted()
        looks_back = queue.cursor.start(queue.now) < Position(50, 50, bytes(16))
        queue.cost = 0.016 if looks_back else 0.001
        queue.claim()
        spent[looks_back] += queue.cost
    assert 0 < spent[True] <= spent[False] / PATIENCE + 0.016


def test_an_expensive_head_costs_a_tenth_of_the_time() -> None:
    """Under an open snapshot every look at the head reads all that was claimed since."""
    queue = Queue()
    for at in range(3_000):
        queue.add(at)
    queue.claim()
    spent = {True: 0.0, False: 0.0}
    for _ in range(900):
        queue.cursor.hinted()
        is_head = queue.cursor.start(queue.now) == HEAD
        queue.cost = 0.016 if is_head else 0.001
        assert queue.claim()
        spent[is_head] += queue.cost
    assert 0 < spent[True] <= spent[False] / PATIENCE + 0.016


def test_the_head_is_looked_at_once_a_second_without_a_hint() -> None:
    queue = Queue()
    for at in range(100):
        queue.add(at, known=False)
    queue.drain()
    assert not queue.cursor.may_find(queue.now)
    lost = queue.add(7)
    queue.now += HEAD_EVERY
    assert queue.cursor.may_find(queue.now)
    assert queue.drain() == [lost]


ADDED = st.tuples(st.integers(1, 3), st.integers(0, 30), st.booleans())


@quick
@given(st.lists(st.one_of(ADDED, st.just("claim"), st.just("second")), max_size=120))
def test_nothing_known_is_left_when_the_cursor_rests(steps: list[object]) -> None:
    queue = Queue()
    for step in steps:
        if step == "claim":
            queue.claim()
        elif step == "second":
            queue.now += HEAD_EVERY
        elif isinstance(step, tuple):
            priority, at, known = step
            queue.add(at, priority=priority, known=known)
            queue.cursor.hinted()
    queue.drain()
    assert queue.known() == []
