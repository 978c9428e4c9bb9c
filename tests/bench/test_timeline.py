"""What counts as idle beside waiting tasks."""

from __future__ import annotations

import pytest

from bench.peers.mark import Mark
from bench.worker.timeline import idle_ms

MS = 1_000_000


def run(pid: int, began: float, ended: float) -> Mark:
    return Mark(0, round(began * MS), round(ended * MS), pid, 0)


def test_a_child_idles_between_its_tasks_and_after_the_last_one() -> None:
    # The last task begins at 30: until then something waited, and later nobody can help.
    runs = [run(1, 0, 10), run(1, 12, 22), run(2, 0, 15), run(2, 30, 90)]
    assert sorted(idle_ms(runs, 2)) == pytest.approx([2, 8, 15])


def test_a_child_that_ran_nothing_idled_all_the_time() -> None:
    assert idle_ms([run(1, 5, 10), run(1, 10, 20)], 2) == pytest.approx([5])


def test_who_ends_after_the_last_begin_did_not_idle() -> None:
    assert idle_ms([run(1, 0, 10), run(2, 0, 10)], 2) == []
