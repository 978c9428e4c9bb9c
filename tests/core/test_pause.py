from __future__ import annotations

from holdfast.core.pause import growing


def test_a_pause_doubles_up_to_its_limit() -> None:
    assert [growing(0.1, failures, 1.0) for failures in range(5)] == [0.1, 0.2, 0.4, 0.8, 1.0]


def test_a_pause_after_a_night_of_failures_is_the_longest() -> None:
    assert growing(0.25, 100_000, 30.0) == 30.0
