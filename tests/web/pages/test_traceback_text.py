"""Tracebacks are read back from text, and nothing of them is lost."""

from __future__ import annotations

import traceback

import pytest

from holdfast.web.pages.traceback_text import frame_groups


def chained() -> str:
    try:
        try:
            int("x")
        except ValueError as error:
            raise KeyError("outer") from error
    except KeyError as error:
        return "".join(traceback.format_exception(error))
    raise AssertionError


def test_a_chain() -> None:
    groups = frame_groups(chained())
    frames = [frame for group in groups for frame in group.frames]
    assert [frame.name for frame in frames] == ["chained", "chained"]
    assert frames[0].code[0] == 'int("x")'
    assert frames[0].place == "web/pages/test_traceback_text.py"
    said = "\n".join(group.text for group in groups)
    assert "ValueError: invalid literal" in said
    assert "direct cause" in said
    assert "KeyError: 'outer'" in said


def test_libraries_are_put_together() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/app/shop/tasks.py", line 88, in invoice\n    charge()\n'
        '  File "/venv/lib/python3.12/site-packages/httpx/_client.py", line 9, in get\n    x\n'
        '  File "/venv/lib/python3.12/site-packages/httpcore/pool.py", line 7, in f\n    y\n'
        '  File "/usr/lib/python3.12/ssl.py", line 1, in g\n    z\n    ^^^\n'
        "httpx.ReadTimeout: the read operation timed out\n"
    )
    own, library, end = frame_groups(text)
    assert (own.is_library, library.is_library) == (False, True)
    assert library.packages == "httpx, httpcore, Python"
    assert library.frames[-1].code == ["z"]
    assert end.text == "httpx.ReadTimeout: the read operation timed out"


@pytest.mark.parametrize("text", ["", "\n\n", "no traceback at all", '  File "', "x" * 50_000])
def test_anything_else_is_text(text: str) -> None:
    groups = frame_groups(text)
    assert [group.frames for group in groups] == [()] * len(groups)
    assert "".join(group.text for group in groups).strip() == text.strip()
