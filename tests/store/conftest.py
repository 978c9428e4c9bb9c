"""Labs for every test of the store: see `tests.support.stores`."""

from __future__ import annotations

from tests.support.stores import lab, labs

__all__ = ["lab", "labs"]
