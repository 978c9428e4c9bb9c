"""The page of figures: what a run of the benchmarks has measured, each with its bound.

Reads `bench/figures.json`, which `python -m bench --json bench/figures.json` writes. What is missed
is listed first: nobody should have to look for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "bench" / "figures.json"
_HEAD = """\
# Figures

Written from `bench/figures.json` by `make docs`; `python -m bench --json bench/figures.json`
measures them anew. [Performance](performance.md) says how to read them, and why some are missed.

Measured on {processors} processors, {system}, Python {python}, PostgreSQL {postgresql}, SQLite
{sqlite}, with full durability, everybody in turn within one run. A figure is the middle of its
turns; where several turns were taken, their range stands in the last column. Ratios say more than
rates: the machine is not yours.
"""
_MISSED = """\
## Missed

These do not keep their bound in this run.
"""
_COLUMNS = "| figure | database | value | bound | more |\n|---|---|---|---|---|"


@cache
def _run() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SOURCE.read_text("utf-8"))
    return found


def benchmarks() -> list[str]:
    """The names of those that the file has."""
    return list(_run()["benchmarks"])


def of(benchmark: str) -> list[dict[str, Any]]:
    """The figures of one benchmark; none if the file does not have it."""
    group = _run()["benchmarks"].get(benchmark)
    return [] if group is None else list(group["figures"])


def as_markdown() -> str:
    """The whole page."""
    benchmarks: dict[str, Any] = _run()["benchmarks"]
    missed = [
        figure
        for group in benchmarks.values()
        for figure in group["figures"]
        if figure.get("kept") is False
    ]
    parts = [_HEAD.format(**_run()["machine"])]
    if missed:
        parts += [_MISSED, "\n".join([_COLUMNS, *map(_row, missed)]) + "\n"]
    for name, group in benchmarks.items():
        parts += [f"## {name}\n", "\n".join(_table(group)) + "\n"]
    return "\n".join(parts)


def _table(group: dict[str, Any]) -> Iterator[str]:
    yield f"{group['at']} UTC; {group['load']}.\n"
    yield _COLUMNS
    yield from map(_row, group["figures"])


def _row(figure: dict[str, Any]) -> str:
    value, unit = figure["value"], figure["unit"]
    shown = "not measured" if value is None else f"{value:.3g}{unit}"
    bound = f"{figure['sign']} {figure['bound']:g}{unit}" if "bound" in figure else ""
    if figure.get("kept") is False:
        bound = f"**{bound}**"
    rounds = figure.get("rounds", ())
    ranged = f"{min(rounds):.3g} to {max(rounds):.3g}" if len(rounds) > 1 else ""
    detail = figure.get("detail", "")
    more = detail if ranged and ranged in detail else "; ".join(filter(None, (detail, ranged)))
    return f"| {figure['name']} | {figure['engine']} | {shown} | {bound} | {more} |"
