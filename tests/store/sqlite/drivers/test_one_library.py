from __future__ import annotations

import sqlite3
from pathlib import Path

import apsw
import pytest

from holdfast.core.errors import ConfigError
from holdfast.store.sqlite.drivers import one_library
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore


@pytest.fixture
def file(path: Path) -> str:
    path.touch()
    return str(path)


def test_apsw_is_the_default(file: str) -> None:
    assert one_library.choose(file, None) == "apsw"
    assert one_library.choose(file, "sqlite3") == "sqlite3"


def test_two_stores_of_one_library(make_store: MakeStore) -> None:
    make_store(driver="sqlite3").run(verbs.make())

    assert make_store(driver="sqlite3").run(verbs.count()) == 0


@pytest.mark.parametrize(("first", "second"), [("apsw", "sqlite3"), ("sqlite3", "apsw")])
def test_a_mix_is_refused(make_store: MakeStore, first: str, second: str) -> None:
    make_store(driver=first).run(verbs.make())

    with pytest.raises(ConfigError, match="two SQLite libraries") as caught:
        make_store(driver=second).run(verbs.count())

    assert caught.value.option == "driver"
    assert "driver='sqlite3'" in str(caught.value)


def test_one_library_after_the_other(make_store: MakeStore) -> None:
    first = make_store(driver="apsw")
    first.run(verbs.make())
    first.close()

    assert make_store(driver="sqlite3").run(verbs.count()) == 0


def test_the_second_store_follows_the_first(make_store: MakeStore) -> None:
    make_store(driver="sqlite3").run(verbs.make())
    second = make_store()
    second.run(verbs.count())

    assert second.probe().library == "sqlite3"


def test_a_store_follows_a_connection_that_was_there_before(make_store: MakeStore) -> None:
    setup = make_store(driver="sqlite3")
    setup.run(verbs.make())
    setup.close()
    theirs = sqlite3.connect(setup.path)
    theirs.execute("SELECT count(*) FROM notes")
    try:
        store = make_store()
        store.run(verbs.count())

        assert store.probe().library == "sqlite3"
    finally:
        theirs.close()


def test_a_noted_connection_is_remembered_while_it_is_open(file: str) -> None:
    theirs = sqlite3.connect(file)
    theirs.execute("CREATE TABLE t (a)")
    one_library.note(file, "sqlite3")
    with pytest.raises(ConfigError):
        one_library.enlist(file, "apsw")

    theirs.close()

    one_library.discharge(one_library.enlist(file, "apsw"))


def test_a_noted_connection_of_the_other_library(file: str) -> None:
    theirs = apsw.Connection(file)
    theirs.execute("CREATE TABLE t (a)")
    one_library.note(file, "apsw")

    with pytest.raises(ConfigError):
        one_library.note(file, "sqlite3")
    assert one_library.choose(file, None) == "apsw"

    theirs.close()


def test_another_name_of_the_same_file_is_the_same_file(
    make_store: MakeStore, path: Path, tmp_path: Path
) -> None:
    make_store(driver="apsw").run(verbs.make())
    link = tmp_path / "link.db"
    link.symlink_to(path)

    with pytest.raises(ConfigError):
        make_store(link, driver="sqlite3").run(verbs.count())


def test_proxies_in_the_process_are_left_in_peace(file: str) -> None:
    """Like Django's settings: whoever asks for its class brings it to life, or fails to."""

    def wake(self: object) -> type:
        raise LookupError("not configured yet")

    proxies = [type("Proxy", (), {"__class__": property(wake)})()]
    with open(file, "rb"):  # noqa: PTH123
        # Somebody has the file open; whether that is a connection of sqlite3 is looked for. (There
        # may be one: these tests share a process with others.)
        assert one_library.choose(file, None) in ("apsw", "sqlite3")
    assert proxies
