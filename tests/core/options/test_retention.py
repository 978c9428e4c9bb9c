from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.core.errors import ConfigError
from holdfast.core.options.retention import Retention


def test_the_defaults() -> None:
    kept = Retention()
    days = 86_400 * 1_000_000
    assert kept.keep_us("tasks") == 30 * days
    assert kept.keep_us("worker_states") == 7 * days
    assert kept.keep_us("workflows") == 30 * days
    assert kept.keep_us("logs") == 30 * days
    assert kept.keep_us("dead") is None


def test_durations_in_all_forms_are_the_same() -> None:
    forms = (Retention(tasks="12h"), Retention(tasks=43_200), Retention(tasks=timedelta(hours=12)))
    assert len(set(forms)) == 1


def test_none_keeps_for_ever() -> None:
    assert Retention(tasks=None).keep_us("tasks") is None


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Retention\(tasks\)='a month' is not a duration"):
        Retention(tasks="a month")
    with pytest.raises(ConfigError, match=r"Retention\(dead\)=-1"):
        Retention(dead=-1)
