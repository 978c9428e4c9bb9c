"""One picture of the monitor: a list of lines that fit the terminal, whatever is stored.

Owns columns, widths and colours. Everything that is stored goes through `one_line`, so that nothing
in it is obeyed by the terminal, and is cut by cells: wide characters do not push others out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Final

from rich.cells import set_cell_size
from rich.text import Text

from holdfast.cli.render import times
from holdfast.cli.render.task_list import STYLES, detail_of
from holdfast.cli.top.page import folded
from holdfast.cli.top.snapshot import QueueLine, Snapshot
from holdfast.client.info import TaskInfo
from holdfast.client.worker_control import WorkerInfo
from holdfast.core.identity import short_id
from holdfast.core.moment import length
from holdfast.core.text import one_line

_WIDE: Final = 118
KEYS: Final = "q quit  ? help  Tab section  j/k row  Enter why  p pause  c cancel  r resubmit"
HELP: Final = (
    "q, Ctrl-C     quit",
    "Tab, 1 to 4   the next section; queues, workers, running tasks, failures",
    "j, k, arrows  the next row, the one before; g, G: the first, the last",
    "Enter         why the selected task is where it is, and its error",
    "p             pause the selected queue, or resume it",
    "c             cancel the selected running task",
    "r             resubmit the selected failure",
    "d             drain the selected worker: it ends what it runs, then stops",
    "Space         hold the picture, and go on",
    "u             read again now",
    "",
    "What changes something asks first: y does it, any other key does not.",
    "Rates are a minute's, of the last five minutes.",
)


class Section(IntEnum):
    """What the picture consists of."""

    QUEUES = 0
    WORKERS = 1
    RUNNING = 2
    FAILURES = 3


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    width: int
    right: bool = False
    room: int = 0
    """Left out at terminals of fewer columns."""
    wide: int = 0
    """Its width where there is room for all."""

    def cells(self, width: int) -> int:
        """How wide it is at a terminal of so many columns."""
        return self.wide if self.wide and width >= _WIDE else self.width


_GAP: Final = 2
_QUEUES: Final = (
    _Column("QUEUE", 22, wide=30),
    _Column("WAITING", 8, right=True),
    _Column("OLDEST", 7, right=True),
    _Column("RUNNING", 7, right=True),
    _Column("IN/MIN", 7, right=True),
    _Column("OUT/MIN", 7, right=True),
    _Column("FAILED", 6, right=True, room=90),
    _Column("RUN P95", 8, right=True, room=100),
    _Column("", 0),
)
_WORKERS: Final = (
    _Column("WORKER", 16),
    _Column("STATE", 8),
    _Column("RUNNING", 7, right=True),
    _Column("MEMORY", 8, right=True),
    _Column("CPU", 6, right=True, room=100),
    _Column("SEEN", 10, right=True, room=100),
    _Column("HOST", 18, room=80),
    _Column("QUEUES", 0),
)
_RUNNING: Final = (
    _Column("RUNNING", 15),
    _Column("TASK", 22, wide=36),
    _Column("FOR", 7, right=True),
    _Column("PROGRESS", 16),
    _Column("QUEUE", 14, room=110),
    _Column("", 0),
)
_FAILURES: Final = (
    _Column("FAILED", 15),
    _Column("TASK", 22, wide=36),
    _Column("AGO", 7, right=True),
    _Column("STATUS", 8, room=110),
    _Column("", 0),
)
_COLUMNS: Final = {
    Section.QUEUES: _QUEUES,
    Section.WORKERS: _WORKERS,
    Section.RUNNING: _RUNNING,
    Section.FAILURES: _FAILURES,
}
_STATES: Final = {"alive": "green", "silent": "bold red", "stopped": "dim"}
_BAR: Final = 8
_LEAST_ROWS: Final = 2
_LEAST_HEIGHT: Final = 8
_MOST_SAID: Final = 3
"""Lines of what is said below, where there is room."""
_NOTHING: Final = timedelta(0)

Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SelectedRow:
    """What is selected."""

    section: Section = Section.RUNNING
    row: int = 0


def rows_of(snapshot: Snapshot, section: Section) -> Sequence[QueueLine | WorkerInfo | TaskInfo]:
    """What stands in a section."""
    by_section: dict[Section, Sequence[QueueLine | WorkerInfo | TaskInfo]] = {
        Section.QUEUES: snapshot.queues,
        Section.WORKERS: snapshot.workers,
        Section.RUNNING: snapshot.running,
        Section.FAILURES: snapshot.failures,
    }
    return by_section[section]


def picture(
    snapshot: Snapshot, cursor: SelectedRow, *, place: str, footer: Text, width: int, height: int
) -> list[Text]:
    """The lines of the whole picture: never more than `height`, none wider than `width`."""
    lines = [_header(snapshot, place, width)]
    sizes = {section: len(rows_of(snapshot, section)) for section in Section}
    below = _footer_lines(footer, width, height)
    free = height - 1 - len(below)
    room = shares(sizes, max(0, free), cursor.section)
    spare = free - sum(room.values())
    for section in Section:
        if section and spare > 0:
            lines.append(Text(""))
            spare -= 1
        if room[section] > 0:
            lines += _section(snapshot, section, cursor, width, room[section])
    above = max(0, height - len(below))
    lines += [Text("")] * (above - len(lines))
    return [*lines[:above], *below]


def _footer_lines(footer: Text, width: int, height: int) -> list[Text]:
    """What is said below; what matters in one that is too long mostly stands at its end."""
    if footer.style == "dim" or height < _LEAST_HEIGHT:
        return [_fit(footer, width)]
    parts = folded(footer.plain, width)
    return [_fit(Text(part, footer.style), width) for part in parts[:_MOST_SAID]]


def shares(
    sizes: dict[Section, int], room: int, selected: Section | None = None
) -> dict[Section, int]:
    """How many lines each section gets, its head included; what one does not need others get."""
    wanted = {section: size + 1 for section, size in sizes.items()}
    given = dict.fromkeys(sizes, 0)
    # First a head and a row or two for each, and before all for the one that is selected; then a
    # line each in turn.
    for section in sorted(sizes, key=lambda section: section is not selected):
        first = min(wanted[section], 1 + _LEAST_ROWS, room)
        given[section] = first
        room -= first
    while room > 0 and any(given[section] < wanted[section] for section in sizes):
        for section in sizes:
            if room > 0 and given[section] < wanted[section]:
                given[section] += 1
                room -= 1
    return given


def _header(snapshot: Snapshot, place: str, width: int) -> Text:
    alive = sum(worker.state == "alive" for worker in snapshot.workers)
    facts = [
        f"{snapshot.now:%H:%M:%S}",
        f"{alive} worker{'' if alive == 1 else 's'}",
        f"{len(snapshot.running)} running",
        f"{snapshot.pending:,} waiting",
        f"{snapshot.dead:,} dead",
    ]
    if snapshot.unreadable:
        facts.append(f"{snapshot.unreadable} unreadable")
    return _fit(Text(f"holdfast  {'  '.join(facts)}  {one_line(place)}", "bold"), width)


def _section(
    snapshot: Snapshot, section: Section, cursor: SelectedRow, width: int, room: int
) -> list[Text]:
    columns = [column for column in _COLUMNS[section] if column.room <= width]
    rows = rows_of(snapshot, section)
    is_here = cursor.section is section
    first, count = window(len(rows), cursor.row if is_here else 0, room - 1)
    more = len(rows) - count
    head = [(column.name, "bold underline" if is_here else "bold") for column in columns]
    if more > 0:
        head[-1] = (f"{head[-1][0]}  +{more} more".strip(), "dim")
    lines = [_line(columns, head, width)]
    for place in range(first, first + count):
        line = _line(columns, _cells(snapshot, rows[place], columns), width)
        if is_here and place == cursor.row:
            line.stylize("reverse")
        lines.append(line)
    return lines


def window(size: int, selected: int, room: int) -> tuple[int, int]:
    """Which rows are shown so that the selected one is: the first, and how many."""
    count = max(0, min(size, room))
    first = min(max(0, selected - count + 1), max(0, size - count))
    return first, count


def _cells(
    snapshot: Snapshot, row: QueueLine | WorkerInfo | TaskInfo, columns: Sequence[_Column]
) -> list[Cell]:
    match row:
        case QueueLine():
            values = _queue(row)
        case WorkerInfo():
            values = _worker(snapshot, row)
        case _ if row.status.is_terminal:
            values = _failure(snapshot, row)
        case _:
            values = _running(snapshot, row)
    every = _COLUMNS[_section_of(row)]
    kept = {column.name for column in columns}
    return [value for column, value in zip(every, values, strict=True) if column.name in kept]


def _section_of(row: QueueLine | WorkerInfo | TaskInfo) -> Section:
    match row:
        case QueueLine():
            return Section.QUEUES
        case WorkerInfo():
            return Section.WORKERS
        case _:
            return Section.FAILURES if row.status.is_terminal else Section.RUNNING


def _queue(queue: QueueLine) -> list[Cell]:
    state = (f"paused by {queue.paused_by}", "bold yellow") if queue.is_paused else ("", "")
    return [
        (queue.name, "yellow" if queue.is_paused else ""),
        (f"{queue.pending:,}", "yellow" if queue.pending else "dim"),
        (length(queue.oldest, 1) if queue.pending else "", ""),
        (f"{queue.running:,}", "bold blue" if queue.running else "dim"),
        (_rate(queue.sent), ""),
        (_rate(queue.ended), ""),
        (f"{queue.failed:,}", "bold red" if queue.failed else "dim"),
        ("" if queue.run_p95 is None else length(queue.run_p95, 1), ""),
        state,
    ]


def _worker(snapshot: Snapshot, worker: WorkerInfo) -> list[Cell]:
    latest = worker.latest if worker.state == "alive" else None
    memory = None if latest is None else latest.memory_usage_mb
    cpu = None if latest is None else latest.cpu_percent
    state = worker.command if worker.state == "alive" and worker.command else worker.state
    # What it holds now, which is newer than what it said of itself.
    held = sum(info.claimed_by_worker_id == worker.id for info in snapshot.running)
    return [
        (worker.id, ""),
        (state, _STATES.get(state, "yellow")),
        (str(held), ""),
        ("" if memory is None else f"{memory:,.0f} MB", ""),
        ("" if cpu is None else f"{cpu:.0f} %", ""),
        (times.roughly(worker.seen_at, snapshot.now), ""),
        (worker.hostname, "dim"),
        (",".join(worker.queues), "dim"),
    ]


def _running(snapshot: Snapshot, info: TaskInfo) -> list[Cell]:
    since = info.started_at or info.updated_at
    said = None if info.progress is None else info.progress.message
    asked = "cancel requested" if info.cancel_requested_at is not None else None
    words = [asked, info.stage, said, f"on {info.worker_hostname}"]
    return [
        (short_id(info.id.bytes), ""),
        (info.name, ""),
        (times.length(max(snapshot.now - since, _NOTHING), 1), ""),
        (_bar(info), "blue"),
        (info.queue, "dim"),
        (", ".join(word for word in words if word), "dim"),
    ]


def _failure(snapshot: Snapshot, info: TaskInfo) -> list[Cell]:
    ended = info.finished_at or info.updated_at
    detail = detail_of(info, snapshot.now)
    text = detail if isinstance(detail, str) else (detail.text or "" if detail else "")
    return [
        (short_id(info.id.bytes), ""),
        (info.name, ""),
        (times.length(max(snapshot.now - ended, _NOTHING), 1), ""),
        (info.status.value, STYLES[info.status]),
        (text, STYLES[info.status]),
    ]


def _bar(info: TaskInfo) -> str:
    if info.progress is None:
        return ""
    share = info.progress.fraction
    if share is None:
        return f"{info.progress.done:g}"
    full = round(share * _BAR)
    return f"[{'#' * full}{'-' * (_BAR - full)}] {share:4.0%}"


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 or not number else f"{number:.1f}"


def _line(columns: Sequence[_Column], cells: Sequence[Cell], width: int) -> Text:
    line = Text(no_wrap=True)
    left = width
    for place, (column, (text, style)) in enumerate(zip(columns, cells, strict=True)):
        if place:
            line.append(" " * min(_GAP, left))
            left -= min(_GAP, left)
        if left <= 0:
            break
        room = left if place == len(columns) - 1 else min(column.cells(width), left)
        line.append(_sized(one_line(text), room, right=column.right), style)
        left -= room
    return line


def _sized(text: str, room: int, *, right: bool) -> str:
    measured = Text(text)
    if measured.cell_len > room:
        return set_cell_size(text, max(0, room - 1)) + ("…" if room else "")
    pad = " " * (room - measured.cell_len)
    return pad + text if right else text + pad


def _fit(line: Text, width: int) -> Text:
    fitted = line.copy()
    fitted.truncate(width, overflow="ellipsis")
    return fitted
