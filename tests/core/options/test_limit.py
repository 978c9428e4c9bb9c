"""`Limit`: what may be written, what it means, and how it is stored."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.options.limit import Limit, Rate, Rule, decode, encode, read, rules


@pytest.mark.parametrize(
    ("rate", "every_us"),
    [
        ("10/s", 100_000),
        ("10/second", 100_000),
        ("10/seconds", 100_000),
        ("60/m", 1_000_000),
        ("60/minute", 1_000_000),
        ("1000/h", 3_600_000),
        ("1/hour", 3_600_000_000),
        ("1/d", 86_400_000_000),
        ("2 / days", 43_200_000_000),
    ],
)
def test_a_rate_is_a_number_and_a_unit(rate: str, every_us: float) -> None:
    assert rules([Limit(rate=rate)]).whole == Rule(None, (Rate(every_us, 1),))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"concurrency": 0},
        {"concurrency": -1},
        {"concurrency": True},
        {"concurrency": "3"},
        {"concurrency": 1.5},
        {"concurrency": 10**12},
        {"rate": "fast"},
        {"rate": "0/s"},
        {"rate": "-1/s"},
        {"rate": "1/fortnight"},
        {"rate": "1/ss"},
        {"rate": 10},
        {"rate": "10\x00/s"},
        {"rate": "\ud800/s"},
        {"rate": "9" * 500 + "/s"},
        {"rate": "1/s", "burst": 0},
        {"rate": "1/s", "burst": 1.5},
        {"concurrency": 1, "burst": 5},
        {"per_key": 3},
        {"per_key": Limit(per_key=Limit(concurrency=1))},
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_written(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Limit(**given)


def test_several_limits_hold_together() -> None:
    whole, each = rules(
        [
            Limit(concurrency=5, rate="10/s"),
            Limit(concurrency=3, rate="60/m", burst=7, per_key=Limit(concurrency=1)),
        ]
    )
    assert whole == Rule(3, (Rate(100_000, 1), Rate(1_000_000, 7)))
    assert each == Rule(1)


def test_one_or_several_or_none_may_be_given() -> None:
    one = Limit(concurrency=1)
    assert read(None) == ()
    assert read(one) == read([one]) == (one,)
    for wrong in (3, "10/s", [one, 3], [one] * 11):
        with pytest.raises(ConfigError, match="limit"):
            read(wrong)


def test_limits_are_stored_as_they_were_written() -> None:
    given = (
        Limit(concurrency=10, rate="100/minute", burst=10, per_key=Limit(concurrency=1)),
        Limit(rate="1000/h"),
    )
    text = encode(given)
    assert text == (
        '[{"concurrency":10,"rate":"100/minute","burst":10,"per_key":{"concurrency":1}},'
        '{"rate":"1000/h"}]'
    )
    assert decode(text) == given
    assert decode(encode(())) == ()


@pytest.mark.parametrize(
    "text",
    ["", "null", "3", "{}", "[3]", '[{"rate":"x"}]', "[{}]", '[{"concurrency":"1"}]', "[" * 5000],
)
def test_a_text_that_is_no_limits_is_an_error(text: str) -> None:
    with pytest.raises(PayloadError, match="no limits"):
        decode(text)


def test_what_newer_code_has_added_is_ignored() -> None:
    assert decode('[{"concurrency":2,"colour":"red"}]') == (Limit(concurrency=2),)


def test_an_operator_reads_a_limit_as_a_sentence() -> None:
    limit = Limit(concurrency=10, rate="100/minute", burst=10, per_key=Limit(concurrency=1))
    assert str(limit) == "10 at a time, 100/minute (burst 10), per key 1 at a time"
