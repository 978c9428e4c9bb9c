"""How charts are shown, as it stands in the URL: which of two, and drawn or as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from holdfast.web.pages.charts import Chart

__all__ = ["ChartLook", "table_of"]


@dataclass(frozen=True, slots=True)
class ChartLook:
    """What was asked for."""

    run_time: bool = False
    """Run time instead of wait."""
    table: bool = False
    """The values in rows instead of lines."""

    @classmethod
    def read(cls, request: Request) -> ChartLook:
        """From the URL of a page."""
        params = request.query_params
        return cls(params.get("chart") == "run", params.get("table") == "1")

    @property
    def query(self) -> Mapping[str, Any]:
        """The same for a link."""
        return {"chart": "run" if self.run_time else None, "table": 1 if self.table else None}

    @property
    def other(self) -> Mapping[str, Any]:
        """For a link to the same with the other of wait and run time."""
        return {**self.query, "chart": None if self.run_time else "run"}

    @property
    def turned(self) -> Mapping[str, Any]:
        """For a link from the charts to the table, and back."""
        return {**self.query, "table": None if self.table else 1}


def table_of(charts: Sequence[Chart]) -> list[tuple[str, list[str]]]:
    """For each step, the newest first, its time and what each chart says of it."""
    times = [time for time, _ in next((each.values for each in charts if each.values), ())]
    said = [[value for _, value in each.values] or ["–"] * len(times) for each in charts]
    rows = [(time, [values[place] for values in said]) for place, time in enumerate(times)]
    return rows[::-1]
