"""Where a command's database is, and who said so.

Owns `--app`, `--url` and `--schema`, and their order: a flag, then HOLDFAST_APP, then
HOLDFAST_URL, then the default. With an app, its module is imported, so that a command looks where
the app's worker looks; what the import prints goes to standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.client.config import Config
from holdfast.client.registry import Registry
from holdfast.core.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.app import Holdfast

APP_VARIABLE: Final = "HOLDFAST_APP"
URL_VARIABLE: Final = "HOLDFAST_URL"


class AppUnusable(ConfigError):
    """The app cannot be imported; the message is several lines for its author."""


@dataclass(frozen=True, slots=True)
class Place:
    """A database, as an operator said it."""

    config: Config
    tasks: Registry
    """The tasks of the app, if there is one."""
    origin: str
    """Who said so, for messages."""
    is_default: bool = False
    app: Holdfast | None = None
    """The app itself, if one was named."""

    @property
    def described(self) -> str:
        """The database and how it was chosen; no password."""
        return f"{self.config.store.masked}, {self.origin}"


def place_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--app`, `--url` and `--schema`; the command receives what they say as `place`."""

    @click.option(
        "--app",
        metavar="MODULE:APP",
        help=f"The app whose database it is; default: ${APP_VARIABLE}.",
    )
    @click.option(
        "--url",
        metavar="URL",
        help=f"The database itself; default: ${URL_VARIABLE}, else sqlite:///holdfast.db.",
    )
    @click.option("--schema", help="PostgreSQL: the schema of the tables; goes with --url.")
    @wraps(function)
    def command(app: str | None, url: str | None, schema: str | None, **given: Any) -> None:
        function(place=PlaceOptions(app, url, schema), **given)

    return command


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """What the options said."""

    app: str | None = None
    url: str | None = None
    schema: str | None = None

    def find(self, *, creates: bool) -> Place:
        """The database meant; `creates`: it may be made, or its tables upgraded."""
        if self.app is not None and (self.url is not None or self.schema is not None):
            raise click.UsageError("give --app, or --url and --schema, not both: an app knows both")
        found = self._find()
        if creates:
            return found
        return replace(found, config=replace(found.config, auto_migrate=False))

    def _find(self) -> Place:
        app = self.app
        if app is None and self.url is None:
            app = os.environ.get(APP_VARIABLE) or None
        if app is not None:
            said = f"from --app {app}" if self.app is not None else f"from {APP_VARIABLE}={app}"
            return _of_app(app, said)
        keywords: dict[str, Any] = {} if self.schema is None else {"schema": self.schema}
        config = Config.load(self.url, keywords)
        if self.url is not None:
            return Place(config, Registry(), "from --url")
        if os.environ.get(URL_VARIABLE):
            return Place(config, Registry(), f"from {URL_VARIABLE}")
        return Place(config, Registry(), "the default", is_default=True)


def _of_app(target: str, origin: str) -> Place:
    from holdfast.app import Holdfast
    from holdfast.runtime.child.load_app import Unloadable, load

    try:
        with redirect_stdout(sys.stderr):
            load(target)
    except Unloadable as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            # Ctrl-C while it was imported: nothing is wrong with the app.
            raise KeyboardInterrupt from None
        raise AppUnusable(f"{origin}: {error}") from None
    module, _, path = target.partition(":")
    found: Any = sys.modules[module]
    for name in path.split("."):
        found = getattr(found, name)
    assert isinstance(found, Holdfast)
    return Place(found.config, found.tasks, origin, app=found)
