"""Behind a transaction pooler nothing is left on the session."""

from __future__ import annotations

import pytest

from holdfast.store.op import Channel, Statement, Steps, alone, reads, writes
from holdfast.store.postgres.store import PostgresStore
from tests.store.postgres import conftest, verbs
from tests.store.postgres.conftest import MakeStore
from tests.support.deadline import eventually

PINS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "transaction_isolation": "read committed",
}


@pytest.fixture
def pooled(url: str, make_store: MakeStore) -> PostgresStore:
    return make_store(url, pooler=True)


def settings_of(names: list[str]) -> Steps[dict[str, str]]:
    found = {}
    for name in names:
        rows = yield Statement("setting", {"name": name})
        found[name] = rows[0][0]
    return found


def test_writes_bring_their_settings_along(pooled: PostgresStore) -> None:
    assert pooled.run(writes(settings_of)(list(PINS))) == PINS
    assert pooled.run(alone(settings_of)(list(PINS))) == PINS


def test_nothing_stays_behind(pooled: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conftest.TEXTS, "traces", "SELECT count(*) FROM pg_prepared_statements")
    for turn in range(10):
        pooled.run(verbs.put(f"a{turn}"))
        pooled.run(verbs.put_each([f"b{turn}", f"c{turn}"]))
        pooled.run(verbs.bodies())
    assert pooled.run(verbs.value("traces")) == 0
    after = pooled.run(reads(settings_of)(list(PINS)))
    assert after["plan_cache_mode"] == "auto"
    assert after["enable_seqscan"] == "on"
    assert after["statement_timeout"] == "0"


def test_hints_are_still_sent(pooled: PostgresStore, store: PostgresStore) -> None:
    with store.listen(Channel.READY) as listener:
        eventually(lambda: listener.wait(0.1) == {""})
        pooled.run(verbs.put_and_tell("a", "q"))
        eventually(lambda: "q" in listener.wait(0.1))
