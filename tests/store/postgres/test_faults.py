"""What failures of the server become, each met for real where it can be."""

from __future__ import annotations

import math
import threading
import traceback
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from holdfast.core.errors import (
    ConfigError,
    HoldfastError,
    SchemaMismatch,
    StoreUnavailable,
)
from holdfast.store.op import Channel, Op, Statement, Steps, writes
from holdfast.store.postgres import connection as connections
from holdfast.store.postgres import faults
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.row_refused import RowRefused
from tests.store.postgres import conftest, verbs
from tests.store.postgres.conftest import MakeStore
from tests.support.deadline import until

Admin = Callable[[str], list[tuple[Any, ...]]]
PASSWORD = "hunter2%2Fsecret"


def failure(work: Callable[[], object]) -> HoldfastError:
    with pytest.raises(HoldfastError) as caught:
        work()
    return caught.value


def test_nobody_listens_there(make_store: MakeStore) -> None:
    store = make_store(f"postgresql://me:{PASSWORD}@127.0.0.1:1/db")
    error = failure(lambda: store.run(verbs.bodies()))
    assert isinstance(error, StoreUnavailable)
    assert error.retryable
    assert not error.silent
    assert not error.commit_unknown
    assert "me:***@127.0.0.1:1/db" in str(error)
    assert "hunter2" not in "".join(traceback.format_exception(error))


def test_a_database_or_role_that_does_not_exist(url: str, make_store: MakeStore) -> None:
    nowhere = make_store(url.rpartition("/")[0] + "/nowhere")
    nobody = make_store(url.replace("holdfast@", "nobody@"))
    for store, words in ((nowhere, '"nowhere" does not exist'), (nobody, '"nobody" does not')):
        error = failure(lambda store=store: store.run(verbs.bodies()))  # type: ignore[misc]
        assert isinstance(error, ConfigError)
        assert words in str(error)


def test_a_store_that_has_worked_is_not_misconfigured() -> None:
    error = psycopg.OperationalError('FATAL:  database "gone" does not exist')
    now = faults.translate_connect(error, address="somewhere", worked_before=False)
    later = faults.translate_connect(error, address="somewhere", worked_before=True)
    assert isinstance(now, ConfigError)
    assert isinstance(later, StoreUnavailable)
    assert not later.silent


@pytest.mark.parametrize(
    ("words", "kind", "silent"),
    [
        ('FATAL:  password authentication failed for user "me"', ConfigError, None),
        ("fe_sendauth: no password supplied", ConfigError, None),
        ('FATAL:  no pg_hba.conf entry for host "1.2.3.4"', ConfigError, None),
        ("FATAL:  the database system is starting up", StoreUnavailable, False),
        ('FATAL:  too many connections for role "me"', StoreUnavailable, False),
        ("FATAL:  sorry, too many clients already", StoreUnavailable, False),
        ("connection timeout expired", StoreUnavailable, True),
        ("No route to host", StoreUnavailable, True),
        ("[Errno -3] Temporary failure in name resolution", StoreUnavailable, True),
        ("FATALE:  il database è in fase di avvio", StoreUnavailable, True),
    ],
)
def test_a_refused_connection(words: str, kind: type[HoldfastError], silent: bool | None) -> None:
    error = faults.translate_connect(
        psycopg.OperationalError(f"connection failed: {words}"),
        address="postgresql://me:***@db/x",
        worked_before=False,
    )
    assert type(error) is kind
    if isinstance(error, StoreUnavailable):
        assert error.silent is silent


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2/x@db:5432/app",
        "postgresql://db/app?nonsense=1&password=hunter2",
        "postgresql://me:hunter2@db/app?pasword=x",
    ],
)
def test_a_malformed_url_is_refused_without_its_password(make_store: MakeStore, url: str) -> None:
    error = failure(lambda: make_store(url))
    assert isinstance(error, ConfigError)
    assert "hunter2" not in "".join(traceback.format_exception(error))


def test_a_malformed_url_without_a_secret_says_what_is_wrong(make_store: MakeStore) -> None:
    error = failure(lambda: make_store("postgresql://db/app?nonsense=1"))
    assert isinstance(error, ConfigError)
    assert "nonsense" in str(error)
    error = failure(lambda: make_store("postgresql://me:hunter2@db/app?nonsense=1"))
    assert "nonsense" in str(error)
    assert "hunter2" not in str(error)


def test_a_missing_table_is_a_matter_of_the_schema(store: PostgresStore) -> None:
    error = failure(lambda: store.run(verbs.value("absent")))
    assert isinstance(error, SchemaMismatch)
    assert "holdfast db migrate" in str(error)


def test_a_refused_row_does_not_show_what_it_held(store: PostgresStore, admin: Admin) -> None:
    admin("ALTER TABLE notes ADD CONSTRAINT short CHECK (length(body) < 5)")
    body = "a very {} body".format("secret")
    error = failure(lambda: store.run(verbs.put(body)))
    assert type(error) is RowRefused
    assert not error.retryable
    assert "short" in str(error)
    assert "very secret" not in "".join(traceback.format_exception(error))


def test_a_nul_is_refused_by_the_server(store: PostgresStore) -> None:
    error = failure(lambda: store.run(verbs.put("a\x00b")))
    assert type(error) is RowRefused


