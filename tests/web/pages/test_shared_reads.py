"""Reads that pages share: asked for once in a moment, and forgotten when something is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.web.pages import shared_reads
from holdfast.web.pages.shared_reads import forget, shared, spared
from tests.web.client import WebClient
from tests.web.pages.budget import asked


def test_the_same_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Holdfast(f"sqlite:///{tmp_path / 'none.db'}")
    numbers = iter(range(100))

    async def ask() -> int:
        return next(numbers)

    def get(key: str, times: float = 1.0) -> int:
        return asyncio.run(shared(app, key, ask, times=times))

    monkeypatch.setattr(shared_reads, "FRESH_S", 60.0)
    assert [get("a"), get("a"), get("b")] == [0, 0, 1]
    forget(app)
    assert get("a") == 2
    forget(app)
    monkeypatch.setattr(shared_reads, "FRESH_S", 0.0)
    assert [get("a"), get("a", 10.0)] == [3, 4]


def test_what_takes_long_is_spared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Holdfast(f"sqlite:///{tmp_path / 'none.db'}")
    clock = [100.0]
    monkeypatch.setattr("holdfast.web.pages.shared_reads.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(shared_reads, "FRESH_S", 2.0)
    asked_at: list[float] = []

    def get(took: float) -> float:
        async def ask() -> float:
            asked_at.append(clock[0])
            clock[0] += took
            return asked_at[-1]

        return asyncio.run(spared(app, "list", ask))

    assert [get(0.001), get(0.001)] == asked_at
    slow = get(0.5)
    clock[0] += 24.0
    assert get(0.5) == slow
    clock[0] += 2.0
    assert get(0.5) > slow


def test_few_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Holdfast(f"sqlite:///{tmp_path / 'none.db'}")
    monkeypatch.setattr(shared_reads, "FRESH_S", 60.0)

    async def ask() -> int:
        return 1

    for number in range(1_000):
        asyncio.run(shared(app, number, ask))
    assert len(shared_reads._kept[app]) <= 200


def test_a_second_page_asks_for_less_until_something_is_done(
    app: Holdfast, web: Callable[..., WebClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_reads, "FRESH_S", 60.0)
    client = web(app)
    handle = app.send("some")

    def names() -> set[str]:
        with asked() as seen:
            assert client.get("/tasks").status_code == 200
        return set(seen.names)

    assert "counts" in names()
    assert "counts" not in names()
    assert client.post(f"/tasks/{handle.id}/cancel").status_code == 303
    assert "counts" in names()
