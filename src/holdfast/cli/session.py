"""One command's dealings with the store: reaching it, and saying in a sentence why not.

Owns `--url`, `--schema` and `--json`, the exit codes, and the names of tasks as operators
type them. No command here imports an application. None but a send creates anything: a file
that is not there stays so, and a schema is never made or upgraded by looking at it.

    0    done        1    something could not be done: an unknown id, a task that has ended
    2    wrong flags or values        3    the store cannot be used
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, wraps
from pathlib import Path
from typing import IO, Any, Final, TypeVar
from uuid import UUID

import click

from holdfast.cli.render.screen import Screen
from holdfast.client.access import Access
from holdfast.client.config import Config
from holdfast.client.control import Control
from holdfast.core.errors import ConfigError, HoldfastError, PayloadError, StoreError
from holdfast.core.identity import as_bytes, as_uuid
from holdfast.core.moment import from_us
from holdfast.core.text import one_line
from holdfast.store.op import Op
from holdfast.store.verbs.timing import next_due

T = TypeVar("T")

_LEAST_PREFIX: Final = 8
_DIGITS: Final = 32


class Refused(click.ClickException):
    """The end of a command that could not do what it was asked: one sentence and a code."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(one_line(" ".join(message.split())))
        # Taken now: when the sentence is shown, the command has been left.
        context = click.get_current_context(silent=True)
        self._command = "holdfast" if context is None else context.command_path

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"{self._command}: {self.message}", file=file, err=file is None)


class Misused(Refused):
    """What was typed makes no sense."""

    exit_code = 2


class Unreachable(Refused):
    """The store cannot be used."""

    exit_code = 3


class Session:
    """The store, for as long as one command runs."""

    def __init__(self, access: Access, screen: Screen) -> None:
        self.access = access
        self.screen = screen

    @cached_property
    def control(self) -> Control:
        """The operator's verbs."""
        return Control(self.access)

    def run(self, make: Callable[[], Op[T]]) -> T:
        """Run an operation of the store."""
        return self.access.run(make)

    def now(self) -> datetime:
        """The database's clock."""
        return from_us(self.run(next_due).now)

    def task_id(self, typed: str) -> UUID:
        """The task that an operator names: by its id, or by digits no other id begins with."""
        digits = typed.replace("-", "").lower()
        if len(digits) == _DIGITS:
            return as_uuid(as_bytes(typed))
        if not (_LEAST_PREFIX <= len(digits) < _DIGITS and _is_hex(digits)):
            raise Misused(
                f"{typed!r} is not a task id: give a UUID, such as "
                "0197f3c2-5b1e-7d44-9a01-3c5e6f708192, "
                f"or the first {_LEAST_PREFIX} digits of one, or more"
            )
        last = UUID(digits.ljust(_DIGITS, "f"))
        nearest = self.control.tasks.list(before=last, limit=2).tasks
        fitting = [info.id for info in nearest if info.id.hex.startswith(digits)]
        match fitting:
            case [found]:
                return found
            case []:
                raise Refused(f"no task has an id that begins with {typed}")
            case _:
                raise Misused(
                    f"several tasks have an id that begins with {typed}, {fitting[0]} and "
                    f"{fitting[1]} among them: give more of it"
                )


def operates(*, creates: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that takes a session.

    `creates`: the command may make the database, as the first send of an app does.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @click.option(
            "--url",
            metavar="URL",
            help="Where the tasks are; default: $HOLDFAST_URL, else sqlite:///holdfast.db.",
        )
        @click.option("--schema", help="PostgreSQL: the schema of the tables.")
        @click.option("--json", "as_json", is_flag=True, help="Answer with one JSON document.")
        @wraps(function)
        def command(url: str | None, schema: str | None, as_json: bool, **given: Any) -> None:
            with session(url, schema, as_json=as_json, creates=creates) as opened:
                function(opened, **given)

        return command

    return decorate


@contextmanager
def session(
    url: str | None, schema: str | None, *, as_json: bool, creates: bool = False
) -> Iterator[Session]:
    """A session; errors of Holdfast inside it end the command."""
    with _warnings() as warned:
        try:
            keywords: dict[str, Any] = {} if schema is None else {"schema": schema}
            if not creates:
                keywords["auto_migrate"] = False
            config = Config.load(url, keywords)
            if not creates:
                _look_for(config)
            access = Access(config)
            try:
                yield Session(access, Screen(as_json=as_json))
            finally:
                access.close()
        except HoldfastError as error:
            # What went wrong may have been logged as well; it is said once.
            warned.pop(str(error), None)
            raise _ending(error) from error


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


def _ending(error: HoldfastError) -> Refused:
    """How a command ends that met this error."""
    match error:
        case StoreError():
            return Unreachable(str(error))
        case ConfigError() | PayloadError():
            return Misused(str(error))
        case _:
            return Refused(str(error))


def _look_for(config: Config) -> None:
    settings = config.store
    if settings.in_memory:
        raise Misused("a database in memory belongs to one process: give the URL of a file")
    if settings.engine == "sqlite" and not Path(settings.address).exists():
        raise Unreachable(
            f"there is no database at {settings.address}: "
            "say where it is with --url or HOLDFAST_URL"
        )


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdef" for character in text)
