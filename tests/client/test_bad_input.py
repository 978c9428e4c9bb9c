"""Bad input: each kind gives a clear error before any write, the same on both engines."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    ConfigError,
    Holdfast,
    HoldfastError,
    PayloadError,
    StoreError,
    StoreUnavailable,
    TaskNotFound,
    UnknownTask,
)
from holdfast.store.sqlite import database_file

PAST = datetime(2020, 1, 1, tzinfo=UTC)
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)
NAIVE = datetime(2100, 1, 1)  # noqa: DTZ001


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


# What one argument may not be, and words of the error.
ARGUMENTS: dict[str, tuple[Any, str]] = {
    "unserialisable": (object(), "cannot be written as JSON"),
    "function": (len, "cannot be written as JSON"),
    "too large": ("x" * 1_048_577, "over the limit of 1,048,576 bytes"),
    "nan": (float("nan"), "is nan, which JSON cannot hold"),
    "infinity": ([1.0, float("-inf")], r"args\[0\]\[1\] is -inf"),
    "lone surrogate": ("a\ud800b", "half of a surrogate pair"),
    "surrogate key": ({"a": {"\udfff": 1}}, "half of a surrogate pair"),
    "depth": (nested(101), "nested deeper than 100 levels"),
    "integer key": ({1: 2}, "only string keys"),
    "colliding keys": ({1: 2, "1": 3}, "only string keys"),
    "big int": (2**63, "beyond 64 bits"),
    "big negative int": ({"a": -(2**63) - 1}, "beyond 64 bits"),
    "naive datetime": (NAIVE, "without a time zone"),
}

# What is accepted must come back exactly.
ACCEPTED: dict[str, Any] = {
    "nul": "a\x00b",
    "escapes": '"\\\b\f\n\r\t\u2028\u2029\x7f',
    "astral": "\U0001f980 \U0010ffff",
    "deep": nested(99),
    "int64": [2**63 - 1, -(2**63)],
    "float": [0.1, -0.0, 5e-324, 1.7976931348623157e308],
    "empty": ["", [], {}, None, True, False],
    "odd keys": {"": 1, " ": 2, "\x00": 3, "ä": 4},
}

# What a call of `add(a: int, b: int = 0)` may not be.
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "missing": ((), {}, "needs 'a'"),
    "too many": ((1, 2, 3), {}, "takes 2 positional arguments, and 3 were given"),
    "wrong name": ((1,), {"c": 2}, "has no parameter named 'c'"),
    "twice": ((1,), {"a": 2}, "was given 'a' twice"),
    "wrong type": (("one",), {}, "argument a of task 'add' does not fit"),
    "wrong named type": ((1,), {"b": None}, "argument b of task 'add' does not fit"),
    "float for int": ((1.5,), {}, "argument a of task 'add' does not fit"),
}

OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "priority 0": ({"priority": 0}, "priority=0"),
    "priority 101": ({"priority": 101}, "priority=101"),
    "priority text": ({"priority": "1"}, "priority='1'"),
    "priority bool": ({"priority": True}, "priority=True"),
    "queue empty": ({"queue": ""}, "queue name ''"),
    "queue letters": ({"queue": "a/b"}, "queue name 'a/b'"),
    "queue long": ({"queue": "q" * 101}, "1 to 100"),
    "queue nul": ({"queue": "a\x00"}, "queue name"),
    "naive good_until": ({"good_until": NAIVE}, "has no time zone"),
    "past good_until": ({"good_until": PAST}, "has passed"),
    "good_until before run_at": ({"good_until": FUTURE, "run_at": FUTURE}, "not after the time"),
    "good_until no time": ({"good_until": 5}, "is not a time"),
    "naive run_at": ({"run_at": NAIVE}, "has no time zone"),
    "negative delay": ({"delay": -1}, "between 0 and 100 years"),
    "endless delay": ({"delay": float("inf")}, "not a duration"),
    "delay of a moment": ({"delay": FUTURE}, "give it as run_at"),
    "no good at all": ({"good_for": 0}, "longer than nothing"),
    "id": ({"id": "not-a-uuid"}, "is not a task id"),
    "tags": ({"tags": ["x" * 101]}, "1 to 100 characters"),
    "tags text": ({"tags": "abc"}, "give a list of strings"),
}

NAMES = {"empty": "", "space": "a b", "long": "n" * 256, "umlaut": "grün", "nul": "a\x00b"}


@pytest.fixture
def add(app: Holdfast) -> Any:
    @app.task("add")
    def add(a: int, b: int = 0) -> int:
        return a + b

    return add


def refused(app: Holdfast, send: Callable[[], Any], kind: type[HoldfastError], words: str) -> None:
    """The send fails so, and the async one too, and nothing has been written."""
    with pytest.raises(kind, match=words) as caught:
        send()
    assert not caught.value.retryable
    assert app.control.tasks.count() == {}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_an_argument_that_cannot_be_stored(app: Holdfast, case: str) -> None:
    value, words = ARGUMENTS[case]
    refused(app, lambda: app.send("any", value), PayloadError, words)
    refused(app, lambda: asyncio.run(app.asend("any", value)), PayloadError, words)
    refused(app, lambda: app.send("any", key=value), PayloadError, words.rpartition("] ")[2])


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_is_accepted_comes_back_as_it_went_in(app: Holdfast, case: str) -> None:
    value = ACCEPTED[case]
    info = app.send("any", value, key=value).info()
    assert repr(info.args) == repr([value])
    assert repr(info.kwargs) == repr({"key": value})


@pytest.mark.parametrize("case", CALLS)
def test_a_call_that_does_not_fit(app: Holdfast, add: Any, case: str) -> None:
    args, kwargs, words = CALLS[case]
    refused(app, lambda: add.send(*args, **kwargs), PayloadError, words)
    refused(app, lambda: asyncio.run(add.asend(*args, **kwargs)), PayloadError, words)
    refused(app, lambda: app.send("add", *args, **kwargs), PayloadError, words)


def test_an_argument_whose_type_would_change(app: Holdfast) -> None:
    @app.task("store")
    def store(data, *, key: Any = None):  # type: ignore[no-untyped-def]
        return data

    task: Any = store
    for value in (b"ab", {1, 2}, (1, 2), Path("a"), [FUTURE]):
        words = "no annotation says what it is: annotate the parameter"
        refused(app, lambda value=value: task.send(value), PayloadError, words)  # type: ignore[misc]
        refused(app, lambda value=value: task.send(1, key=value), PayloadError, words)  # type: ignore[misc]
        refused(app, lambda value=value: task.send_many([(value,)]), PayloadError, words)  # type: ignore[misc]
        refused(app, lambda value=value: app.send("store", value), PayloadError, words)  # type: ignore[misc]


def test_send_many_names_the_call_that_is_wrong(app: Holdfast, add: Any) -> None:
    refused(
        app,
        lambda: add.send_many([(1, 2), {"a": 1}, (3, "x" * 1000)]),
        PayloadError,
        r"^call 2 of send_many, add\(3, 'xxx[x.]+xxx'\): argument b of task 'add' does not fit",
    )
    with pytest.raises(
        PayloadError, match=r"^call 1 of send_many, add\(c=5\): task 'add' has"
    ) as e:
        add.send_many([(1, 2), {"c": 5}])
    assert (e.value.place, e.value.problem) == (1, "mismatch")
    with pytest.raises(PayloadError, match=r"^call 0 of send_many, add\(1, 2, 3, 4, 5, …\)"):
        asyncio.run(add.asend_many([tuple(range(1, 10))]))


@pytest.mark.parametrize("case", OPTIONS)
def test_an_option_that_makes_no_sense(app: Holdfast, add: Any, case: str) -> None:
    options, words = OPTIONS[case]
    refused(app, lambda: add.options(**options).send(1), ConfigError, words)
    refused(app, lambda: app.options(**options).send("any"), ConfigError, words)


@pytest.mark.parametrize("case", NAMES)
def test_a_task_name_that_cannot_be(app: Holdfast, case: str) -> None:
    refused(app, lambda: app.send(NAMES[case]), ConfigError, "1 to 255 of the characters")


@pytest.mark.parametrize("when", [NAIVE, -5, float("nan"), "tomorrow", None])
def test_a_time_that_is_none(app: Holdfast, add: Any, when: Any) -> None:
    refused(app, lambda: add.schedule(when, 1), ConfigError, "when=")


def test_the_limit_can_be_set(url: str, open_app: Callable[..., Holdfast]) -> None:
    app = open_app(url, max_payload=10)
    app.send("any", "x" * 4)
    with pytest.raises(PayloadError, match="over the limit of 10 bytes"):
        app.send("any", "x" * 10)


def test_an_unknown_id(app: Holdfast) -> None:
    unknown = "0197f3c2-5b1e-7d44-9a01-3c5e6f708192"
    with pytest.raises(TaskNotFound, match=unknown):
        app.handle(unknown)
    with pytest.raises(TaskNotFound):
        asyncio.run(app.ahandle(unknown))


def test_an_unknown_task(app: Holdfast, add: Any) -> None:
    with pytest.raises(UnknownTask, match=r"'subtract' is not registered .* known tasks: add"):
        app.tasks.get("subtract")


def test_after_close(app: Holdfast, add: Any) -> None:
    handle = add.send(1)
    app.close()
    app.close()
    for use in (
        lambda: add.send(1),
        lambda: add.send_many([(1,)]),
        lambda: app.send("any"),
        lambda: handle.status(),
        lambda: handle.get(1),
        lambda: app.using(object()),
        lambda: asyncio.run(add.asend(1)),
        lambda: asyncio.run(handle.aget(1)),
        lambda: app.control.queues.list(),
    ):
        with pytest.raises(StoreError, match="this app is closed"):
            use()


def test_an_app_is_closed_by_its_block(url: str) -> None:
    with Holdfast(url) as app:
        app.send("any")
    with pytest.raises(StoreError, match="closed"):
        app.send("any")

    async def block() -> Holdfast:
        async with Holdfast(url) as inner:
            await inner.asend("any")
        return inner

    with pytest.raises(StoreError, match="closed"):
        asyncio.run(block()).send("any")


def test_an_unreachable_server(open_app: Callable[..., Holdfast]) -> None:
    app = open_app("postgresql://nobody:secret@127.0.0.1:1/none", send_timeout=0.2)
    with pytest.raises(StoreUnavailable, match=r"cannot connect to .*127.0.0.1:1") as caught:
        app.send("any", 1)
    assert caught.value.retryable
    assert caught.value.call is not None
    assert "secret" not in str(caught.value)


def test_a_missing_directory(tmp_path: Path, open_app: Callable[..., Holdfast]) -> None:
    app = open_app(f"sqlite:///{tmp_path / 'absent' / 'tasks.db'}", send_timeout=0)
    with pytest.raises(StoreUnavailable, match="absent"):
        app.send("any")


def test_a_directory_in_place_of_the_file(
    tmp_path: Path, open_app: Callable[..., Holdfast]
) -> None:
    with pytest.raises(StoreUnavailable, match=str(tmp_path)):
        open_app(f"sqlite:///{tmp_path}", send_timeout=0).send("any")


@pytest.mark.parametrize("typed", ["nonsense", "", "0197f3c2", "{0197f3c2}", "x" * 5_000])
def test_a_text_that_is_no_id_belongs_to_no_task(app: Holdfast, typed: str) -> None:
    looks: list[Callable[[], Any]] = [
        lambda: app.handle(typed),
        lambda: asyncio.run(app.ahandle(typed)),
        lambda: app.control.tasks.show(typed),
        lambda: app.control.tasks.cancel(typed),
    ]
    for look in looks:
        with pytest.raises(TaskNotFound, match="an id is a UUID") as caught:
            look()
        assert caught.value.task_id == typed
        assert len(str(caught.value)) < 300
    with pytest.raises(ConfigError, match="is not a task id"):
        app.handle(7)  # type: ignore[arg-type]


def test_a_file_that_is_no_database(tmp_path: Path, open_app: Callable[..., Holdfast]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("these are notes, and have been for years\n" * 50)
    with pytest.raises(StoreError, match=r"notes\.txt"):
        open_app(f"sqlite:///{file}", send_timeout=0).send("any")
    assert file.read_text().startswith("these are notes")


def test_a_database_that_is_not_ours_is_welcome_but_foreign_tables_are_not(
    tmp_path: Path, open_app: Callable[..., Holdfast]
) -> None:
    file = tmp_path / "theirs.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE holdfast_tasks (id)")
    connection.close()
    with pytest.raises(StoreError, match="not made by Holdfast"):
        open_app(f"sqlite:///{file}").send("any")


READ_ONLY = """
import os, sys
from holdfast import Holdfast, StoreError
with Holdfast("sqlite:///" + sys.argv[1] + "/other.db") as app:
    app.send("any")  # loads what is needed, while all of it can be read
if os.geteuid() == 0:
    os.setuid(65534)  # permissions do not bind root
try:
    Holdfast("sqlite:///" + sys.argv[1] + "/tasks.db", send_timeout=0).send("any")
except StoreError as error:
    sys.exit(str(error))
"""


def test_a_read_only_file() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tasks.db"
        with Holdfast(f"sqlite:///{file}") as app:
            app.send("any")
        file.chmod(0o444)
        Path(folder).chmod(0o555)
        ran = subprocess.run(
            [sys.executable, "-c", READ_ONLY, folder],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        Path(folder).chmod(0o755)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert str(file) in ran.stderr


def test_a_network_filesystem(
    tmp_path: Path, open_app: Callable[..., Holdfast], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_file, "filesystem", lambda folder: "nfs4")
    with pytest.raises(ConfigError, match="network filesystem"):
        open_app(f"sqlite:///{tmp_path / 'tasks.db'}").send("any")
    open_app(f"sqlite:///{tmp_path / 'tasks.db'}", allow_network_filesystem=True).send("any")
