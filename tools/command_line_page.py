"""The reference of the command line, drawn from the commands themselves.

Owns the page `docs/reference/cli.md`: what all commands share, then each command with its arguments
and options as `--help` gives them. It asks click, so a new option needs no word here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import click

from holdfast.cli.main import ALIASES, main

_SHARED: Final = ("app", "url", "schema", "as_json")

_INTRODUCTION: Final = """\
# The command line

This page is generated from the code: `make docs`.

## Where the tasks are

Every command but `worker`, which is given its app, finds its database in this order:

| | |
|---|---|
| `--app MODULE:APP` | the app's own; its module is imported, as by the worker |
| `--url URL`, and on PostgreSQL `--schema NAME` | this one |
| `HOLDFAST_APP` | as `--app`; it serves `holdfast worker`, too |
| `HOLDFAST_URL` | as `--url` |
| | `sqlite:///holdfast.db`, in the working directory |

A message about the database says which one was looked at and who said so. Only `tasks send` and
`db migrate` create anything.

## How tasks are named

By a whole id; by the short one that lists and logs show, its first 8 and its last 6 digits
(`0197f3c2-708192`); by 8 or more of its first digits, or by 6 or more of its last (these are
looked for among the newest 100,000). If several fit, they are listed, and nothing is done. The
first digits of an id are its time: tasks of the same minute share them.

## What is printed

At a terminal, tables are fitted to its width; `NO_COLOR` leaves out every style. In a pipe, a
table is aligned columns under a header: nothing is cut, ids and times are whole (UTC), `-` stands
for nothing, and free text is in the last column. `--json` prints one document: names are those of
the Python objects (`TaskInfo`, `Attempt`, …), times are ISO 8601, durations are seconds. Answers
go to standard output, remarks about them to standard error. Control characters in what tasks
stored are escaped.

## Exit codes

| code | |
|---|---|
| 0 | done |
| 1 | not done: an unknown id, a task that has ended, an answer of no |
| | of `db status`: there is something to migrate; of `worker`: children had to be killed |
| 2 | wrong flags or values, or an app that cannot be imported |
| 3 | the database cannot be used, or is not there |
| 70 | `worker`: an error of Holdfast's own |
| 130 | interrupted by Ctrl-C |
| 141 | nobody reads the output any more (`holdfast tasks list \\| head`) |
"""


def as_markdown() -> str:
    """The page."""
    return "\n".join([_INTRODUCTION, *_commands()]).rstrip() + "\n"


def _commands() -> Iterator[str]:
    context = click.Context(main, info_name="holdfast")
    aliases = {full: short for short, full in ALIASES.items()}
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        below = click.Context(command, info_name=name, parent=context)
        also = f" (or `{aliases[name]}`)" if name in aliases else ""
        yield f"## `holdfast {name}`{also}\n"
        if isinstance(command, click.Group):
            yield f"{_text(command)}\n"
            for verb in command.list_commands(below):
                leaf = command.get_command(below, verb)
                assert leaf is not None
                yield f"### `holdfast {name} {verb}`\n"
                yield from _page(leaf, click.Context(leaf, info_name=verb, parent=below))
        else:
            yield from _page(command, below)


def _page(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"`{context.command_path} {usage}`\n"
    yield f"{_text(command)}\n"
    options = [
        option
        for option in command.params
        if isinstance(option, click.Option) and option.name not in _SHARED
    ]
    records = [record for option in options if (record := option.get_help_record(context))]
    if records:
        yield _table(records)
    shared = [option.name for option in command.params if option.name in _SHARED]
    if shared:
        named = [f"`--{'json' if name == 'as_json' else name}`" for name in shared]
        yield f"And {', '.join(named)}, as above.\n"


def _table(records: Sequence[tuple[str, str]]) -> str:
    rows = "\n".join(f"| `{_cell(option)}` | {_cell(text)} |" for option, text in records)
    return f"| option | |\n|---|---|\n{rows}\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _text(command: click.Command) -> str:
    paragraphs = (command.help or "").replace("\b", "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
