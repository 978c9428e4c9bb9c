"""`holdfast doctor`: what endangers tasks, or keeps them from running, and what to do about it.

Owns the page and the exit code. What is looked at, and what it means, is in `client/doctor`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import click

from holdfast.cli.render import json_document, times
from holdfast.cli.render.table import Cell
from holdfast.cli.session import CommandSession, operates
from holdfast.client.doctor.finding import PATIENCE, Diagnosis, Finding, Severity

CODES: Final = {None: 0, Severity.NOTICE: 0, Severity.WARNING: 10, Severity.CRITICAL: 20}
"""By the gravest finding; 1, 2 and 3 mean for every command that it could not answer."""

_STYLES: Final = {
    Severity.CRITICAL: "bold red",
    Severity.WARNING: "yellow",
    Severity.NOTICE: "cyan",
}


@click.command("doctor")
@click.option(
    "--patience",
    default=PATIENCE,
    show_default=True,
    metavar="TIME",
    callback=times.span,
    help="How long a transaction may be open, or a task wait: 30s, 5m, 2h.",
)
@operates()
def doctor(session: CommandSession, patience: timedelta) -> None:
    """Find what endangers tasks, or keeps them from running.

    Each finding has what it means and what to do about it. It changes nothing, and may be run at
    any time. Ends with 0 if nothing is worse than a notice, with 10 after a warning, and with 20 if
    something is critical.
    """
    found = session.control.doctor(patience=patience)
    if session.screen.as_json:
        session.screen.document(_document(found))
    else:
        _show(session, found)
    raise click.exceptions.Exit(CODES[found.worst])


def _show(session: CommandSession, found: Diagnosis) -> None:
    screen = session.screen
    for finding in found.findings:
        screen.facts(
            [
                (finding.severity.value, Cell(finding.what, _STYLES[finding.severity])),
                ("meaning", finding.meaning),
                ("remedy", finding.remedy),
            ]
        )
        screen.line("")
    counts = {
        severity: sum(each.severity is severity for each in found.findings) for severity in Severity
    }
    told = ", ".join(f"{number} {severity.value}" for severity, number in counts.items() if number)
    screen.line(f"{told or 'nothing was found'} ({found.engine}, {session.place.described})")
    screen.remark(f"examined: {', '.join(found.examined)}")


def _document(found: Diagnosis) -> dict[str, Any]:
    return {
        "at": times.exact(found.at),
        "database": found.database,
        "engine": found.engine,
        "worst": found.worst,
        "examined": list(found.examined),
        "findings": [_finding(each) for each in found.findings],
    }


def _finding(found: Finding) -> dict[str, Any]:
    return json_document.as_dict(found)
