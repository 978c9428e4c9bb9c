"""The database refuses a row, not the statement."""

from __future__ import annotations

from holdfast.core.errors import StoreError


class RowRefused(StoreError):
    """A row breaks a constraint, a range or a size as it would be written.

    Whoever writes a batch finds out which row it is, and goes on without it.
    """
