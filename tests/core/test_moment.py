from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import ConfigError
from holdfast.core.moment import Due, due, from_us, instant_us, span_us, to_us
from tests.core.quick import quick


@quick
@given(st.datetimes(timezones=st.just(UTC)))
def test_microseconds_and_back_are_exact(moment: datetime) -> None:
    assert from_us(to_us(moment)) == moment
    assert from_us(to_us(moment)).tzinfo is UTC


def test_a_moment_is_the_same_in_every_zone() -> None:
    berlin = datetime(2026, 7, 1, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=2)))
    assert to_us(berlin) == to_us(datetime(2026, 7, 1, 10, 0, 0, 1, tzinfo=UTC))
    assert to_us(datetime(1970, 1, 1, tzinfo=UTC)) == 0


def test_a_naive_datetime_is_refused() -> None:
    naive = datetime(2026, 7, 1)  # noqa: DTZ001
    with pytest.raises(ConfigError, match=r"run_at=.* has no time zone: use datetime\.now") as e:
        instant_us(naive, option="run_at")
    assert e.value.option == "run_at"
    with pytest.raises(ConfigError, match="has no time zone"):
        due(naive, option="delay")


def test_what_is_no_datetime_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a time"):
        instant_us(17, option="good_until")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("span", "us"),
    [
        (0, 0),
        (60, 60_000_000),
        (0.25, 250_000),
        (1e-6, 1),
        (timedelta(days=2, microseconds=3), 172_800_000_003),
        ("90s", 90_000_000),
        ("250ms", 250_000),
        ("1.5h", 5_400_000_000),
        ("30d", 2_592_000_000_000),
        ("2w", 1_209_600_000_000),
        (" 5 m ", 300_000_000),
    ],
)
def test_spans(span: float | timedelta | str, us: int) -> None:
    assert span_us(span, option="x") == us


@pytest.mark.parametrize(
    "span", ["", "soon", "1y", "-1s", "1h30m", float("nan"), float("inf"), None, True, [1], 10**400]
)
def test_what_is_no_span_is_refused(span: str) -> None:
    with pytest.raises(ConfigError, match="timeout="):
        span_us(span, option="timeout")


@pytest.mark.parametrize("span", [-1, -0.5, timedelta(seconds=-1), 1e12, timedelta(days=99999)])
def test_spans_out_of_range_are_refused(span: float) -> None:
    with pytest.raises(ConfigError, match="must be between 0 and 100 years"):
        span_us(span, option="delay")


def test_due() -> None:
    assert due(60, option="delay") == Due(delay_us=60_000_000)
    assert due(timedelta(seconds=1), option="delay") == Due(delay_us=1_000_000)
    assert due(0, option="delay") == Due()
    moment = datetime(2026, 7, 1, tzinfo=UTC)
    assert due(moment, option="delay") == Due(run_at=to_us(moment))
    with pytest.raises(ConfigError, match="give seconds, a timedelta or an aware datetime"):
        due("60", option="delay")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=14))),
    ],
)
def test_a_moment_that_has_no_place_in_utc_is_refused(moment: datetime) -> None:
    with pytest.raises(ConfigError, match="outside the years 1 to 9999"):
        instant_us(moment, option="run_at")
    assert instant_us(datetime.max.replace(tzinfo=UTC), option="run_at")
