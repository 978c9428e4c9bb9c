"""`app.control.audit`: who did what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeAlias, TypedDict, Unpack

from holdfast.client.access import Access
from holdfast.client.acting import Effect, recorded
from holdfast.core.errors import ConfigError
from holdfast.core.moment import from_us, optional_us
from holdfast.core.options import checks
from holdfast.core.payload.codec import from_json
from holdfast.store.op import Op, Steps, writes
from holdfast.store.verbs import audit_entries
from holdfast.store.verbs.audit_entries import AuditEntry

__all__ = ["AuditControl", "AuditFilter", "AuditInfo", "AuditPage"]

Entries: TypeAlias = "list[AuditEntry]"

_MAX_PAGE: Final = 1000
_LATEST_ID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AuditInfo:
    """One action of an operator."""

    id: int
    at: datetime
    by: str
    origin: str | None
    """From where: the command line of a host, an address."""
    verb: str
    subject: str
    """What it was done to: `task 0197…`, `3 tasks`, `queue mail`."""
    filter: str | None
    """What the tasks were chosen by, if not by name."""
    count: int
    detail: Any


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Some actions, the newest first."""

    entries: Sequence[AuditInfo]
    next: int | None
    """Give this as `before` for the next page; None: there is none."""


class AuditFilter(TypedDict, total=False):
    """Which actions a list shows."""

    by: str
    verb: str
    subject: str
    since: datetime
    until: datetime


class AuditControl:
    """`app.control.audit`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def list(
        self, *, before: int | None = None, limit: int = 50, **where: Unpack[AuditFilter]
    ) -> AuditPage:
        """One page of what operators did, the newest first."""
        return _page(self._access.run(_asked(before, limit, where)), limit)

    async def alist(
        self, *, before: int | None = None, limit: int = 50, **where: Unpack[AuditFilter]
    ) -> AuditPage:
        """One page of what operators did, the newest first."""
        return _page(await self._access.arun(_asked(before, limit, where)), limit)

    def record(self, verb: str, subject: str, *, count: int = 1, detail: object = None) -> None:
        """Write down an action that no verb of `app.control` writes down; nothing for none."""
        self._access.run(_noting(verb, Effect(count, subject, detail)))

    async def arecord(
        self, verb: str, subject: str, *, count: int = 1, detail: object = None
    ) -> None:
        """Write down an action that no verb of `app.control` writes down; nothing for none."""
        await self._access.arun(_noting(verb, Effect(count, subject, detail)))


def _noting(verb: str, effect: Effect) -> Callable[[], Op[None]]:
    return recorded(checks.stored_text(verb, "verb"), partial(_nothing), lambda _: effect)


@writes
def _nothing() -> Steps[None]:
    return
    yield


def _asked(before: int | None, limit: int, where: AuditFilter) -> Callable[[], Op[Entries]]:
    unknown = where.keys() - AuditFilter.__annotations__.keys()
    if unknown:
        names = ", ".join(sorted(AuditFilter.__annotations__))
        raise ConfigError(f"actions cannot be listed by {min(unknown)!r}: use {names}")
    if before is not None and not (type(before) is int and 0 <= before <= _LATEST_ID):
        raise ConfigError(f"before={before!r} is not the number of an entry", option="before")
    size = checks.at_least(1, limit, "limit")
    if size > _MAX_PAGE:
        raise ConfigError(f"limit={size} is more than {_MAX_PAGE:,}", option="limit")
    return partial(
        audit_entries.entries,
        before=before,
        limit=size,
        **_texts(where),
        since=optional_us(where.get("since"), option="since"),
        until=optional_us(where.get("until"), option="until"),
    )


def _texts(where: AuditFilter) -> dict[str, str | None]:
    given = {"actor": where.get("by"), "verb": where.get("verb"), "subject": where.get("subject")}
    return {
        name: None if text is None else checks.stored_text(text, name)
        for name, text in given.items()
    }


def _page(found: Entries, limit: int) -> AuditPage:
    return AuditPage(
        [
            AuditInfo(
                each.id,
                from_us(each.at),
                each.actor,
                each.origin,
                each.verb,
                each.subject,
                each.filter,
                each.count,
                _detail(each.detail),
            )
            for each in found
        ],
        found[-1].id if len(found) == limit else None,
    )


def _detail(text: str | None) -> Any:
    try:
        return None if text is None else from_json(text)
    except ValueError:
        # Cut, or written by hand.
        return text
