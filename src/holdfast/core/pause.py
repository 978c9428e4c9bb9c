"""Pauses between attempts that fail: twice as long each time, up to a limit."""

from __future__ import annotations

__all__ = ["growing"]

_MOST_DOUBLINGS = 64
"""A float overflows after a thousand, which a program that fails all night reaches."""


def growing(first: float, failures: int, longest: float) -> float:
    """The pause after so many failures beyond the first one."""
    return min(first * 2.0 ** min(failures, _MOST_DOUBLINGS), longest)
