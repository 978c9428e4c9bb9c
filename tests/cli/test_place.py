"""Stores that cannot be used: one sentence, the right exit code, and nothing created."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Operator, run
from tests.support.postgres import PostgresServer

READING = [
    ["tasks", "list"],
    ["tasks", "show", "01020304-0506-7000-8000-000000000001"],
    ["tasks", "why", "01020304-0506-7000-8000-000000000001"],
    ["tasks", "log", "01020304-0506-7000-8000-000000000001"],
    ["tasks", "stack", "01020304-0506-7000-8000-000000000001"],
    ["tasks", "cancel", "01020304-0506-7000-8000-000000000001"],
    ["tasks", "delete", "--all", "--yes"],
    ["queues", "list"],
    ["queues", "pause", "q"],
    ["workers", "list"],
    ["dead-letters", "list"],
]


def sentence(*arguments: str, code: int) -> str:
    """The one line that a command ends with."""
    said = run(*arguments)
    assert said.code == code, said
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("holdfast ")
    assert "Traceback" not in line
    return line


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_file_that_is_not_there_is_not_made(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    line = sentence(*command, "--url", f"sqlite:///{path}", code=3)
    assert f"there is no database at {path}" in line
    assert list(tmp_path.iterdir()) == []


def test_the_default_is_a_file_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = sentence("tasks", "list", code=3)
    assert f"there is no database at {tmp_path / 'holdfast.db'} (the default)" in line
    assert "--app MODULE:APP" in line


def test_the_environment_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path / 'here.db'}")
    assert "here.db" in sentence("tasks", "list", code=3)
    assert run("tasks", "send", "resize").code == 0
    assert len(run("tasks", "list").rows) == 1


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An app in a module of its own, and a task of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "shop_for_cli.py").write_text(
        "from holdfast import Holdfast, Retry\n"
        "print('this module is chatty')\n"
        "app = Holdfast('sqlite:///shop.db')\n"
        "@app.task('pay', queue='till', retry=Retry(2))\n"
        "def pay(order: int) -> None: ...\n"
    )
    yield "shop_for_cli:app"
    sys.modules.pop("shop_for_cli", None)


def test_an_app_says_where(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "shop.db (from --app shop_for_cli:app)" in run("tasks", "list", "--app", shop).err
    sent = run("tasks", "send", "pay", "--args", "[7]", "--app", shop)
    assert sent.code == 0, sent
    (task,) = run("tasks", "list", "--app", shop, "--json").json["tasks"]
    assert (task["id"], task["queue"], task["max_retries"]) == (sent.out.strip(), "till", 2)
    monkeypatch.setenv("HOLDFAST_APP", shop)
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///other.db")
    assert len(run("tasks", "list").rows) == 1
    assert "other.db (from --url)" in run("tasks", "list", "--url", "sqlite:///other.db").err
    wrong = run("tasks", "list", "--url", "sqlite:///shop.db", "--app", shop)
    assert (wrong.code, "not both" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("shop_for_cli", "names no application"),
        ("nothing_here:app", "there is no module 'nothing_here'"),
        ("shop_for_cli:shop", "has no 'shop'; it has app"),
    ],
)
def test_an_app_that_is_not_there(shop: str, target: str, words: str) -> None:
    said = run("tasks", "list", "--app", target)
    assert said.code == 2
    assert words in said.err
    assert f"from --app {target}" in said.err


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("tasks.db", "has no scheme"),
        ("mysql://localhost/x", "unknown scheme 'mysql'"),
        ("sqlite://tasks.db", "names a host"),
        ("sqlite:///", "names no file"),
        ("sqlite:///x.db?colour=red", "unknown option 'colour'"),
        ("sqlite:///:memory:", "belongs to one process"),
        ("postgresql://u:sec/ret@host:port/x", "cannot be read"),
    ],
)
def test_a_malformed_url(url: str, words: str) -> None:
    line = sentence("tasks", "list", "--url", url, code=2)
    assert words in line
    assert "sec" not in line


def test_a_schema_is_for_postgresql(tmp_path: Path) -> None:
    line = sentence("tasks", "list", "--url", f"sqlite:///{tmp_path}/x", "--schema", "q", code=2)
    assert "schema= is for PostgreSQL" in line


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are not tasks\n" * 100)
    line = sentence("tasks", "list", "--url", f"sqlite:///{path}", code=3)
    assert str(path) in line
    assert path.read_text() == "these are not tasks\n" * 100


def test_an_empty_file_gets_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    line = sentence("tasks", "list", "--url", f"sqlite:///{path}", code=3)
    assert "no tables of Holdfast" in line


def test_a_server_that_is_not_there() -> None:
    line = sentence("tasks", "list", "--url", "postgresql://ada:secret@127.0.0.1:1/x", code=3)
    assert "Connection refused" in line
    assert "secret" not in line
    assert line.count("127.0.0.1:1/x") == 1
    assert line.endswith("(from --url)")


def test_a_send_that_reaches_nobody_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SEND_TIMEOUT", "0.2")
    url = "postgresql://ada@127.0.0.1:1/x"
    assert "Connection refused" in sentence("tasks", "send", "pay", "--url", url, code=3)


def test_a_database_that_is_not_there(postgres_server: PostgresServer) -> None:
    url = postgres_server.url.rpartition("/")
    line = sentence("tasks", "list", "--url", f"{url[0]}/nowhere_{url[2]}", code=3)
    assert "does not exist" in line
    assert "from --url" in line


def test_an_empty_database_gets_no_tables(postgres_url: str) -> None:
    for _ in range(2):
        assert "no tables of Holdfast" in sentence("tasks", "list", "--url", postgres_url, code=3)


def test_a_schema_that_is_not_there_is_named(postgres_url: str) -> None:
    line = sentence("tasks", "list", "--url", postgres_url, "--schema", "queu", code=3)
    assert "no tables of Holdfast in its schema 'queu'" in line


def test_a_newer_schema(operator: Operator) -> None:
    operator.lab.sql(
        "INSERT INTO holdfast_schema_version (version, min_code, applied_at)"
        " VALUES (999, 999, :now)"
    )
    try:
        said = operator("tasks", "list", code=3)
        assert "schema version 999" in said.err
        assert "Upgrade Holdfast here" in said.err
        assert said.err.count("\n") == 1
        assert operator("tasks", "send", "x", code=3).err == said.err.replace("list", "send")
    finally:
        operator.lab.sql("DELETE FROM holdfast_schema_version WHERE version = 999")
