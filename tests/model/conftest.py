"""Labs for the model: see `tests.support.stores`."""

from __future__ import annotations

from tests.support.stores import labs

__all__ = ["labs"]
