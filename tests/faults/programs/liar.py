"""Tasks that speak to the supervisor behind their child's back."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast import Holdfast, current_task
from holdfast.core.errors import StoreError
from holdfast.store.op import Mode, Op, Statement, Steps
from tests.support.ledger import note

app = Holdfast()


@app.task("neighbour")
def neighbour(number: int) -> int:
    return number


@app.task("patient")
def patient(path: str) -> str:
    note("begun", path, current_task().slot)
    while not Path(path).exists():
        time.sleep(0.01)
    return "its own"


@app.task("lies", max_crashes=1, timeout=20.0, capture_output=False)
def lies(how: str, *about: int) -> None:
    """Does it, and waits to be found out."""
    line = _line()
    slot = current_task().slot
    note("begun", how)
    LIES[how](line, slot, *about)
    time.sleep(60)


@app.task("lies-in-a-loop", max_crashes=1, timeout=20.0)
async def lies_in_a_loop(how: str) -> None:
    LIES[how](_line(), current_task().slot)
    await asyncio.sleep(60)


@app.task("asks")
def asks(statement: str, params: dict[str, Any]) -> str:
    """Asks the supervisor's store for a statement, as our own code in the child would."""

    def steps() -> Steps[None]:
        yield Statement(statement, params)

    try:
        current_task()._host.store.run(Op(steps(), Mode.ALONE, statement))
    except StoreError as error:
        return str(error)
    return "answered"


@app.task("floods", timeout=2.0, capture_output=False)
def floods(what: str) -> None:
    note("begun", "floods")
    line = _line()
    piece = {"hello": _frame(["Hello"]), "said": _frame(["Said", 0, b"x" * 100_000])}[what]
    while True:
        _write(line, piece * 100)


@app.task("leaves-yes-running")
def leaves_yes_running() -> int:
    import subprocess

    return subprocess.Popen(["yes"]).pid


def _garbage(line: int, slot: int) -> None:
    # Of a length that is believed: another might have to be waited for.
    _write(line, struct.pack("!I", 4096) + os.urandom(4096) + b"\xff" * 4096)


def _oversized(line: int, slot: int) -> None:
    _write(line, b"\xff\xff\xff\xff")


def _too_large_for_a_child(line: int, slot: int) -> None:
    _write(line, struct.pack("!I", 200 * 1024 * 1024))


def _malformed(line: int, slot: int) -> None:
    _write(line, _frame(["Done", [[slot, ["Returned", {"not": "text"}]]]]))


def _unknown_ending(line: int, slot: int) -> None:
    _write(line, _frame(["Done", [[slot, ["Promoted"]]]]))


def _malformed_error(line: int, slot: int) -> None:
    _write(line, _frame(["Done", [[slot, ["Failed", {"error_code": 1}]]]]))


def _large_numbers(line: int, slot: int) -> None:
    _write(line, _frame(["Done", [[slot, ["Returned", "1"], 2**63, 2**63, 2**63]]]))


def _large_delay(line: int, slot: int) -> None:
    _write(line, _frame(["Done", [[slot, ["SnoozeAsked", 2**63]]]]))


def _seen_from_outside(line: int, slot: int) -> None:
    _write(line, _frame(["Done", [[slot, ["Crashed", 2**40]]]]))


def _nested(line: int, slot: int) -> None:
    body = msgspec.msgpack.encode(["Ask", 1, slot, 0, "read", "x"])
    # An array of seven, the last of them a hundred thousand arrays deep.
    body = bytes([0x97]) + body[1:] + b"\x91" * 100_000 + b"\xc0"
    _write(line, struct.pack("!I", len(body)) + body)


def _forged_outcome(line: int, slot: int, about: int) -> None:
    _write(line, _frame(["Done", [[about, ["Returned", '"forged"']]]]))


def _forged_withdrawal(line: int, slot: int, about: int) -> None:
    _write(line, _frame(["Withdrawn", [about]]))


def _foreign_note(line: int, slot: int, about: int) -> None:
    _write(line, _frame(["Note", about, False, '{"done": 99}']))


def _no_such_slot(line: int, slot: int) -> None:
    _write(line, _frame(["Done", [[10**9, ["Returned", "1"]]]]))


def _unstorable_note(line: int, slot: int) -> None:
    _write(line, _frame(["Note", slot, False, '{"message": "\x00"}']))


def _twice_under_a_ticket(line: int, slot: int) -> None:
    asked = ["Ask", 10**6, slot, 0, "write", "x", ["statuses", {"ids": ["uuids", []]}, None, None]]
    _write(line, _frame(asked) * 20)


def _no_socket(line: int, slot: int) -> None:
    with socket.socket(fileno=os.dup(line)) as found:
        found.shutdown(socket.SHUT_WR)


def _another_pid(line: int, slot: int, about: int) -> None:
    _write(line, _frame(["Hello", about]))
    _garbage(line, slot)


def _cut_page(line: int, slot: int) -> None:
    for path in Path("/proc/self/map_files").iterdir():
        try:
            if "holdfast-page" in str(path.readlink()):
                os.truncate(path, 0)
        except OSError:
            # The kernel lets few look there, and none cut what is sealed.
            continue
    _garbage(line, slot)


LIES: dict[str, Callable[..., Any]] = {
    name.removeprefix("_"): function
    for name, function in globals().copy().items()
    if callable(function) and getattr(function, "__code__", None)
    if "line" in function.__code__.co_varnames[:1]
}


def _line() -> int:
    """The child's socket to its supervisor."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode) and int(name) > 100:
                return int(name)
        except OSError:
            continue
    raise AssertionError("no socket")


def _frame(message: Any) -> bytes:
    body = msgspec.msgpack.encode(message)
    return struct.pack("!I", len(body)) + body


def _write(line: int, data: bytes) -> None:
    with socket.socket(fileno=os.dup(line)) as found:
        found.sendall(data)
