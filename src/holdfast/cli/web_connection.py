"""A connection to `holdfast web`, for which nobody waits for ever.

Owns the patience with whoever asks: a connection on which no request was complete for `PATIENCE`
seconds is closed. The server (uvicorn) waits for a request's first lines as long as it takes, so
whoever opens many connections and sends a letter now and then would leave none for others. While a
request is being answered (a long poll, a long log) nothing is closed; how long a body may take is
`web/context.py`'s.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["PATIENCE", "WebConnection"]

PATIENCE: Final = 10.0


class WebConnection(H11Protocol):
    """Closes itself when nothing comes of it."""

    _check: asyncio.TimerHandle | None = None
    _answered: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look_again()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._check is not None:
            self._check.cancel()
        super().connection_lost(exc)

    def _look_again(self) -> None:
        self._check = self.loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        cycle = self.cycle
        if cycle is self._answered and (cycle is None or cycle.response_complete):
            # Not a request since the last look.
            self.transport.close()
            return
        self._answered = cycle
        self._look_again()

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: whoever asks for another protocol is answered in this one."""
