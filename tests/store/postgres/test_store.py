"""Modes, commits and rollbacks of operations on our own connections."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.core.errors import StoreError
from holdfast.store.op import Statement, Steps, Table, alone, reads
from holdfast.store.postgres import connection as connection_module
from holdfast.store.postgres.store import PostgresStore
from tests.store.postgres import verbs
from tests.store.postgres.conftest import MakeStore

Admin = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(params=["near", "far", "pooler"])
def any_store(
    request: pytest.FixtureRequest,
    url: str,
    make_store: MakeStore,
    monkeypatch: pytest.MonkeyPatch,
) -> PostgresStore:
    """A store of each way to send: one by one, pipelined, without a session."""
    monkeypatch.setattr(
        connection_module, "FAR_S", -1.0 if request.param == "far" else float("inf")
    )
    return make_store(url, pooler=request.param == "pooler")


def test_each_mode_answers_and_commits(any_store: PostgresStore) -> None:
    assert any_store.run(verbs.put("a", "b")) == 2
    assert any_store.run(verbs.put_each(["c", "d"])) == 2
    assert any_store.run(verbs.put_together(["e", "f", "g"])) == 3
    assert any_store.run(verbs.bodies()) == list("abcdefg")


def test_a_write_is_one_transaction(any_store: PostgresStore, admin: Admin) -> None:
    seen: list[object] = []
    any_store.run(verbs.put_each(["a", "b"], lambda: seen.append(admin("SELECT * FROM notes"))))
    assert seen == [[]]
    first, second = any_store.run(verbs.values("transaction", "transaction"))
    assert first == second


def test_alone_commits_with_its_statement(store: PostgresStore, admin: Admin) -> None:
    seen: list[object] = []

    @alone
    def put_and_look() -> Steps[Any]:
        yield Statement("put", table=_one("a"))
        seen.extend(admin("SELECT body FROM notes"))
        return (yield Statement("bodies"))

    assert store.run(put_and_look()) == [("a",)]
    assert seen == [("a",)]


def _one(body: str) -> Table:
    return Table(verbs.COLUMNS, [(verbs.new_id(), body)])


def test_an_exception_of_the_verb_undoes_it(any_store: PostgresStore) -> None:
    def refuse() -> None:
        raise KeyError("the verb's own")

    with pytest.raises(KeyError, match="the verb's own"):
        any_store.run(verbs.put_each(["a"], refuse))
    assert any_store.run(verbs.bodies()) == []


def test_a_failing_statement_undoes_the_others(any_store: PostgresStore) -> None:
    for operation in (verbs.put_each(["a", ""]), verbs.put_together(["a", "", "b"])):
        with pytest.raises(StoreError, match="running put_"):
            any_store.run(operation)
    assert any_store.run(verbs.bodies()) == []
    # The connection was kept, and its prepared statements still work.
    assert any_store.run(verbs.put_together(["a", "b"])) == 2
    assert any_store.run(verbs.put_each(["c"])) == 1


def test_a_failing_read_leaves_the_connection_usable(any_store: PostgresStore) -> None:
    @reads
    def both() -> Steps[Any]:
        return (yield (Statement("fail", {"divisor": 0}), Statement("bodies")))

    @reads
    def again() -> Steps[Any]:
        return (yield (Statement("fail", {"divisor": 1}), Statement("bodies")))

    backend = any_store.run(verbs.value("backend"))
    for _ in range(3):
        with pytest.raises(StoreError, match="division by zero"):
            any_store.run(both())
    assert any_store.run(again()) == [[(1,)], []]
    assert any_store.run(verbs.value("backend")) == backend


def test_an_operation_that_asks_nothing_needs_no_transaction(store: PostgresStore) -> None:
    assert store.run(verbs.put_each([])) == 0


def test_the_session_is_ours(store: PostgresStore) -> None:
    expected = {
        "plan_cache_mode": "force_generic_plan",
        "enable_seqscan": "off",
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
        "enable_bitmapscan": "off",
        "jit": "off",
        "statement_timeout": "30s",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "30s",
        "transaction_isolation": "read committed",
        "application_name": "holdfast",
        "client_encoding": "UTF8",
        "synchronous_commit": "on",
    }
    found = {name: store.run(verbs.value("setting", name=name)) for name in expected}
    assert found == expected


def test_a_server_that_is_not_durable_is_made_so(
    url: str, make_store: MakeStore, admin: Admin
) -> None:
    [(name,)] = admin("SELECT current_database()")
    admin(f"ALTER DATABASE {name} SET synchronous_commit = off")
    admin(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    setting = verbs.value
    durable, fast = make_store(url), make_store(url, durable=False)
    assert durable.run(setting("setting", name="synchronous_commit")) == "on"
    assert fast.run(setting("setting", name="synchronous_commit")) == "off"
    assert durable.run(setting("setting", name="transaction_isolation")) == "read committed"
    admin(f"ALTER DATABASE {name} SET synchronous_commit = remote_apply")
    waiting = make_store(url)
    assert waiting.run(setting("setting", name="synchronous_commit")) == "remote_apply"


def test_the_url_may_choose_its_own_name(url: str, make_store: MakeStore) -> None:
    store = make_store(f"{url}?application_name=billing")
    assert store.run(verbs.value("setting", name="application_name")) == "billing"


def test_probe(store: PostgresStore) -> None:
    info = store.probe()
    assert int(info.version.split(".")[0]) >= 13
    assert info.encoding == "UTF8"
    assert info.read_only is False


def test_an_interrupt_in_the_middle_of_a_statement(store: PostgresStore) -> None:
    class Enough(Exception):
        pass

    def enough(*_: object) -> None:
        raise Enough

    backend = store.run(verbs.value("backend"))
    before = signal.signal(signal.SIGALRM, enough)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Enough):
            store.run(verbs.value("sleep", seconds=30.0))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # That connection still waits for its answer; nobody else gets it.
    assert store.run(verbs.value("backend")) != backend
    assert store.run(verbs.put("a")) == 1
