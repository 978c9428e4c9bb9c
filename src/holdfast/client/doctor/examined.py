"""`app.control.doctor()`: an examination, from Python.

Owns its arguments. What is looked at is imported by the first examination: most programs make none.
"""

from __future__ import annotations

from functools import partial

from holdfast.client.access import Access
from holdfast.client.doctor.finding import PATIENCE, Diagnosis
from holdfast.core.moment import Span

__all__ = ["ExaminedStore"]


class ExaminedStore:
    """A store that can be examined."""

    _access: Access

    def doctor(self, *, patience: Span = PATIENCE) -> Diagnosis:
        """Examine the database and whoever works on it: what endangers tasks, what keeps them
        from running, and what to do about each. It changes nothing.

        `patience`: how long a transaction may be open, or a task wait, before it is reported.
        """
        from holdfast.client.doctor.examination import examine

        return examine(self._access, patience)

    async def adoctor(self, *, patience: Span = PATIENCE) -> Diagnosis:
        """Examine the database and whoever works on it."""
        from holdfast.client.doctor.examination import examine

        self._access.check_open()
        return await self._access.offload.run(partial(examine, self._access, patience))
