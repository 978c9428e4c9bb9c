"""`--args` and `--kwargs`: what a call is given, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from holdfast.core.errors import PayloadError
from holdfast.core.payload.codec import decode

__all__ = ["payload_options"]


def _json(kind: type, what: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    """The callback of an option that takes JSON of one kind."""

    def read(ctx: click.Context, param: click.Parameter, value: str) -> Any:
        try:
            return decode(value, kind)
        except PayloadError as error:
            raise click.BadParameter(f"{value!r:.100} is not {what}: {error}", ctx, param) from None

    return read


def payload_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `args`, a list, and `kwargs`, a dict."""
    for option in (
        click.option(
            "--kwargs",
            metavar="JSON",
            default="{}",
            callback=_json(dict[str, Any], "a JSON object"),
            help="An object: '{\"a\": 1}'.",
        ),
        click.option(
            "--args",
            metavar="JSON",
            default="[]",
            callback=_json(list, "a JSON list"),
            help="A list: '[1, \"a\"]'.",
        ),
    ):
        command = option(command)
    return command
