"""A program's own connections checkpoint rarely, where their library must not."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.store.sqlite.one_library import autocheckpoint
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs

DEFAULT = 1_000


def pages(path: str | Path) -> int:
    with closing(sqlite3.connect(path)) as theirs:
        ((found,),) = theirs.execute("PRAGMA wal_autocheckpoint").fetchall()
        theirs.execute("CREATE TABLE IF NOT EXISTS mine (a)")
        assert theirs.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return int(found)


@pytest.fixture(params=[True, False])
def vulnerable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the library is said to have the bug."""
    found: bool = request.param
    monkeypatch.setattr(autocheckpoint, "is_vulnerable", lambda version: found)
    return found


def test_a_connection_to_our_file(store: SqliteStore, vulnerable: bool) -> None:
    store.run(verbs.put("x"))
    # Where `sqlite3` is built in a way that hides its library, all stays as it is.
    can = autocheckpoint._setter() is not None

    assert pages(store.path) == (autocheckpoint.RARELY if vulnerable and can else DEFAULT)
    assert store.run(verbs.count()) == 1


def test_a_connection_of_a_class_of_its_own(store: SqliteStore, vulnerable: bool) -> None:
    class Theirs(sqlite3.Connection):
        """As Django's debug toolbar and many others have."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.statements = 0
            super().__init__(*args, **kwargs)

        def execute(self, *args: Any) -> sqlite3.Cursor:
            self.statements += 1
            return super().execute(*args)

    store.run(verbs.put("x"))
    with closing(sqlite3.connect(store.path, factory=Theirs)) as theirs:
        ((found,),) = theirs.execute("PRAGMA wal_autocheckpoint").fetchall()
        assert theirs.statements == 1

    can = autocheckpoint._setter() is not None
    assert found == (autocheckpoint.RARELY if vulnerable and can else DEFAULT)


def test_a_connection_to_another_file(store: SqliteStore, vulnerable: bool, tmp_path: Path) -> None:
    store.run(verbs.put("x"))

    assert pages(tmp_path / "other.db") == DEFAULT


def test_a_file_that_we_do_not_use_any_more(store: SqliteStore, vulnerable: bool) -> None:
    store.run(verbs.put("x"))
    store.close()

    assert pages(store.path) == DEFAULT


def test_the_library_of_this_python_is_found_or_left_alone() -> None:
    """In a process of its own: a wrong address would end it."""
    text = (
        "import sqlite3\n"
        "from holdfast.store.sqlite.one_library import autocheckpoint\n"
        "autocheckpoint.is_vulnerable = lambda version: True\n"
        "theirs = sqlite3.connect(':memory:')\n"
        "print(autocheckpoint.put_off(theirs), *theirs.execute('PRAGMA wal_autocheckpoint'))\n"
        "theirs.close()\n"
        "print(autocheckpoint.put_off(theirs))\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout in ("True (50000,)\nFalse\n", "False (1000,)\nFalse\n")
