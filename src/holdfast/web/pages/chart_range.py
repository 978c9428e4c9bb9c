"""Which stretch of time charts show, as it stands in the URL: how long, and where it ends.

Without an end it is now, and the charts go on; with one they stand still, and a link to them keeps
showing the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypedDict

from starlette.requests import Request

__all__ = ["RANGES", "ChartRange"]

RANGES: Final = {"15m": 900, "1h": 3_600, "6h": 21_600, "24h": 86_400, "7d": 604_800}
"""What may be chosen, in seconds."""
_USUAL: Final = "1h"
_CLOSER: Final = dict(zip(tuple(RANGES)[1:], RANGES, strict=False))
_FIRST: Final = datetime(2000, 1, 1, tzinfo=UTC)


class _Options(TypedDict, total=False):
    last: int
    until: datetime


@dataclass(frozen=True, slots=True)
class ChartRange:
    """What was asked for; what makes no sense is as if it had not been."""

    chosen: str
    until: datetime | None
    """Where it ends; None: now."""

    @classmethod
    def read(cls, request: Request, now: datetime) -> ChartRange:
        """From the URL of a page."""
        asked = request.query_params.get("r", _USUAL)
        until = _moment(request.query_params.get("until", ""))
        if until is not None and not _FIRST < until < now:
            until = None
        return cls(asked if asked in RANGES else _USUAL, until)

    @property
    def last(self) -> int:
        """Its length in seconds."""
        return RANGES[self.chosen]

    @property
    def options(self) -> _Options:
        """The same for `app.control`."""
        return (
            {"last": self.last} if self.until is None else {"last": self.last, "until": self.until}
        )

    @property
    def names(self) -> list[str]:
        """What may be chosen."""
        return list(RANGES)

    @property
    def closer(self) -> str | None:
        """The next shorter one, for a look at one moment; None: this is the shortest."""
        return _CLOSER.get(self.chosen)

    @property
    def half_closer(self) -> int:
        """Half of that, in seconds."""
        return 0 if self.closer is None else RANGES[self.closer] // 2

    def query(self, chosen: str | None = None) -> dict[str, Any]:
        """For a link to the same, or to another length with the same end."""
        name = chosen or self.chosen
        return {
            "r": None if name == _USUAL and self.until is None else name,
            "until": None if self.until is None else _said(self.until),
        }

    def earlier(self, now: datetime) -> Mapping[str, Any]:
        """Half of its length before."""
        end = (self.until or now) - timedelta(seconds=self.last / 2)
        return {"r": self.chosen, "until": _said(end)}

    def later(self, now: datetime) -> Mapping[str, Any] | None:
        """Half of its length behind; None: it ends now."""
        if self.until is None:
            return None
        end = self.until + timedelta(seconds=self.last / 2)
        return {"r": self.chosen, "until": _said(end) if end < now else None}


def _said(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M}"


def _moment(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
