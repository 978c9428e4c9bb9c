"""What other processes do in these tests: `python -m tests.store.sqlite.programs NAME ...`.

A program prints a line when it has come somewhere and reads a line before it goes on.
"""

from __future__ import annotations

import os
import resource
import sqlite3
import sys
import time
from collections.abc import Callable

import apsw

from holdfast.core.errors import ConfigError, HoldfastError, StoreError, StoreUnavailable
from holdfast.store.op import Channel
from holdfast.store.settings import parse_url
from holdfast.store.sqlite import connections
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.turns import turnstile
from tests.store.sqlite import verbs

NOBODY = 65534


def open_store(path: str, driver: str = "apsw") -> SqliteStore:
    return SqliteStore(parse_url(f"sqlite:///{path}?driver={driver}"), texts=verbs.texts)


def say(*words: object) -> None:
    print(*words, flush=True)


def hear() -> str:
    return sys.stdin.readline().strip()


def hold_turn(path: str) -> None:
    """Take the turn and keep it until told to leave."""
    turns = turnstile.of(path)
    turns.enter(10)
    say("in")
    hear()
    turns.leave()
    say("out")


def hold_transaction(path: str) -> None:
    """What the sqlite3 shell does when somebody forgets it in a transaction."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    say("in")
    hear()
    connection.execute("COMMIT")
    say("out")
    hear()


def put(path: str, driver: str, body: str) -> None:
    store = open_store(path, driver)
    store.run(verbs.put(body))
    store.close()
    say("done")


def put_many(path: str, count: str) -> None:
    """Write notes one by one, saying each that was committed."""
    store = open_store(path)
    for number in range(int(count)):
        store.run(verbs.put(f"{os.getpid()}-{number}"))
        say(number)


def put_and_ring(path: str, queue: str) -> None:
    store = open_store(path)
    store.run(verbs.count())
    say("ready")
    while hear():
        store.run(verbs.put_and_ring("x", queue))
        say(time.monotonic())


def drain(path: str, seconds: str, rows: str) -> None:
    """Write batches as fast as it goes; at the end say how many."""
    store = open_store(path)
    store.run(verbs.count())
    say("ready")
    hear()
    end = time.monotonic() + float(seconds)
    batches = 0
    while time.monotonic() < end:
        batch = [(os.urandom(16), "x" * 100, 1) for _ in range(int(rows))]
        store.run(verbs.put_all(batch))
        batches += 1
    say(batches)
    hear()


def listen(path: str) -> None:
    """Listen until told to end; says what it hears."""
    store = open_store(path)
    with store.listen(Channel.READY) as listener:
        say("ready")
        while True:
            heard = listener.wait(30)
            say(",".join(sorted(heard)))


def lowly(path: str) -> None:
    """Try to write as a user without rights, and say what the error says."""
    store = open_store(path)
    # Imported before: another user may not read this interpreter's files.
    apsw.Connection(":memory:").close()
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        store.run(verbs.put("x"))
    except HoldfastError as error:
        say(type(error).__name__, error)
    else:
        say("written")


def fill_disk(path: str) -> None:
    """Write until the disk fails, then give it space and go on."""
    store = open_store(path)
    store.run(verbs.make())
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, hard))
    acknowledged = 0
    try:
        while True:
            store.run(verbs.put("x" * 5_000))
            acknowledged += 1
    except StoreUnavailable as error:
        say(type(error).__name__, error.retryable, error.commit_unknown, error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    store.run(verbs.put("after"))
    say(acknowledged, store.run(verbs.count()))


def meet_another_library(path: str, elsewhere: str) -> None:
    """Use files that something else in this process has open as a SQLite library does."""
    connections._LOOK_SECONDS = 0.0
    store = open_store(path)
    store.run(verbs.put("x"))
    other = os.open(f"{path}-shm", os.O_RDWR)
    try:
        for _ in range(3):
            store.run(verbs.count())
    except StoreError as error:
        say(type(error).__name__, error)
    os.close(other)
    other = os.open(f"{elsewhere}-shm", os.O_RDWR)
    try:
        open_store(elsewhere).run(verbs.count())
    except ConfigError as error:
        say(type(error).__name__, error)
    say("done")
    os.close(other)


def race_to_open(path: str) -> None:
    """Open a file that may not be there yet, together with others."""
    say("ready")
    hear()
    store = open_store(path)
    store.run(verbs.make())
    store.run(verbs.put(str(os.getpid())))
    store.close()
    say("done")


PROGRAMS: dict[str, Callable[..., None]] = {
    program.__name__: program
    for program in (
        hold_turn,
        hold_transaction,
        put,
        put_many,
        put_and_ring,
        drain,
        listen,
        lowly,
        fill_disk,
        meet_another_library,
        race_to_open,
    )
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
