"""Limits and keys from Python."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import ConfigError, Holdfast, Limit, PayloadError
from holdfast.store.verbs import limited_claims, limits
from holdfast.store.verbs.claims import Request
from tests.client.conftest import Hands

ONE = Limit(concurrency=1)


def test_the_limits_of_a_queue_are_listed(app: Holdfast) -> None:
    app.control.queues.limit("mail", [ONE, Limit(rate="5/s")], by="ann")
    asyncio.run(app.control.queues.afair("mail", False))
    (mail,) = app.control.queues.list()
    assert (mail.name, list(mail.limits), mail.fair) == ("mail", [ONE, Limit(rate="5/s")], False)
    asyncio.run(app.control.queues.alimit("mail", None))
    app.control.queues.fair("mail")
    (mail,) = asyncio.run(app.control.queues.alist())
    assert (list(mail.limits), mail.fair) == ([], True)


def test_a_task_is_limited_whatever_its_code_says(app: Holdfast) -> None:
    @app.task("t", limit=Limit(concurrency=5))
    def t() -> None: ...

    t.send()
    t.send()
    app.control.tasks.limit("t", ONE)
    assert app.worker().run_until_idle() == 2
    asyncio.run(app.control.tasks.alimit("t", None))


def test_what_a_limit_holds_back_is_left_alone(app: Holdfast) -> None:
    @app.task("slow", limit=Limit(rate="1/h", burst=2))
    def slow() -> None: ...

    for _ in range(3):
        slow.send()
    assert app.worker().run_until_idle() == 2
    assert app.worker().run_until_idle() == 0


@pytest.mark.parametrize("limit", [3, "10/s", [ONE, None], {"concurrency": 1}])
def test_what_is_no_limit_is_refused(app: Holdfast, limit: Any) -> None:
    with pytest.raises(ConfigError, match="Limit"):
        app.control.queues.limit("q", limit)
    with pytest.raises(ConfigError, match="Limit"):
        app.control.tasks.limit("t", limit)


def test_names_are_checked(app: Holdfast) -> None:
    for name in ("", "a b", "x" * 256, "\x00"):
        with pytest.raises(ConfigError):
            app.control.queues.limit(name, ONE)
        with pytest.raises(ConfigError):
            app.control.tasks.limit(name, ONE)
    with pytest.raises(ConfigError):
        app.control.queues.fair("q", 1)  # type: ignore[arg-type]


def test_keys_are_made_from_arguments_or_given(app: Holdfast, hands: Hands) -> None:
    @app.task("sync", concurrency_key="{tenant}")
    def sync(tenant: str | None, force: bool = False) -> None: ...

    assert sync.send("acme").info().concurrency_key == "acme"
    assert sync.send(tenant="bolt").info().concurrency_key == "bolt"
    assert sync.send(None).info().concurrency_key is None
    assert sync.options(concurrency_key="x").send("acme").info().concurrency_key == "x"
    assert sync.options(concurrency_key=None).send("acme").info().concurrency_key is None
    many = sync.send_many([("a",), ("b",)])
    assert [handle.info().concurrency_key for handle in many] == ["a", "b"]
    assert app.options(concurrency_key="k").send("sync", "a").info().concurrency_key == "k"
    with pytest.raises(PayloadError, match="concurrency key"):
        sync.send("x" * 300)
    with pytest.raises(ConfigError, match="concurrency_key"):
        sync.options(concurrency_key="")


def test_keys_take_turns_in_a_worker_of_this_process(app: Holdfast) -> None:
    order: list[str] = []

    @app.task("turn", concurrency_key="{tenant}")
    def turn(tenant: str) -> None:
        order.append(tenant)

    turn.send_many([("big",)] * 3)
    turn.send("small")
    assert app.worker().run_until_idle() == 4
    assert order == ["big", "small", "big", "big"]


def test_why_says_which_limit_who_holds_it_and_until_when(app: Holdfast, hands: Hands) -> None:
    @app.task("t", concurrency_key="{who}")
    def t(who: str) -> None: ...

    each = Limit(concurrency=1, rate="1/h")
    app.control.queues.limit("default", Limit(concurrency=1, per_key=each))
    held, waiting, other = t.send("ann"), t.send("ann"), t.send("bob")
    book = app._access.run(limits.book)
    request = Request(bytes(16), "w", "default", ["t@1"], 1, 60_000_000)
    claimed = app._access.run(lambda: limited_claims.claim_keys(request, book))
    assert [task.id for task in claimed.claimed.tasks] == [held.id.bytes]
    said = str(waiting.why())
    assert f"the limit of queue 'default' is reached: 1 at a time, held by {held.id}" in said
    assert "the limit of queue 'default' for key 'ann' is reached" in said
    assert "the rate of queue 'default' for key 'ann' lets the next begin at" in said
    assert "its concurrency key 'ann' takes turns with 'bob'" in said
    assert "for key" not in str(other.why())
