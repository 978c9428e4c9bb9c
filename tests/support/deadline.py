"""Waiting for a condition in a test: no fixed sleeps, and a clear end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], *, within: float = 20.0, what: str = "") -> T:
    """Call until the answer is true, and return it; fail when that takes too long."""
    deadline = time.monotonic() + within
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s: {what or condition}")
        time.sleep(0.005)


def passed(seconds: float) -> None:
    """Wait for a stretch of time that is itself the point of a test."""
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() > end, within=seconds + 5)
