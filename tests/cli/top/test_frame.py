"""A picture fits its terminal, whatever is stored and however small the terminal is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from rich.text import Text

from holdfast.cli.top.frame import Section, SelectedRow, picture, shares, window
from holdfast.cli.top.snapshot import QueueLine, Snapshot
from holdfast.client.access import Access
from holdfast.client.config import Config
from holdfast.client.control import Control
from tests.cli.conftest import Operator, join
from tests.support.stores import Lab

NOW = datetime(2030, 3, 17, 17, 46, 40, tzinfo=UTC)
EVIL = "evil\x1b]0;title\x07\x1b[2J\r\n\u202eright\u200b日本語" + "x" * 500


def snapshot(lab: Lab, text: str = "name", number: int = 3) -> Snapshot:
    """One with so many rows of each kind; the tasks are real."""
    join(lab, "w")
    running = [lab.running() for _ in range(number)]
    failed = [lab.running() for _ in range(number)]
    for task in failed:
        lab.fail(task)
    control = Control(_access(lab))
    infos = control.tasks.show_many(*(UUID(bytes=each.id) for each in (*running, *failed)))
    shown = [replace(info, name=text, stage=text, worker_hostname=text) for info in infos.values()]
    queue = QueueLine(text, 12_345, 3, 99.0, 1.25, 100.0, 7, 0.5, text, True)
    (worker,) = control.workers.list()
    worker = replace(worker, hostname=text)
    return Snapshot(
        NOW,
        [replace(queue, name=f"{n}{text}") for n in range(number)],
        [worker] * number,
        [info for info in shown if not info.status.is_terminal],
        [info for info in shown if info.status.is_terminal],
        number,
        1,
    )


def _access(lab: Lab) -> Access:
    access = Access(Config.load("sqlite:///unused.db"))
    access.borrow(lab.store)
    return access


def drawn(shown: Snapshot, width: int, height: int, section: Section, row: int = 0) -> list[Text]:
    return picture(
        shown,
        SelectedRow(section, row),
        place="sqlite:///tasks.db",
        footer=Text("q quit"),
        width=width,
        height=height,
    )


@pytest.mark.parametrize("text", ["name", EVIL])
def test_it_fits_every_terminal(operator: Operator, text: str) -> None:
    for number in (0, 1, 40):
        shown = snapshot(operator.lab, text, number)
        for width, height in ((80, 24), (200, 60), (40, 10), (20, 3), (1, 1)):
            for section in Section:
                lines = drawn(shown, width, height, section, max(0, number - 1))
                assert len(lines) == height
                assert max(line.cell_len for line in lines) <= width
                plain = "\n".join(line.plain for line in lines)
                assert not set(plain) & set("\x1b\x07\r\u202e\u200b")


def test_what_is_selected_is_in_sight(operator: Operator) -> None:
    shown = snapshot(operator.lab, number=40)
    for section in Section:
        for row in (0, 20, 39):
            lines = drawn(shown, 80, 24, section, row)
            assert sum("reverse" in str(line.spans) for line in lines) == 1


def test_every_section_has_its_share() -> None:
    sizes = dict.fromkeys(Section, 100)
    assert shares(sizes, 22) == dict(zip(Section, (6, 6, 5, 5), strict=True))
    few = sizes | {Section.QUEUES: 1, Section.WORKERS: 0}
    assert shares(few, 22) == dict(zip(Section, (2, 1, 10, 9), strict=True))
    for room in range(30):
        assert sum(shares(sizes, room).values()) <= room


def test_the_selected_section_is_there_however_low_the_terminal(operator: Operator) -> None:
    shown = snapshot(operator.lab)
    for section in Section:
        lines = drawn(shown, 40, 7, section, row=1)
        assert any("reverse" in str(span.style) for line in lines for span in line.spans)


def test_what_is_said_below_is_said_to_its_end(operator: Operator) -> None:
    text = Text(f"cannot connect to {'x' * 90}: connection refused", "bold red")
    for width, height in ((80, 24), (70, 10)):
        lines = picture(
            snapshot(operator.lab),
            SelectedRow(),
            place="p",
            footer=text,
            width=width,
            height=height,
        )
        assert len(lines) == height
        said = "".join(line.plain for line in lines)
        assert said.endswith("connection refused")


def test_a_window_moves_with_the_selection() -> None:
    assert window(0, 0, 5) == (0, 0)
    assert window(3, 2, 5) == (0, 3)
    assert window(10, 0, 4) == (0, 4)
    assert window(10, 4, 4) == (1, 4)
    assert window(10, 9, 4) == (6, 4)
    assert window(10, 9, 0)[1] == 0


def test_a_wide_terminal_has_room_for_names(operator: Operator) -> None:
    shown = snapshot(operator.lab, "mail.send-newsletter-to-everybody")
    narrow, wide = (drawn(shown, width, 40, Section.RUNNING) for width in (80, 120))
    assert not any("mail.send-newsletter-to-everybody " in line.plain for line in narrow)
    assert sum("mail.send-newsletter-to-everybody " in line.plain for line in wide) >= 6
