"""A workflow as a Mermaid flowchart, with the states of its steps if it runs.

Owns the text. It may be pasted where Markdown is shown, so names are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from holdfast.core.records import On
from holdfast.core.workflows.plan import StepPlan

__all__ = ["ChartEdge", "ChartStep", "chart", "chart_of_plan"]

_COLOURS: Final = {
    "COMPLETED": "fill:#d3f2dd,stroke:#1f8a4c",
    "RUNNING": "fill:#d7e8fd,stroke:#2467c9",
    "CLAIMED": "fill:#d7e8fd,stroke:#2467c9",
    "FAILED": "fill:#fbdcdc,stroke:#c02a2a",
    "STALLED": "fill:#fbdcdc,stroke:#c02a2a",
    "DROPPED": "fill:#fbdcdc,stroke:#c02a2a",
    "EXPIRED": "fill:#fbdcdc,stroke:#c02a2a",
    "CANCELLED": "fill:#eee,stroke:#888",
}
_ARROWS: Final[dict[str, str]] = {
    "success": "-->",
    "failure": "-. failure .->",
    "always": "-. always .->",
}


class ChartStep(NamedTuple):
    """A step to be drawn; `key` is unique among them."""

    key: str
    name: str
    task: str
    status: str | None = None
    detail: str | None = None
    tail: str | None = None
    needed: int | None = None


class ChartEdge(NamedTuple):
    """An arrow between two of them."""

    parent: str
    child: str
    on: On


def chart(steps: Sequence[ChartStep], edges: Iterable[ChartEdge]) -> str:
    """The flowchart of these steps."""
    lines = ["flowchart TD"]
    joins = {step.key: step.needed for step in steps if step.needed is not None}
    for step in steps:
        words = [step.name]
        if step.task not in (step.name, None) and not step.name.startswith(step.task):
            words.append(step.task)
        if step.key in joins:
            words.append("any of" if joins[step.key] == 1 else f"at least {joins[step.key]} of")
        if step.status is not None:
            words.append(step.status if step.detail is None else f"{step.status}: {step.detail}")
        mark = f":::{step.status}" if step.status in _COLOURS else ""
        lines.append(f'    {step.key}["{"<br/>".join(map(_escaped, words))}"]{mark}')
    for tail, label in (("error", "first failure"), ("ended", "all have ended")):
        below = [step.key for step in steps if step.tail == tail]
        if below:
            lines.append(f"    {tail}{{{{{label}}}}}")
            lines += [f"    {tail} -.-> {key}" for key in below]
    lines += [f"    {edge.parent} {_ARROWS[edge.on]} {edge.child}" for edge in edges]
    used = dict.fromkeys(step.status for step in steps if step.status in _COLOURS)
    lines += [f"    classDef {status} {_COLOURS[status]}" for status in used if status]
    return "\n".join(lines) + "\n"


def chart_of_plan(steps: Sequence[StepPlan]) -> str:
    """The flowchart of a workflow that has not been started."""
    return chart(
        [
            ChartStep(
                f"s{place}", step.name, step.task.task_name, tail=step.tail, needed=step.needed
            )
            for place, step in enumerate(steps)
        ],
        [
            ChartEdge(f"s{edge.parent}", f"s{place}", edge.on)
            for place, step in enumerate(steps)
            for edge in step.edges
        ],
    )


def _escaped(text: str) -> str:
    """Text inside a label: what Mermaid and HTML would take for their own is written as a code."""
    return "".join(
        char if char.isalnum() or char in " _-.:,/[]()'" or ord(char) > 127 else f"#{ord(char)};"
        for char in text
    )
