"""A log record as one line of JSON, whatever is in it."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from holdfast import Secret
from holdfast.core.json_lines import JsonLines


def line(message: str, *args: object, **more: Any) -> dict[str, Any]:
    record = logging.getLogger("shop").makeRecord(
        "shop", logging.WARNING, "f.py", 1, message, args, more.pop("exc_info", None), extra=more
    )
    text = JsonLines({"worker": "w-1"}).format(record)
    assert text.isascii()
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_what_is_in_it() -> None:
    found = line("paid %s", "é\nforged", holdfast={"task": "pay", "trace_id": None}, order=7)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "warning",
        "logger": "shop",
        "message": "paid é\nforged",
        "worker": "w-1",
        "task": "pay",
        "order": 7,
    }


def test_values_that_are_no_json() -> None:
    found = line("x", a=Mute(), b=Secret("hunter2"), c={1: 2}, holdfast="nonsense", level="mine")
    assert (found["a"], found["b"]) == ("(str() raised RuntimeError)", "***")
    assert found["level"] == "warning"


def test_an_exception() -> None:
    try:
        raise ValueError("boom")
    except ValueError:
        found = line("x", exc_info=sys.exc_info())
    assert "ValueError: boom" in found["traceback"]
