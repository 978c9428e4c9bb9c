"""Which tasks a page shows, as it stands in the URL.

Owns the names of the fields, their reading (what cannot be read is an error that keeps the input),
and the way back to a link. The same fields choose what a list shows and what an action on a whole
filter is applied to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast
from uuid import UUID

from holdfast.client.task_search import Filter
from holdfast.core.errors import ConfigError
from holdfast.core.moment import span_us
from holdfast.core.status import TaskStatus

__all__ = ["FIELDS", "SORTS", "TaskChoice", "typed_when"]

SORTS: Final = ("age", "name", "queue", "duration", "tries")
_LONGEST: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """What was asked for."""

    status: tuple[TaskStatus, ...] = ()
    queue: str | None = None
    name: str | None = None
    tag: str | None = None
    worker: str | None = None
    error: str | None = None
    exception: str | None = None
    """The class of an exception that no error code stands for."""
    parent: str | None = None
    """The id of the task that sent them."""
    since: str | None = None
    """`2h`, `30d`, or a moment: sent since then."""
    until: str | None = None
    text: str | None = None
    """Part of an id, a key or a name."""
    dead: bool = False

    @classmethod
    def read(cls, given: Mapping[str, Iterable[str]]) -> TaskChoice:
        """From the fields of a URL or a form; `ConfigError` names the field it does not take."""
        found: dict[str, Any] = {}
        for name in FIELDS:
            values = [value.strip() for value in given.get(name, ()) if value.strip()]
            if not values:
                continue
            if name == "status":
                found[name] = tuple(dict.fromkeys(map(_status, ",".join(values).split(","))))
            elif name == "dead":
                found[name] = values[-1] not in ("0", "no", "false")
            elif name == "parent":
                found[name] = _id(values[-1])
            else:
                found[name] = _text(name, values[-1])
        choice = cls(**found)
        now = datetime.now(UTC)
        for name in ("since", "until"):
            _moment(name, getattr(choice, name), now)
        return choice

    def query(self) -> dict[str, Any]:
        """The same for a link; what was not chosen is absent."""
        given: dict[str, Any] = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }
        if self.status:
            given["status"] = ",".join(status.value.lower() for status in self.status)
        if self.dead:
            given["dead"] = "1"
        return given

    def without(self, name: str) -> TaskChoice:
        """The same, but for one field."""
        nothing: dict[str, Any] = {each.name: each.default for each in fields(self)}
        return replace(self, **{name: nothing[name]})

    def only(self, statuses: Iterable[TaskStatus]) -> TaskChoice | None:
        """The same among tasks in these statuses; None if there can be none."""
        wanted = tuple(statuses)
        kept = tuple(each for each in wanted if not self.status or each in self.status)
        return replace(self, status=kept) if kept else None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was chosen."""
        return self == TaskChoice()

    def filter(self, now: datetime) -> Filter:
        """The same for `app.control.tasks`."""
        given = {
            "status": self.status,
            "queue": self.queue,
            "name": self.name,
            "tag": self.tag,
            "worker_id": self.worker,
            "error_code": self.error,
            "exception": self.exception,
            "parent_id": self.parent,
            "submitted_from": _moment("since", self.since, now),
            "submitted_until": _moment("until", self.until, now),
            "text": self.text,
            "dead": self.dead,
        }
        return cast("Filter", {k: v for k, v in given.items() if v not in (None, (), False)})

    def words(self) -> str:
        """`queue email · dead letters`: for the record of an action, and for dialogs."""
        said = [f"{name} {value}" for name, value in self.query().items() if name != "dead"]
        return " · ".join([*said, *(["dead letters"] if self.dead else [])]) or "all tasks"


FIELDS: Final = tuple(field.name for field in fields(TaskChoice))


def _status(text: str) -> TaskStatus:
    try:
        return TaskStatus(text.strip().upper())
    except ValueError:
        known = ", ".join(status.value.lower() for status in TaskStatus)
        raise ConfigError(f"status={text!r:.100}: there are {known}", option="status") from None


def _id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ConfigError(
            f"parent={text!r:.100} is not the id of a task", option="parent"
        ) from None


def _text(name: str, value: str) -> str:
    if len(value) > _LONGEST or "\x00" in value:
        raise ConfigError(f"{name} is too long, or has a NUL in it", option=name)
    return value


def _moment(name: str, text: str | None, now: datetime) -> datetime | None:
    if text is None:
        return None
    try:
        back = timedelta(microseconds=span_us(text, option=name))
    except ConfigError:
        pass
    else:
        return now - min(back, now - _EPOCH)
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{name}={text!r:.100} is not a time: give a length such as 90s, 15m, 12h or 30d, "
            "or a moment such as 2026-11-15T22:00",
            option=name,
        ) from None


def typed_when(text: str) -> float | datetime | None:
    """Seconds, a length of time from now, or a moment; nothing: as it is."""
    if not text:
        return None
    if text == "0":
        return 0.0
    try:
        return span_us(float(text) if text.isdigit() else text, option="when") / 1_000_000
    except ConfigError:
        pass
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"when={text!r:.100} is not a time: give a length such as 90s or 2h, or a moment "
            "such as 2026-11-15T22:00",
            option="when",
        ) from None
