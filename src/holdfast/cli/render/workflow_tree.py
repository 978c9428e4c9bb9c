"""One workflow at a terminal: where it stands, and its steps as a tree.

Owns the shape. A graph is no tree: a step stands below the last of the steps that it waits for, and
names the others. Steps of a map, and many of one kind, are one line with how they stand.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from holdfast.cli.render import json_document, times
from holdfast.cli.render.screen import Screen
from holdfast.cli.render.task_list import unreadable_document
from holdfast.cli.render.workflow_list import status_cell
from holdfast.client.workflow_control import WorkflowReport
from holdfast.client.workflow_info import StepInfo
from holdfast.client.workflow_questions import WorkflowWhy
from holdfast.core.status import TaskStatus

_MANY: Final = 6
"""Steps of one kind below one step from which on they are one line."""
_NESTED: Final = 8
"""From how deep on a chain stands in one column."""
_DEEPEST: Final = 40
_BAR: Final = 30
_NUMBERED: Final = re.compile(r"(.*?)(?:\[\d+\]|-\d+)?", re.DOTALL)
_SIGNS: Final = {
    TaskStatus.COMPLETED: "✓",
    TaskStatus.RUNNING: "▶",
    TaskStatus.CLAIMED: "▶",
    TaskStatus.FAILED: "✗",
    TaskStatus.STALLED: "✗",
    TaskStatus.DROPPED: "✗",
    TaskStatus.EXPIRED: "✗",
    TaskStatus.CANCELLED: "–",
}


def show_tree(screen: Screen, report: WorkflowReport, why: WorkflowWhy, now: datetime) -> None:
    """A workflow, why it stands where it does, and its steps."""
    if screen.as_json:
        steps = [_as_dict(step) for step in report.steps]
        screen.document(
            {
                "workflow": json_document.as_dict(report.info),
                "why": why.reasons,
                "steps": steps,
                **unreadable_document(report.unreadable),
            }
        )
        return
    info = report.info
    span = None
    if info.finished_at is not None:
        span = times.length(info.finished_at - info.created_at)
    screen.facts(
        [
            ("workflow", str(info.id)),
            ("name", info.name if info.version == 1 else f"{info.name} version {info.version}"),
            ("status", status_cell(info.status)),
            ("submitted", times.both(info.created_at, now)),
            ("took", span),
            ("part of", None if info.parent_id is None else str(info.parent_id)),
            ("tags", ", ".join(info.tags) or None),
            ("arguments", None if info.arguments is None else json.dumps(info.arguments)),
            ("steps", progress_bar(report.steps)),
        ]
    )
    screen.heading("why")
    for reason in why.reasons:
        screen.line(f"  {reason}")
    if report.steps:
        screen.heading("steps")
    for line in tree(report.steps):
        screen.text(line, "  ")
    for row in report.unreadable:
        screen.line(f"unreadable  row {row.key} of {row.table}: {row.column} {row.reason}")


def progress_bar(steps: Sequence[StepInfo]) -> str:
    """`[#########.....] 3 of 7 ended, 1 RUNNING`."""
    if not steps:
        return "none"
    ended = sum(step.status.is_terminal for step in steps)
    filled = _BAR * ended // len(steps)
    live = Counter(step.status for step in steps if not step.status.is_terminal)
    rest = "".join(f", {n:,} {status.value}" for status, n in sorted(live.items()))
    bar = "#" * filled + "." * (_BAR - filled)
    return f"[{bar}] {ended:,} of {len(steps):,} ended{rest}"


def tree(steps: Sequence[StepInfo]) -> Iterator[str]:
    """The lines of the tree."""
    places = {step.id: place for place, step in enumerate(steps)}
    below: defaultdict[UUID | None, list[StepInfo]] = defaultdict(list)
    for step in steps:
        above = [parent for parent in step.waits_for if parent in places]
        # Steps that were added stand below the one that added them, or below one another.
        parent = max(above, key=places.__getitem__, default=step.added_by)
        below[parent if parent in places else None].append(step)
    names = {step.id: step.name for step in steps}
    yield from _branch(below, None, "", names, 0)


def _branch(
    below: dict[UUID | None, list[StepInfo]],
    parent: UUID | None,
    indent: str,
    names: dict[UUID, str],
    depth: int,
) -> Iterator[str]:
    groups = _groups(below.get(parent, []), below)
    for place, group in enumerate(groups):
        is_last = place == len(groups) - 1
        mark = "" if depth == 0 else "└─ " if is_last else "├─ "
        yield f"{indent}{mark}{_line(group, parent, names)}"
        if len(group) > 1:
            continue
        deeper = indent if depth == 0 else indent + ("   " if is_last else "│  ")
        # A chain needs no more room with each step.
        only = len(groups) == 1 and depth >= _NESTED
        if depth >= _DEEPEST and not only:
            yield f"{deeper}…"
            continue
        yield from _branch(
            below, group[0].id, indent if only else deeper, names, depth + (not only)
        )


def _groups(
    steps: Sequence[StepInfo], below: dict[UUID | None, list[StepInfo]]
) -> list[list[StepInfo]]:
    """Many steps of one kind with nothing below them are one group; any other, and one that ended
    badly, stands alone."""
    kinds: defaultdict[tuple[str, str], list[StepInfo]] = defaultdict(list)
    for step in steps:
        if not (below.get(step.id) or _is_bad(step)):
            kinds[_kind(step)].append(step)
    groups: list[list[StepInfo]] = []
    seen: set[tuple[str, str]] = set()
    for step in steps:
        many = kinds[_kind(step)]
        if below.get(step.id) or _is_bad(step) or len(many) < _MANY:
            groups.append([step])
        elif _kind(step) not in seen:
            seen.add(_kind(step))
            groups.append(many)
    return groups


def _is_bad(step: StepInfo) -> bool:
    return step.status.is_terminal and _SIGNS[step.status] == "✗"


def _kind(step: StepInfo) -> tuple[str, str]:
    found = _NUMBERED.fullmatch(step.name)
    return step.task, step.name if found is None else found[1]


def _line(group: Sequence[StepInfo], parent: UUID | None, names: dict[UUID, str]) -> str:
    step = group[0]
    if len(group) > 1:
        counted = Counter(one.status for one in group)
        how = ", ".join(f"{n:,} {status.value}" for status, n in sorted(counted.items()))
        return f"{_kind(step)[1]} × {len(group):,}  {how}"
    words = [f"{_SIGNS.get(step.status, '·')} {step.name}", step.status.value]
    if step.handed_over and not step.status.is_terminal:
        words.append("its code has run; it waits for what it added")
    elif step.started_at is not None and step.finished_at is not None:
        words.append(times.length(step.finished_at - step.started_at))
    if step.status.is_terminal and step.status is not TaskStatus.COMPLETED:
        words.append(step.failed_reason or step.error_code or "")
    others = [
        f"{names[one]}{'' if on == 'success' else f' ({on})'}"
        for one, on in step.waits_for.items()
        if one in names and (one != parent or on != "success")
    ]
    if others:
        shown = ", ".join(others[:3]) + (
            f" and {len(others) - 3:,} more" if len(others) > 3 else ""
        )
        words.append(f"after {shown}")
    return "  ".join(" ".join(word.split()) for word in words if word)


def _as_dict(step: StepInfo) -> dict[str, Any]:
    above = {str(parent): on for parent, on in step.waits_for.items()}
    return json_document.as_dict(step, waits_for=above)
