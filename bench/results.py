"""A run's figures as a file: what was measured, when, where, and what else the machine did.

Owns the form of the file, which `tools/figures_chart.py` and `tools/figures_page.py` read. A run of
some benchmarks leaves what the file holds of the others: a long measurement may be made in pieces.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import Any

import apsw

from bench.figure import Figure


class Results:
    """The contents of a file; `save()` after each benchmark, so that nothing is lost."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def add(self, name: str, figures: Sequence[Figure], load: str) -> None:
        """What one benchmark has found, in the place of what it found before."""
        groups = self._found.setdefault("benchmarks", {})
        groups[name] = {
            "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
            "load": load,
            "figures": [_entry(figure) for figure in figures],
        }

    def save(self, *, postgres: str) -> None:
        """Write the file."""
        self._found["machine"] = {
            "processors": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "postgresql": postgres,
            "sqlite": apsw.sqlite_lib_version(),
        }
        ordered = {"machine": self._found["machine"], "benchmarks": self._found["benchmarks"]}
        self._path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _entry(figure: Figure) -> dict[str, Any]:
    absent = isnan(figure.value)
    entry: dict[str, Any] = {
        "name": figure.name,
        "engine": figure.engine,
        "value": None if absent else round(figure.value, 4),
        "unit": figure.unit,
    }
    if figure.bound is not None:
        entry["bound"] = figure.bound
        entry["sign"] = "≥" if figure.at_least else "≤"
        entry["kept"] = not absent and figure.is_kept
    if figure.rounds:
        entry["rounds"] = [round(one, 4) for one in figure.rounds]
    # What could not be measured says why, at length and with paths of this machine.
    if figure.detail and not absent:
        entry["detail"] = figure.detail
    return entry
