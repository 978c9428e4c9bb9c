"""A watcher of a worker: found by its name, and unable to do harm."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from holdfast.core.errors import ConfigError
from holdfast.core.watching import ClaimFacts, EndedFacts, Handled
from holdfast.runtime.watch import WorkerWatch, load_watch

ONE = Handled(bytes(16), "t", "q", None)


class Heard:
    def __init__(self) -> None:
        self.claims: list[ClaimFacts] = []
        self.writes: list[EndedFacts] = []

    def claimed(self, claim: ClaimFacts) -> None:
        self.claims.append(claim)

    def ended(self, write: EndedFacts) -> None:
        self.writes.append(write)


class Broken(Heard):
    def claimed(self, claim: ClaimFacts) -> None:
        raise ValueError("no exporter\nanywhere")


def test_it_is_told_what_was_claimed_and_written() -> None:
    heard = Heard()
    watch = WorkerWatch(heard)
    watch.claimed("q", watch.begin(), lambda: [ONE], None)
    watch.ended(watch.begin(), lambda: [ONE], "StoreUnavailable")
    (claim,), (write,) = heard.claims, heard.writes
    assert (claim.queue, claim.tasks, claim.error) == ("q", [ONE], None)
    assert (write.tasks, write.error) == ([ONE], "StoreUnavailable")
    assert claim.began_ns <= write.began_ns
    assert claim.took_ns >= 0


def test_nobody_watches_and_nothing_is_asked() -> None:
    def none() -> list[Handled]:
        raise AssertionError("nobody wants to know")

    watch = load_watch(None)
    assert watch.begin() == 0
    watch.claimed("q", watch.begin(), none, None)
    watch.ended(watch.begin(), none, None)


def test_one_that_fails_is_complained_of_once(caplog: pytest.LogCaptureFixture) -> None:
    watch = WorkerWatch(Broken())
    with caplog.at_level(logging.WARNING, "holdfast.worker"):
        for _ in range(3):
            watch.claimed("q", watch.begin(), lambda: [ONE], None)
    (said,) = caplog.messages
    assert "ValueError: no exporter\\nanywhere" in said


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("telemetry", "give MODULE:FUNCTION"),
        (":watch", "give MODULE:FUNCTION"),
        (7, "give MODULE:FUNCTION as text"),
        ("no_such_module:watch", "No module named 'no_such_module'"),
        ("made:missing", "has no attribute 'missing'"),
        ("made:fails", "RuntimeError: no collector"),
        ("made:wrong", "wrong() gave int, which has no claimed() and ended()"),
    ],
)
def test_one_that_cannot_be_had_is_refused(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made.py").write_text(
        "def fails():\n    raise RuntimeError('no collector')\ndef wrong():\n    return 1\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=f"watcher={name!r} is not usable") as refused:
        load_watch(name)
    assert why in str(refused.value)
