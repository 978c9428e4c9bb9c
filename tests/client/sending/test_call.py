from __future__ import annotations

from typing import Any

import pytest

from holdfast.client.sending.call import Fingerprinter
from holdfast.core.records import Submission

SEND: dict[str, Any] = {
    "task_name": "resize",
    "version": 1,
    "queue_name": "default",
    "priority": 50,
    "args": "[1]",
    "kwargs": "{}",
}


def fingerprint(*, unique_key: str | None = None, **asked: Any) -> str:
    asked_for = Submission(id=b"", enqueue_sha="", sent_at=0, **asked)
    return Fingerprinter(asked_for)(asked_for.args, asked_for.kwargs, unique_key)


def test_the_same_send_has_the_same_fingerprint() -> None:
    assert fingerprint(**SEND) == fingerprint(**SEND)
    assert len(fingerprint(**SEND)) == 64


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task_name", "crop"),
        ("version", 2),
        ("queue_name", "images"),
        ("priority", 1),
        ("args", "[2]"),
        ("kwargs", '{"a":1}'),
        ("delay_us", 5),
        ("run_at", 5),
        ("good_until", 5),
        ("good_for_us", 5),
        ("task_options", '{"max_crashes":1}'),
        ("tags", '["a"]'),
        ("unique_key", "user:1"),
    ],
)
def test_everything_the_caller_asked_for_counts(field: str, value: object) -> None:
    assert fingerprint(**SEND) != fingerprint(**{**SEND, field: value})


def test_fields_do_not_run_into_each_other() -> None:
    assert fingerprint(**SEND, delay_us=5) != fingerprint(**SEND, run_at=5)
    joined = {**SEND, "args": "[1]{}", "kwargs": ""}
    assert fingerprint(**SEND) != fingerprint(**joined)


def test_it_does_not_change_between_releases() -> None:
    """A send may be repeated after an upgrade: change this only with a migration."""
    expected = "a3705ed30d874999667e93c1f680ddceb4b8301904fef94a8d752315995ce11b"
    assert fingerprint(**SEND) == expected
