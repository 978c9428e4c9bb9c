"""Schedules in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.core.schedules.timing import Cron, When, read
from holdfast.core.schedules.words import in_words


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("30 2 * * *", "at 02:30 every day (Europe/Berlin)"),
        ("@daily", "at 00:00 every day (Europe/Berlin)"),
        ("*/5 * * * *", "every fifth minute of every hour (Europe/Berlin)"),
        ("* * * * * *", "every second (Europe/Berlin)"),
        ("*/2 * * * * *", "every other second of every minute (Europe/Berlin)"),
        ("0 */2 * * *", "at minute 0 past every other hour (Europe/Berlin)"),
        (timedelta(minutes=5), "every 5 min"),
        (timedelta(seconds=2), "every 2 s"),
        (timedelta(hours=36), "every 1 d 12 h"),
        (datetime(2027, 1, 1, tzinfo=UTC), "once, at 2027-01-01 00:00:00+00:00"),
    ],
)
def test_in_words(when: When, words: str) -> None:
    assert in_words(read(when, "Europe/Berlin")) == words


def test_what_has_no_words_is_shown_as_it_is() -> None:
    assert in_words(Cron("nonsense")) == "nonsense (UTC)"
