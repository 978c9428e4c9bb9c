from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.store.settings import SqliteDriver
from holdfast.store.sqlite.one_library import open_files, process_locks
from holdfast.store.sqlite.store import SqliteStore
from tests.store.sqlite import verbs
from tests.store.sqlite.conftest import MakeStore
from tests.store.sqlite.forked import in_child

# Newer Pythons warn of forks beside threads, which is what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

_VISIT = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("SELECT count(*) FROM notes").fetchone()[0])
connection.close()
"""


def visit(path: str) -> int:
    """How many notes another process sees, which clears up if it finds itself alone."""
    done = subprocess.run(
        [sys.executable, "-c", _VISIT, path], capture_output=True, text=True, check=True, timeout=30
    )
    return int(done.stdout)


@pytest.mark.parametrize("names", [("",), ("", "-wal", "-shm")], ids=["database", "all of it"])
def test_a_program_that_copies_its_file_loses_nothing(
    make_store: MakeStore, driver: SqliteDriver, names: tuple[str, ...]
) -> None:
    store = make_store(driver=driver)
    store.run(verbs.make())
    store.run(verbs.put("before"))

    for name in names:
        Path(f"{store.path}{name}").read_bytes()
    assert visit(store.path) == 1
    store.run(verbs.put("after"))

    assert visit(store.path) == 2
    assert store.run(verbs.bodies()) == ["before", "after"]


def test_a_forked_child_that_copies_the_file_loses_nothing(store: SqliteStore) -> None:
    def work() -> int:
        store.run(verbs.put("child"))
        Path(store.path).read_bytes()
        Path(f"{store.path}-shm").read_bytes()
        visit(store.path)
        return store.run(verbs.put("child"))

    store.run(verbs.put("parent"))
    answer = in_child(work)
    store.close()

    assert (answer, visit(store.path)) == ("3", 3)


def test_a_file_that_was_put_into_wal_mode_by_us(path: Path, make_store: MakeStore) -> None:
    theirs = sqlite3.connect(path)
    theirs.execute("CREATE TABLE mine (a)")
    theirs.commit()
    theirs.close()
    store = make_store()
    store.run(verbs.make())

    assert process_locks.is_held(open_files.identity(path)) or sys.platform != "linux"


def test_the_last_one_clears_up_and_nothing_stays_open(
    make_store: MakeStore, driver: SqliteDriver
) -> None:
    store = make_store(driver=driver)
    store.run(verbs.make())
    store.run(verbs.put("x"))
    file = open_files.identity(store.path)
    store.close()

    assert not process_locks.is_held(file)
    assert not Path(f"{store.path}-wal").exists()
    assert store.path not in all_open()


def all_open() -> set[str]:
    entries = Path("/proc/self/fd")
    return {str(one.resolve()) for one in entries.iterdir()} if entries.is_dir() else set()


def test_another_connection_of_the_program_keeps_its_locks(store: SqliteStore) -> None:
    """What we close when we leave is not what it relies on."""
    store.run(verbs.put("ours"))
    theirs = sqlite3.connect(store.path)
    theirs.execute("SELECT count(*) FROM notes").fetchall()
    store.run(verbs.put("ours"))
    store.close()

    assert visit(store.path) == 2
    assert Path(f"{store.path}-wal").exists()
    theirs.execute("INSERT INTO notes (body) VALUES ('theirs')")
    theirs.commit()
    assert visit(store.path) == 3
    theirs.close()
