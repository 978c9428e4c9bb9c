"""Settings: where they come from, and what is refused."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from holdfast import ConfigError, Holdfast
from holdfast.client.config import Config, Settings
from holdfast.runtime.application import manifest
from holdfast.runtime.options import WorkerOptions


def test_every_setting_has_a_keyword_a_variable_and_a_default() -> None:
    names = set(get_type_hints(Settings)) | {"url"}
    assert {name for name in Config.__dataclass_fields__ if name != "store"} == names
    Config.load(environment={})


def test_a_keyword_beats_the_environment_which_beats_the_default() -> None:
    environment = {"HOLDFAST_SEND_TIMEOUT": "7", "HOLDFAST_MAX_PAYLOAD": "500"}
    config = Config.load(None, {"send_timeout": 1.5}, environment)
    assert (config.send_timeout, config.max_payload) == (1.5, 500)
    assert config.default_timeout == 3600


def test_the_url_comes_from_the_environment() -> None:
    config = Config.load(environment={"HOLDFAST_URL": "postgresql://somewhere/db"})
    assert config.store.engine == "postgresql"
    assert Config.load("sqlite:///a.db", {}, {"HOLDFAST_URL": "sqlite:///b.db"}).url.endswith(
        "a.db"
    )


def test_the_default_is_a_file_where_the_app_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with Holdfast() as app:
        os.chdir("/")
        with caplog.at_level(logging.INFO, "holdfast"):
            app.control.queues.list()
    assert (tmp_path / "holdfast.db").exists()
    assert str(tmp_path / "holdfast.db") in caplog.text


def test_what_the_url_says_beats_the_environment() -> None:
    config = Config.load("postgresql://h/db?schema=mine", {}, {"HOLDFAST_SCHEMA": "theirs"})
    assert config.store.schema == "mine"
    assert Config.load("postgresql://h/db", {}, {"HOLDFAST_SCHEMA": "theirs"}).store.schema == (
        "theirs"
    )


def test_an_empty_variable_is_as_good_as_none() -> None:
    assert Config.load(environment={"HOLDFAST_SCHEMA": "", "HOLDFAST_URL": ""}).schema is None


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("DURABLE", "no", False),
        ("DURABLE", "TRUE", True),
        ("MAX_CONNECTIONS", "9", 9),
        ("DEFAULT_TIMEOUT", "never", None),
        ("DEFAULT_TIMEOUT", "2.5", 2.5),
        ("DRIVER", "sqlite3", "sqlite3"),
    ],
)
def test_variables_are_read_as_their_type(name: str, text: str, value: Any) -> None:
    config = Config.load(environment={f"HOLDFAST_{name}": text})
    assert getattr(config, name.lower()) == value


@pytest.mark.parametrize(
    ("url", "keywords", "environment", "words"),
    [
        ("tasks.db", {}, {}, "no scheme"),
        ("redis://localhost", {}, {}, "unknown scheme 'redis'"),
        ("sqlite://tasks.db", {}, {}, "three slashes"),
        ("sqlite:///", {}, {}, "names no file"),
        ("postgresql://u:secret@h:port/db", {}, {}, "cannot be read"),
        ("postgresql://u:a@secret@h/db", {}, {}, "at sign too many.*%40"),
        ("postgresql://u:12/secret@h/db", {}, {}, "at sign too many"),
        ("postgresql://u:12#secret@h/db", {}, {}, "number sign.*%23"),
        ("postgresq://u:a@secret@h/db", {}, {}, "unknown scheme 'postgresq'"),
        ("postgresql:/u:secret@h/db", {}, {}, "no scheme"),
        ("u:secret@h/db", {}, {}, "no scheme"),
        ("sqlite://u:secret@h/db", {}, {}, "three slashes"),
        (b"postgresql://u:secret@h/db", {}, {}, "must be str"),
        ("sqlite:///a.db", {"schema": "x"}, {}, "schema= is for PostgreSQL"),
        ("postgresql://h/db", {"schema": "Not Plain"}, {}, "plain lower-case identifier"),
        ("postgresql://h/db?schema=a", {"schema": "b"}, {}, "given twice"),
        ("sqlite:///a.db", {"driver": "pysqlite"}, {}, "driver 'pysqlite' is unknown"),
        ("sqlite:///a.db", {"no_such": 1}, {}, "no setting 'no_such'"),
        ("sqlite:///a.db", {"max_connections": 0}, {}, "at least 1"),
        ("sqlite:///a.db", {"max_connections": True}, {}, "must be int"),
        ("sqlite:///a.db", {"send_timeout": float("nan")}, {}, "at least 0"),
        ("sqlite:///a.db", {"send_timeout": "5"}, {}, "must be int or float"),
        ("sqlite:///a.db", {"default_timeout": 0}, {}, "at least 0.001"),
        (None, {}, {"HOLDFAST_SEND_TIMEOUT": "soon"}, "a number of seconds"),
        (None, {}, {"HOLDFAST_DURABLE": "perhaps"}, "true or false"),
        (None, {}, {"HOLDFAST_MAX_CONNECTIONS": "1.5"}, "a whole number"),
        (None, {"lock_timeout": 1e20}, {}, "lock_timeout is 1e.20; it must be at most 1,000,000"),
        (None, {"statement_timeout": float("inf")}, {}, "at most 1,000,000"),
        (None, {}, {"HOLDFAST_CONNECT_TIMEOUT": "1e20"}, "at most 1,000,000"),
        (None, {}, {"HOLDFAST_LEASE": "1e20"}, "lease is 1e.20; it must be at most 31,536,000"),
    ],
)
def test_a_wrong_setting_is_refused_when_the_app_is_made(
    url: Any, keywords: dict[str, Any], environment: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        Config.load(url, keywords, environment)
    assert "secret" not in str(caught.value)


def test_an_app_shows_no_password() -> None:
    for url in ("postgresql://u:secret@h/db", "postgresql://h/db?user=u&password=secret"):
        app = Holdfast(url, listen_url=url)
        told = app.__holdfast__()
        shown = repr(app) + repr(app.config) + repr(app.config.store) + f"{app.config}"
        shown += repr(manifest(told, "shop", 1)) + repr(WorkerOptions.load({}, told.settings, {}))
        assert "secret" not in shown
        assert "***" in shown


@pytest.mark.parametrize(
    ("url", "engine", "address"),
    [
        ("postgresql+psycopg://u@h/db?schema=q", "postgresql", "postgresql://u@h/db"),
        ("postgresql+psycopg2://u@h/db", "postgresql", "postgresql://u@h/db"),
        ("postgresql+asyncpg://u@h/db", "postgresql", "postgresql://u@h/db"),
        ("postgres://u@h/db", "postgresql", "postgresql://u@h/db"),
        ("POSTGRESQL://u@h/db", "postgresql", "postgresql://u@h/db"),
        ("pgsql://u@h/db", "postgresql", "postgresql://u@h/db"),
        ("psql://u@h/db", "postgresql", "postgresql://u@h/db"),
        ("postgis://u@h/db", "postgresql", "postgresql://u@h/db"),
        ("postgresql+psycopg:///db?host=/run", "postgresql", "postgresql:///db?host=%2Frun"),
        ("sqlite+pysqlite:////srv/tasks.db", "sqlite", "/srv/tasks.db"),
        ("sqlite+aiosqlite:////srv/tasks.db", "sqlite", "/srv/tasks.db"),
    ],
)
def test_urls_as_other_libraries_write_them(url: str, engine: str, address: str) -> None:
    store = Config.load(url, {}, {}).store
    assert (store.engine, store.address) == (engine, address)
