"""The first hint leaves at once, the rest of a burst as one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.store.op import Channel
from holdfast.store.postgres import hints
from holdfast.store.postgres.hints import Limiter, Note, channel_name
from holdfast.store.postgres.store import PostgresStore
from tests.store.postgres import verbs
from tests.store.postgres.conftest import MakeStore
from tests.support.deadline import until
from tests.support.proxy import Proxy

READY = "holdfast_ready"


class Sent(list[Note]):
    def __call__(self, notes: Sequence[Note]) -> None:
        self.extend(notes)


def sends_hints() -> bool:
    """Whether a thread for that is there."""
    return any(thread.name == "holdfast-hints" for thread in threading.enumerate())


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
def limiter(sent: Sent) -> Iterator[Limiter]:
    limiter = Limiter(sent, None)
    yield limiter
    limiter.close()


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that does not end by itself."""
    monkeypatch.setattr(hints, "WINDOW_S", 1000.0)


@pytest.mark.usefixtures("endless")
def test_the_first_is_due_and_the_next_is_not(limiter: Limiter) -> None:
    assert limiter.due(Channel.READY, ["a", "b", "a"]) == ["a", "b"]
    assert limiter.due(Channel.READY, ["a"]) == []
    assert limiter.due(Channel.READY, ["c", "b"]) == ["c"]
    assert limiter.due(Channel.DONE, [""]) == [""]
    assert limiter.due(Channel.DONE, [""]) == []


def test_a_burst_is_answered_by_one_more(limiter: Limiter, sent: Sent) -> None:
    assert limiter.due(Channel.READY, ["a"]) == ["a"]
    for _ in range(50):
        if not limiter.due(Channel.READY, ["a"]):
            limiter.owe(Channel.READY, ["a"])
    until(lambda: sent)
    assert set(sent) == {(READY, "a")}
    assert len(sent) <= 3


def test_after_the_window_the_commit_carries_it_again(limiter: Limiter) -> None:
    limiter.due(Channel.READY, ["a"])
    until(lambda: limiter.due(Channel.READY, ["a"]))


def test_what_is_owed_without_a_hint_before_leaves_at_once(limiter: Limiter, sent: Sent) -> None:
    limiter.owe(Channel.READY, ["a", "b"])
    until(lambda: len(sent) == 2)


@pytest.mark.usefixtures("endless")
def test_closing_pays_what_is_owed(sent: Sent) -> None:
    limiter = Limiter(sent, None)
    limiter.due(Channel.READY, ["a"])
    limiter.owe(Channel.READY, ["a"])
    assert sent == []
    limiter.close()
    assert sent == [(READY, "a")]
    limiter.owe(Channel.READY, ["b"])
    limiter.close()
    assert sent == [(READY, "a")]


def test_the_thread_ends_when_nothing_is_owed(
    limiter: Limiter, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "LINGER_S", 0.01)

    for count in (1, 2):
        limiter.owe(Channel.READY, [f"queue-{count}"])
        until(lambda: not sends_hints() and len(sent) == count)  # noqa: B023 - called at once


def test_what_is_remembered_is_bounded(limiter: Limiter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "WINDOW_S", 0.0)
    for number in range(5000):
        limiter.due(Channel.READY, [str(number)])
    assert len(limiter._sent) <= hints._REMEMBERED


def test_channels_of_schemas_differ_and_fit() -> None:
    schemas = [None, "a", "b", "x" * 63, "x" * 62 + "y"]
    names = {channel_name(channel, schema) for channel in Channel for schema in schemas}
    assert len(names) == 2 * len(schemas)
    assert max(map(len, names)) <= 63


def test_a_commit_carries_the_first_hint_and_owes_the_second(store: PostgresStore) -> None:
    with store.listen(Channel.READY) as listener:
        until(lambda: listener.wait(0.1) == {""})
        carried = [store.run(verbs.put_and_tell(f"{n}", "images", "mail")) for n in range(5)]
        assert carried[0] == 2
        heard: set[str] = set()

        def both() -> bool:
            heard.update(listener.wait(0.1))
            return {"images", "mail"} <= heard

        until(both)
        # The last commit's task has a hint that was sent after it, carried or owed.
        store.run(verbs.put_and_tell("last", "images"))
        until(lambda: "images" in listener.wait(0.1))


def test_a_name_that_no_hint_can_carry_costs_no_commit(store: PostgresStore) -> None:
    """The server refuses so long a payload, and with it the transaction."""
    with store.listen(Channel.READY) as listener:
        until(lambda: listener.wait(0.1) == {""})
        store.run(verbs.put_and_tell("x", "q" * 8_000))
        until(lambda: listener.wait(0.1) == {""}, what="everybody to be told to look")
    assert store.run(verbs.bodies()) == ["x"]


def test_a_hint_for_a_dead_server_is_lost_and_disturbs_nobody(
    url: str,
    make_store: MakeStore,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(hints, "LINGER_S", 0.01)
    with Proxy.to(url) as proxy:
        store = make_store(proxy.url, connect_timeout=0.5)
        store.run(verbs.put("a"))
    store.hint(Channel.READY, ["q"])
    # The thread has tried to send it, and ended; what it raised would fail this test. That the
    # server is away is logged once, by whoever meets it first, and nothing of the hint.
    until(lambda: not sends_hints())
    (told,) = caplog.records
    assert "cannot connect" in told.getMessage()
    with pytest.raises(StoreUnavailable):
        store.run(verbs.put("b"))


def test_a_hint_after_closing_begins_nothing(store: PostgresStore) -> None:
    store.close()
    store.hint(Channel.DONE)
    assert not sends_hints()
