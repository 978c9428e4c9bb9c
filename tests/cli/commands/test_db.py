"""`holdfast db`: looking changes nothing, migrating makes usable, and errors are sentences."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from holdfast import Holdfast
from holdfast.store.migrate import CODE, MIGRATIONS
from tests.cli.conftest import run


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'tasks.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


def test_an_empty_database_is_looked_at_and_left_empty(url: str, tmp_path: Path) -> None:
    said = run("db", "status", "--url", url)
    assert said.code == 1
    assert "no tables yet" in said.out
    plan = run("db", "migrate", "--plan", "--url", url)
    assert plan.code == 0
    assert "CREATE TABLE" in plan.out
    assert "nothing was changed" in plan.err
    assert run("db", "status", "--url", url, "--json").json["schema_version"] is None
    assert list(tmp_path.iterdir()) == []


def test_migrating_makes_it_usable(url: str) -> None:
    assert "migration 0001" in run("db", "migrate", "--url", url).out
    assert "nothing to do" in run("db", "migrate", "--url", url).out
    assert "nothing to do" in run("db", "migrate", "--plan", "--url", url).out
    said = run("db", "status", "--url", url)
    assert said.code == 0, said
    assert f"version {CODE}, up to date" in said.out
    document = run("db", "status", "--url", url, "--json").json
    assert (document["usable"], document["pending"]) == (True, [])
    with Holdfast(url, auto_migrate=False) as app:
        app.send("any")


def test_plan_and_result_as_documents(url: str) -> None:
    plan = run("db", "migrate", "--plan", "--json", "--url", url).json["plan"]
    assert [step["version"] for step in plan] == [each.version for each in MIGRATIONS]
    assert "CREATE TABLE" in plan[0]["sql"]
    assert run("db", "migrate", "--json", "--url", url).json == {
        "done": [{"version": step["version"], "summary": step["summary"]} for step in plan]
    }


def test_a_schema_of_its_own(postgres_url: str) -> None:
    run("db", "migrate", "--url", postgres_url, "--schema", "queue")
    assert run("db", "status", "--url", postgres_url, "--schema", "queue").code == 0
    assert run("db", "status", "--url", postgres_url).code == 1


def test_a_newer_schema_is_shown_and_refused(postgres_url: str) -> None:
    run("db", "migrate", "--url", postgres_url)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("INSERT INTO holdfast_schema_version VALUES (999, 999, now())")
    said = run("db", "status", "--url", postgres_url)
    assert (said.code, "newer than this code" in said.out) == (1, True)
    said = run("db", "migrate", "--url", postgres_url)
    assert said.code == 3
    assert "Upgrade Holdfast" in said.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--url", "postgresql://u:secret@127.0.0.1:1/db"], 3, "cannot connect"),
        (["--url", "tasks.db"], 2, "no scheme"),
        (["--url", "sqlite:///:memory:"], 2, "in memory"),
        (["--url", "sqlite:///x.db", "--schema", "a"], 2, "for PostgreSQL"),
    ],
)
def test_errors_are_one_sentence(arguments: list[str], code: int, words: str) -> None:
    for command in ("status", "migrate"):
        said = run("db", command, *arguments)
        assert said.code == code, said
        assert words in said.err
        assert "secret" not in said.err
        assert len(said.err.splitlines()) == 1


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("notes\n" * 1000)
    said = run("db", "status", "--url", f"sqlite:///{file}")
    assert said.code == 3
    assert "notes.txt" in said.err
