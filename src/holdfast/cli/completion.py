"""What the shell offers when somebody presses Tab: statuses, and names that are in the database.

Owns the asking. It goes to the database that the line, or the environment, names; it says nothing,
takes a second or two at the most, and whatever goes wrong means that nothing is offered.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from holdfast.cli.place import Place, PlaceOptions
from holdfast.client.access import Access
from holdfast.client.control import Control
from holdfast.core.identity import short_id
from holdfast.core.status import TaskStatus
from holdfast.core.text import one_line

Items: TypeAlias = list[CompletionItem]
Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], Items]

_PATIENCE: Final = 1.5
_NEWEST: Final = 200
_IDS: Final = 50


def statuses(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Those of a task; several are parted by commas."""
    before, comma, last = incomplete.rpartition(",")
    return [
        CompletionItem(before + comma + status.value, help=status.meaning)
        for status in TaskStatus
        if status.value.startswith(last.upper())
    ]


def _asking(names: Callable[[Control, Place], Iterable[tuple[str, str | None]]]) -> Complete:
    """The names that the database answers with, as an option or argument wants them."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        try:
            found = dict(_ask(ctx, names))
        except Exception:  # noqa: BLE001 - somebody is typing: nothing is offered
            return []
        return [
            CompletionItem(name, help=None if about is None else one_line(about))
            for name, about in sorted(found.items())
            if name.startswith(incomplete) and name.isprintable()
        ]

    return complete


def _ask(
    ctx: click.Context, names: Callable[[Control, Place], Iterable[tuple[str, str | None]]]
) -> list[tuple[str, str | None]]:
    given = {name: ctx.params.get(name) for name in ("app", "url", "schema")}
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        return _ask_quietly(given, names)
    finally:
        logging.disable(before)


def _ask_quietly(
    given: dict[str, Any], names: Callable[[Control, Place], Iterable[tuple[str, str | None]]]
) -> list[tuple[str, str | None]]:
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        place = PlaceOptions(**given).find(creates=False)
        settings = place.config.store
        if settings.in_memory or not (settings.is_server or Path(settings.address).exists()):
            return []
        quick = {
            name: min(getattr(place.config, name), _PATIENCE)
            for name in ("connect_timeout", "statement_timeout", "lock_timeout")
        }
        access = Access(replace(place.config, **quick))
        try:
            return list(names(Control(access), place))
        finally:
            access.close()


def _queues(control: Control, place: Place) -> Iterable[tuple[str, str | None]]:
    for worker in control.workers.list():
        yield from ((queue, None) for queue in worker.queues)
    for queue in control.queues.list():
        yield queue.name, "paused" if queue.paused_at else f"{queue.pending:,} waiting"


def _task_names(control: Control, place: Place) -> Iterable[tuple[str, str | None]]:
    yield from ((task.name, None) for task in place.tasks)
    for worker in control.workers.list():
        yield from ((task.rpartition("@")[0], None) for task in worker.tasks)
    yield from ((info.name, None) for info in control.tasks.list(limit=_NEWEST).tasks)


def _workers(control: Control, place: Place) -> Iterable[tuple[str, str | None]]:
    for worker in control.workers.list():
        yield worker.id, f"{worker.state}, {worker.hostname}"


def _tasks(control: Control, place: Place) -> Iterable[tuple[str, str | None]]:
    for info in control.tasks.list(limit=_IDS).tasks:
        yield short_id(info.id.bytes), f"{info.status.value} {info.name}"


queues: Final = _asking(_queues)
"""Names of queues."""
task_names: Final = _asking(_task_names)
"""Names of tasks."""
workers: Final = _asking(_workers)
"""Ids of workers."""
tasks: Final = _asking(_tasks)
"""Short ids of the newest tasks."""
