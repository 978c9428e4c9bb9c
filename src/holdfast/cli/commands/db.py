"""`holdfast db`: whether the database can be used, and making it so.

Owns the rendering of the schema's state. Looking changes nothing: `status` and `--plan`
neither create a file nor a table, and work on a database that this code cannot use.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import click

from holdfast.cli.session import CommandSession, Misused, NotDone, operates
from holdfast.store import migrate
from holdfast.store.migrate import MIGRATIONS, Migration, SchemaStatus, migration_text
from holdfast.store.open import connect, schema_status, upgrade_schema
from holdfast.store.protocol import Store
from holdfast.store.settings import StoreSettings


class ExaminedDatabase:
    """The database of one command, whatever state it is in."""

    def __init__(self, session: CommandSession) -> None:
        self.screen = session.screen
        self.settings = session.access.config.store
        if self.settings.in_memory:
            raise Misused("a database in memory is always new: give the URL of a file")
        # Only a SQLite file may be one that nobody has made yet.
        self.exists = self.settings.is_server or Path(self.settings.address).exists()

    def store(self) -> closing[Store]:
        """The store, as it is, for a block."""
        return closing(connect(self.settings))

    def status(self) -> SchemaStatus:
        """What its tables are, beside what this code needs."""
        if not self.exists:
            return SchemaStatus(None, None, migrate.CODE, MIGRATIONS)
        with self.store() as store:
            return schema_status(store)


@click.group("db")
def db() -> None:
    """See whether the database can be used; upgrade its tables."""


@db.command()
@operates(creates=True)
def status(session: CommandSession) -> None:
    """Show where the database is, what it runs on, and whether its tables fit this code.

    Ends with 0 if it can be used, with 1 if `holdfast db migrate` has something to do.
    """
    place = ExaminedDatabase(session)
    found = place.status()
    about: dict[str, Any] = {}
    if place.exists:
        with place.store() as store:
            # Both engines offer it, beyond the contract.
            about = asdict(cast("Any", store).probe())
    if place.screen.as_json:
        place.screen.document(
            {
                "url": place.settings.masked,
                "schema_version": found.version,
                "code_version": found.code,
                "pending": [_document(step) for step in found.pending],
                "usable": _is_ready(found),
                "database": about,
            }
        )
    else:
        place.screen.facts(
            [
                ("database", place.settings.masked),
                ("engine", _engine(place.settings, about)),
                *((name.replace("_", " "), _shown(value)) for name, value in about.items()),
                ("schema", _state(found)),
            ]
        )
    if not _is_ready(found):
        raise click.exceptions.Exit(NotDone.exit_code)


@db.command("migrate")
@click.option("--plan", is_flag=True, help="Show the statements, and run none of them.")
@operates(creates=True)
def migrate_(session: CommandSession, plan: bool) -> None:
    """Create the tables, or bring them to what this code needs. Nothing is ever dropped."""
    place = ExaminedDatabase(session)
    found = place.status()
    migrate.refuse_newer(found)
    if plan:
        _show_plan(place, found)
        return
    done: list[Migration] = []
    if found.pending:
        with place.store() as store:
            done = upgrade_schema(store)
    if place.screen.as_json:
        place.screen.document({"done": [_document(step) for step in done]})
        return
    for step in done:
        place.screen.line(f"{_name(step)}: {step.summary}")
    if not done:
        place.screen.line(f"nothing to do: {_state(found)}")


def _show_plan(place: ExaminedDatabase, found: SchemaStatus) -> None:
    texts = {step: migration_text(step, place.settings) for step in found.pending}
    if place.screen.as_json:
        place.screen.document(
            {"plan": [{**_document(step), "sql": text} for step, text in texts.items()]}
        )
        return
    if not texts:
        place.screen.line(f"nothing to do: {_state(found)}")
    for step, text in texts.items():
        place.screen.line(f"-- {_name(step)}: {step.summary}")
        click.echo(text.rstrip())
    if texts:
        place.screen.remark("this is a plan; nothing was changed")


def _is_ready(found: SchemaStatus) -> bool:
    return found.is_current and found.is_usable


def _state(found: SchemaStatus) -> str:
    if found.version is None:
        return "no tables yet; the first use makes them, or `holdfast db migrate`"
    if not found.is_usable:
        return f"version {found.version}, newer than this code ({found.code}): upgrade Holdfast"
    if found.pending:
        steps = "step" if len(found.pending) == 1 else "steps"
        return (
            f"version {found.version}, this code has {found.code}: "
            f"`holdfast db migrate` will run {len(found.pending)} {steps}"
        )
    return f"version {found.version}, up to date"


def _engine(settings: StoreSettings, about: dict[str, Any]) -> str:
    name = "PostgreSQL" if settings.is_server else "SQLite"
    return f"{name} {about.pop('version', '')}".strip()


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _name(step: Migration) -> str:
    return f"migration {step.version:04d}"


def _document(step: Migration) -> dict[str, Any]:
    return {"version": step.version, "summary": step.summary}
