"""The lifecycle, drawn: a Mermaid diagram and Markdown tables of the one table.

Owns the words around the data, nothing of the data itself. `docs/reference/lifecycle.md`
is this module's output.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.error_code import ErrorCode, ErrorFamily
from holdfast.core.lifecycle import CANCEL_REDIRECTS, TRANSITIONS, Transition, Verb, edges
from holdfast.core.status import AttemptOutcome, TaskStatus, celery_state

__all__ = ["as_markdown", "as_mermaid"]

AUTOMATIC_VERBS: tuple[Verb, ...] = tuple(
    verb for verb, row in TRANSITIONS.items() if not row.actor.startswith("operator")
)
"""What happens without anybody asking."""
OPERATOR_VERBS: tuple[Verb, ...] = tuple(
    verb for verb, row in TRANSITIONS.items() if "operator" in row.actor
)
"""What a person can do to a task."""


def as_mermaid(verbs: Iterable[Verb] = Verb) -> str:
    """A state diagram of these verbs; verbs between the same two statuses share an arrow."""
    arrows: dict[tuple[TaskStatus | None, TaskStatus | None], list[Verb]] = {}
    for source, target, verb in edges(verbs):
        arrows.setdefault((source, target), []).append(verb)
    lines = ["stateDiagram-v2"]
    for (source, target), shared in arrows.items():
        lines.append(f"    {_node(source)} --> {_node(target)} : {', '.join(shared)}")
    return "\n".join(lines) + "\n"


def _node(status: TaskStatus | None) -> str:
    return "[*]" if status is None else status.value


def as_markdown() -> str:
    """The whole reference page."""
    return "\n".join(
        [
            "# The lifecycle of a task",
            "",
            "<!-- Written by `make docs` from holdfast.core.lifecycle. Do not edit. -->",
            "",
            "## States",
            "",
            *_states(),
            "",
            "## How a task moves",
            "",
            "By itself: what clients, workers and workflows do.",
            "",
            "```mermaid",
            as_mermaid(AUTOMATIC_VERBS).rstrip(),
            "```",
            "",
            "By hand: what an operator can do.",
            "",
            "```mermaid",
            as_mermaid(OPERATOR_VERBS).rstrip(),
            "```",
            "",
            "## Verbs",
            "",
            "A *fenced* verb writes on behalf of a claim: it changes the row only if the claim's",
            "token is still on it, so a worker that lost its claim cannot write. Verbs marked ✗",
            "lead to CANCELLED instead when a cancel has been requested: cancel beats another run.",
            "A value that was returned before the worker obeyed is COMPLETED all the same.",
            "",
            *_verbs(),
            "",
            "## Attempts",
            "",
            "Every start ends in one attempt row with one of these outcomes:",
            "",
            *_attempts(),
            "",
            "## Error codes",
            "",
            "A task that ended otherwise than COMPLETED has an error code: one of these, or one",
            "that the task's author chose. The author's codes never equal ours.",
            "",
            *_codes(),
            "",
        ]
    )


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _states() -> list[str]:
    return _table(
        ["status", "shown as", "meaning", "ended", "in Celery"],
        (
            [
                status.value,
                status.label,
                status.meaning,
                "yes" if status.is_terminal else "no",
                _celery(status),
            ]
            for status in TaskStatus
        ),
    )


def _celery(status: TaskStatus) -> str:
    names = dict.fromkeys(
        (celery_state(status, attempt=0), celery_state(status, attempt=1)),
    )
    if status is TaskStatus.RUNNING:
        names["the task's own stage"] = None
    return ", ".join(names)


def _verbs() -> list[str]:
    return _table(
        ["verb", "from → to", "who", "guard", "writes", "fenced", "✗"],
        (
            [
                f"`{row.verb}`",
                f"{_statuses(row.sources)} → {_reached(row)}",
                row.actor,
                row.guard,
                row.writes,
                "yes" if row.fenced else "",
                "✗" if row.verb in CANCEL_REDIRECTS else "",
            ]
            for row in TRANSITIONS.values()
        ),
    )


def _statuses(statuses: tuple[TaskStatus, ...]) -> str:
    return ", ".join(statuses) or "∅"


def _reached(row: Transition) -> str:
    return "same" if row.keeps_status else _statuses(row.targets)


def _attempts() -> list[str]:
    return _table(
        ["outcome", "written by"],
        (
            [
                outcome.value,
                ", ".join(
                    f"`{row.verb}`" for row in TRANSITIONS.values() if row.attempt is outcome
                ),
            ]
            for outcome in AttemptOutcome
        ),
    )


def _codes() -> list[str]:
    return _table(
        ["code", "family", "meaning"],
        (
            [f"`{code}`", family.value, code.meaning]
            for family in ErrorFamily
            for code in ErrorCode
            if code.family is family
        ),
    )
