"""Tasks that say something about themselves."""

from __future__ import annotations

import ctypes
import logging
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator
from typing import Any

from holdfast import Holdfast, current_task
from tests.support.deadline import until
from tests.support.ledger import agate, gate, note

app = Holdfast()
log = logging.getLogger("shop")


@app.task("progress")
def progress(name: str) -> None:
    t = current_task()
    t.set_progress(3, 10, "resizing")
    t.update(stage="UPLOADING", meta={"bytes": 7})
    gate(name)
    t.set_progress(10, 10)


@app.task("checkpoints")
def checkpoints() -> list[Any]:
    t = current_task()
    first = t.checkpoint("first", _step, "first")
    second = t.checkpoint("second", _step, "second")
    if t.attempt == 1:
        os._exit(3)
    return [first, second]


def _step(name: str) -> str:
    note("step", current_task().id, name)
    return f"{name} in attempt {current_task().attempt}"


@app.task("checkpoint-of-one-that-vanishes")
def vanishes(name: str) -> str:
    value = current_task().checkpoint("first", _step, "first")
    gate(name)
    return value


@app.task("lines")
def lines(name: str) -> Generator[str, None, int]:
    yield "first"
    yield "second"
    gate(name)
    yield "third"
    return 3


@app.task("speaks")
def speaks(name: str) -> None:
    print("printed")
    sys.stderr.write("to stderr\n")
    os.write(1, b"to the descriptor\n")
    subprocess.run([sys.executable, "-c", "print('from a subprocess')"], check=True)
    log.warning("logged %d", 7)
    libc = ctypes.CDLL(None)
    libc.printf(b"from C\n")
    libc.fflush(None)
    gate(name)
    print("\x1b[31mred\x1b[0m \x1b]52;c;evil\x07")
    os.write(2, b"\xff\xfe not text\n")


@app.task("silent", capture_output=False)
def silent() -> None:
    print("nobody keeps this")


@app.task("speaks-twice", retry=1)
def speaks_twice() -> None:
    print(f"attempt {current_task().attempt}")
    if current_task().attempt == 1:
        raise ValueError("again")


@app.task("last-words", max_crashes=1)
def last_words() -> None:
    print("last words")
    os._exit(1)


@app.task("chatty")
def chatty(number: int) -> None:
    print(f"chat {number}")


@app.task("floods")
def floods(megabytes: int) -> None:
    print("the beginning")
    line = "x" * 1023 + "\n"
    for _ in range(megabytes):
        sys.stdout.write(line * 1024)
    print("the end")


@app.task("stack")
def stack(name: str) -> None:
    _deep_down(name)


@app.task("stack-thread", executor="thread")
def stack_thread(name: str) -> None:
    _deep_down(name)


@app.task("stack-async")
async def stack_async(name: str) -> None:
    await _adeep_down(name)


def _deep_down(name: str) -> None:
    gate(name)


async def _adeep_down(name: str) -> None:
    await agate(name)


@app.task("spends")
def spends(megabytes: int, seconds: float) -> None:
    memory = bytearray(os.urandom(1024)) * 1024 * megabytes
    until = time.process_time() + seconds
    while time.process_time() < until:
        memory[0] ^= 1


@app.task("asks-too-late")
def asks_too_late(name: str) -> None:
    gate(name)
    current_task().checkpoint("late", _step, "late")


# --- completing in the task's own transaction ----------------------------------------------


def connect() -> Any:
    settings = app.config.store
    if settings.engine == "sqlite":
        return sqlite3.connect(settings.address)
    import psycopg

    return psycopg.connect(settings.address)


def note_in_the_middle(connection: Any) -> None:
    """Note progress, and see it stored, in a transaction that does not see it."""
    task = current_task()
    if app.config.store.engine == "sqlite":
        # Its transaction begins with its first write, and then nobody else writes.
        task.set_progress(1, 2)
        return
    import psycopg

    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.execute("SELECT count(*) FROM entries")
    task.set_progress(1, 2)
    stored = "SELECT progress FROM holdfast_task_notes WHERE task_id = %s"
    with psycopg.connect(app.config.store.address, autocommit=True) as other:
        until(lambda: other.execute(stored, [task.id]).fetchone() is not None)
    assert connection.execute(stored, [task.id]).fetchone() is None


@app.task("complete-in", max_crashes=3)
def complete_in(how: str, entry: str) -> Any:
    t = current_task()
    connection = connect()
    try:
        if how == "noted":
            note_in_the_middle(connection)
        connection.execute(f"INSERT INTO entries VALUES ('{entry}')")
        t.complete_in(connection, ["by my own hand", t.attempt])
        if how == "rollback":
            connection.rollback()
        elif how == "die-before-commit" and t.attempt == 1:
            os._exit(4)
        else:
            connection.commit()
        if how == "die-after-commit":
            os._exit(4)
        if how == "raise-after-commit":
            raise ValueError("too late to fail")
    finally:
        connection.close()
    return "ignored"


@app.task("acomplete-in")
async def acomplete_in(entry: str) -> Any:
    t = current_task()
    if app.config.store.engine == "sqlite":
        import aiosqlite

        async with aiosqlite.connect(app.config.store.address) as connection:
            await connection.execute(f"INSERT INTO entries VALUES ('{entry}')")
            await t.acomplete_in(connection, "async")
            await connection.commit()
    else:
        import psycopg

        async with await psycopg.AsyncConnection.connect(app.config.store.address) as other:
            await other.execute("INSERT INTO entries VALUES (%s)", [entry])
            await t.acomplete_in(other, "async")
