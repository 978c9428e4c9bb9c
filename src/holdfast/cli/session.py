"""One command's dealings with the store: reaching it, and saying in a sentence why not.

Owns `--json`, the exit codes, and the ids of tasks as operators type them; what it asks, it asks
of `app.control`, like any program. No command but a send creates anything: a file that is not
there stays so, and a schema is never made or upgraded by looking at it.

    0    done        1    something could not be done: an unknown id, a task that has ended
    2    wrong flags or values, or an app that cannot be imported
    3    the database cannot be used, or is not there
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import IO, Any, Final
from uuid import UUID

import click

from holdfast.cli.place import AppUnusable, Place, PlaceOptions, place_options
from holdfast.cli.render.screen import Screen
from holdfast.client.access import Access
from holdfast.client.control import Control
from holdfast.client.find import FORMS, parse
from holdfast.core.errors import (
    ConfigError,
    HoldfastError,
    PayloadError,
    StoreError,
    TaskNotFound,
)
from holdfast.core.redaction import key_rule
from holdfast.core.text import one_line, visible

_DIGITS: Final = 32
_MOST_NAMED: Final = 10
"""Of the tasks that a piece of an id may mean."""


class NotDone(click.ClickException):
    """The end of a command that could not do what it was asked: one sentence and a code."""

    exit_code = 1

    def __init__(self, message: str, *, several_lines: bool = False) -> None:
        super().__init__(visible(message) if several_lines else one_line(" ".join(message.split())))
        # Taken now: when the sentence is shown, the command has been left.
        context = click.get_current_context(silent=True)
        self._command = "holdfast" if context is None else context.command_path

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"{self._command}: {self.message}", file=file, err=file is None)


class Misused(NotDone):
    """What was typed makes no sense."""

    exit_code = 2


class Unreachable(NotDone):
    """The store cannot be used."""

    exit_code = 3


class CommandSession:
    """The store, for as long as one command runs."""

    def __init__(self, place: Place, access: Access, screen: Screen) -> None:
        self.place = place
        self.access = access
        self.screen = screen
        self.control = Control(access)
        self.hides = key_rule(place.config.redact_keys)
        """Which keys hold values that are not shown."""

    def task_id(self, typed: str) -> UUID:
        """The task that an operator names: by its id, its short id, or some digits of it."""
        readings = parse(typed)
        if not readings:
            raise Misused(f"{typed!r} is not a task id: {FORMS}")
        if len(readings[0].first) == _DIGITS:
            return UUID(readings[0].first)
        match self.control.tasks.find(typed, limit=_MOST_NAMED + 1):
            case [found]:
                return found
            case []:
                raise NotDone(
                    f"no task has an id that begins or ends with {typed} in this database "
                    f"({self.place.described})"
                    if len(readings) > 1
                    else f"no task has the id {typed} in this database ({self.place.described})"
                )
            case several:
                for each in several[:_MOST_NAMED]:
                    info = self.control.tasks.show(each)
                    self.screen.remark(f"  {each}  {info.status.value}  {info.name}")
                raise Misused(f"{typed} may be any of {_number(several)} tasks: give more of it")

    def workflow_id(self, typed: str) -> UUID:
        """The workflow that an operator names, in the same ways."""
        readings = parse(typed)
        if not readings:
            raise Misused(f"{typed!r} is not the id of a workflow: {FORMS}")
        match self.control.workflows.find(typed, limit=_MOST_NAMED + 1):
            case [found]:
                return found
            case []:
                raise NotDone(f"no workflow has the id {typed} ({self.place.described})")
            case several:
                for each in several[:_MOST_NAMED]:
                    info = self.control.workflows.get(each)
                    self.screen.remark(f"  {each}  {info.status.value}  {info.name}")
                raise Misused(
                    f"{typed} may be any of {_number(several)} workflows: give more of it"
                )


def _number(several: Sequence[UUID]) -> str:
    """How many ids are meant, of which so many have been named."""
    if len(several) > _MOST_NAMED:
        return f"more than {_MOST_NAMED}"
    return f"these {len(several)}"


def each_once(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """The callback of an argument that names several things: none of them twice, which would be
    told that what was just done was not needed."""
    return tuple(dict.fromkeys(given))


def operates(*, creates: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that takes a session.

    `creates`: the command may make the database, as the first send of an app does.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @place_options
        @click.option("--json", "as_json", is_flag=True, help="Answer with one JSON document.")
        @wraps(function)
        def command(place: PlaceOptions, as_json: bool, **given: Any) -> None:
            with session(place, as_json=as_json, creates=creates) as opened:
                function(opened, **given)

        return command

    return decorate


@contextmanager
def session(given: PlaceOptions, *, as_json: bool, creates: bool) -> Iterator[CommandSession]:
    """A session; errors of Holdfast inside it end the command."""
    place: Place | None = None
    with _warnings() as warned:
        try:
            place = given.find(creates=creates)
            if not creates:
                _look_for(place)
            access = Access(place.config)
            try:
                yield CommandSession(place, access, Screen(as_json=as_json))
            finally:
                access.close()
        except HoldfastError as error:
            # What went wrong may have been logged as well; it is said once.
            for said in [text for text in warned if text.startswith(str(error))]:
                del warned[said]
            raise _ending(error, place) from error


@contextmanager
def _warnings() -> Iterator[dict[str, None]]:
    """Collect what is logged as a warning, each once, and say it at the end."""
    found: dict[str, None] = {}

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found[record.getMessage()] = None

    logger, collector = logging.getLogger("holdfast"), Collector(logging.WARNING)
    logger.addHandler(collector)
    try:
        yield found
    finally:
        logger.removeHandler(collector)
        for message in found:
            click.echo(f"warning: {one_line(message)}", err=True)


def _ending(error: HoldfastError, place: Place | None) -> NotDone:
    """How a command ends that met this error."""
    looked_at = ""
    if place is not None:
        named = place.config.store.masked in str(error)
        looked_at = f" ({place.origin})" if named else f" (database: {place.described})"
    match error:
        case StoreError():
            return Unreachable(f"{error}{looked_at}")
        case AppUnusable():
            return Misused(str(error), several_lines=True)
        case ConfigError(option="url" | "pooler") if place is not None:
            # The URL could be read; it is the server that has no such database, or no such user.
            return Unreachable(f"{error}{looked_at}")
        case ConfigError() | PayloadError():
            return Misused(str(error))
        case TaskNotFound():
            return NotDone(f"{error}{looked_at}")
        case _:
            return NotDone(str(error))


def _look_for(place: Place) -> None:
    settings = place.config.store
    if settings.in_memory:
        raise Misused(
            f"a database in memory belongs to one process ({place.described}): "
            "give --url with the URL of a file"
        )
    if not (settings.is_server or Path(settings.address).exists()):
        remedy = (
            "say which app it belongs to, as for the worker (--app MODULE:APP, or HOLDFAST_APP), "
            "or where it is (--url, or HOLDFAST_URL)"
            if place.is_default
            else "has anything been sent yet? `holdfast db migrate` creates it"
        )
        raise Unreachable(f"there is no database at {settings.address} ({place.origin}): {remedy}")
