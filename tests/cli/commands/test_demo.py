"""`holdfast demo`: what it tells people to try next can be tried."""

from __future__ import annotations

from io import StringIO

import click
from rich.console import Console

from holdfast.cli.commands.demo import Demonstration
from holdfast.cli.main import COMMANDS, main


def test_what_it_suggests_is_what_the_help_names() -> None:
    console = Console(file=StringIO(), width=200)
    Demonstration(console, "sqlite:///demo.db")._next_steps()
    assert isinstance(console.file, StringIO)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    suggested = [words[1:] for words in lines if words[:1] == ["holdfast"]]
    assert len(suggested) >= 5
    for name, *rest in suggested:
        assert name in COMMANDS
        with click.Context(main) as context:
            command = main.get_command(context, name)
            if isinstance(command, click.Group):
                assert rest[0] in command.commands