def test_a_statement_that_takes_too_long(url: str, make_store: MakeStore) -> None:
    store = make_store(url, statement_timeout=0.05)
    error = failure(lambda: store.run(verbs.value("sleep", seconds=10.0)))
    assert isinstance(error, StoreUnavailable)
    assert not error.silent
    assert "57014" in str(error)


def test_a_lock_that_takes_too_long(url: str, make_store: MakeStore) -> None:
    store = make_store(url, lock_timeout=0.05)
    store.run(verbs.put("a"))
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM notes FOR UPDATE")
        row = other.execute("SELECT id FROM notes").fetchone()
        assert row is not None
        error = failure(lambda: store.run(verbs.value("lock", id=row[0].bytes)))
    assert isinstance(error, StoreUnavailable)
    assert "55P03" in str(error)


def test_a_read_only_server_says_so_and_the_connection_is_dropped(
    url: str, make_store: MakeStore, admin: Admin
) -> None:
    [(name,)] = admin("SELECT current_database()")
    admin(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    store = make_store(url)
    before = store.run(verbs.value("backend"))
    error = failure(lambda: store.run(verbs.put("a")))
    assert isinstance(error, StoreUnavailable)
    assert not error.silent
    assert not error.commit_unknown
    assert "25006" in str(error)
    assert store.probe().read_only is True
    # What follows finds a server that was promoted meanwhile.
    [(name,)] = admin("SELECT current_database()")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
    failure(lambda: store.run(verbs.put("a")))
    assert store.run(verbs.put("a")) == 1
    assert store.run(verbs.value("backend")) != before


@writes
def lock_both(first: bytes, second: bytes, meet: Callable[[], object]) -> Steps[str]:
    yield Statement("lock", {"id": first})
    meet()
    yield Statement("lock", {"id": second})
    return "done"


def test_a_deadlock_is_a_conflict_and_is_tried_again(store: PostgresStore, admin: Admin) -> None:
    ids = [verbs.new_id(), verbs.new_id()]
    for id in ids:
        admin(f"INSERT INTO notes VALUES ('{id.hex()}', 'x')")
    both_hold_one = threading.Barrier(2, timeout=20)
    answers: list[str] = []
    tries: list[int] = []

    def once(meet: bool) -> Callable[[], object]:
        return both_hold_one.wait if meet else lambda: None

    def work(first: bytes, second: bytes) -> None:
        begun = 0

        def make() -> Op[str]:
            nonlocal begun
            begun += 1
            return lock_both(first, second, once(begun == 1))

        answers.append(store.attempt(make))
        tries.append(begun)

    threads = [threading.Thread(target=work, args=pair) for pair in (ids, ids[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == ["done", "done"]
    assert sorted(tries) == [1, 2]


def test_attempts_are_bounded_and_other_failures_are_not_repeated(store: PostgresStore) -> None:
    made: list[int] = []

    def refuse() -> Op[object]:
        made.append(1)
        return verbs.value("fail", divisor=0)

    failure(lambda: store.attempt(refuse))
    assert len(made) == 1


def test_a_table_changed_under_a_prepared_statement(
    url: str, make_store: MakeStore, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(conftest.TEXTS, "star", "SELECT * FROM notes")
    store = make_store(url)
    store.run(verbs.value("star"))
    admin("ALTER TABLE notes ADD COLUMN more int")
    error = failure(lambda: store.run(verbs.value("star")))
    assert isinstance(error, StoreUnavailable)
    store.run(verbs.value("star"))


def test_a_transaction_that_idles_too_long_is_known_to_be_lost(
    url: str, make_store: MakeStore, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Far away, psycopg's pipeline ends in a Flush, which makes the server forget that it waits
    # for a transaction to go on (until the next statement). A busy machine seems far.
    monkeypatch.setattr(connections, "FAR_S", math.inf)
    store = make_store(url, statement_timeout=0.1)
    waiting = (
        "SELECT 1 FROM pg_stat_activity"
        " WHERE state LIKE 'idle in%' AND datname = current_database()"
    )
    error = failure(
        lambda: store.run(verbs.put_each(["a"], lambda: until(lambda: not admin(waiting))))
    )
    assert isinstance(error, StoreUnavailable)
    assert not error.commit_unknown
    assert store.run(verbs.bodies()) == []


def test_all_connections_busy(
    url: str, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(url, max_connections=2)
    monkeypatch.setattr(store._pool, "_patience", 0.05)
    store.run(verbs.put("a"))
    error: list[HoldfastError] = []

    def meanwhile() -> None:
        error.append(failure(lambda: store.run(verbs.bodies())))

    store.run(verbs.put_each(["b"], meanwhile))
    assert isinstance(error[0], StoreUnavailable)
    assert "max_connections" in str(error[0])


def test_a_closed_store_says_so(url: str, make_store: MakeStore) -> None:
    store = make_store(url)
    store.run(verbs.put("a"))
    store.close()
    store.close()
    assert "closed" in str(failure(lambda: store.run(verbs.bodies())))
    store.hint(Channel.READY, ["a hint never raises"])


def test_closing_leaves_no_session_behind(url: str, make_store: MakeStore, admin: Admin) -> None:
    store = make_store(url)
    store.run(verbs.put("a"))
    store.close()
    sessions = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'holdfast'"
    until(lambda: not admin(sessions + " AND datname = current_database()"))
