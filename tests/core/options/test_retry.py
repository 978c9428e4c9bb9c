from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import ConfigError
from holdfast.core.options.retry import Backoff, Retry
from tests.core.quick import quick

DELAYS = st.floats(0, 1e6, allow_nan=False)
CHANCE = st.floats(0, 1, exclude_max=True)


def never() -> float:
    raise AssertionError("only jitter draws")


@quick
@given(DELAYS, st.floats(0, 1e6), st.integers(1, 40))
def test_the_formulas(delay: float, cap: float, n: int) -> None:
    def policy(backoff: Backoff) -> Retry:
        return Retry(50, delay=delay, max_delay=cap, backoff=backoff)

    d, m = policy("constant").delay, policy("constant").max_delay
    assert d is not None
    assert policy("constant").delay_for(n, never) == min(d, m)
    assert policy("linear").delay_for(n, never) == min(d * n, m)
    assert policy("exponential").delay_for(n, never) == min(d * 2 ** (n - 1), m)


@quick
@given(DELAYS, st.integers(1, 40), CHANCE)
def test_jitter_draws_from_nothing_to_the_capped_delay(d: float, n: int, chance: float) -> None:
    retry = Retry(50, delay=d, max_delay=100, backoff="exponential_jitter")
    ceiling = Retry(50, delay=d, max_delay=100).delay_for(n, never)
    assert ceiling is not None
    assert ceiling <= 100
    assert retry.delay_for(n, lambda: chance) == ceiling * chance


def test_the_series_of_the_documentation() -> None:
    def series(backoff: Backoff, **more: Any) -> list[float | None]:
        retry = Retry(5, delay=10, backoff=backoff, max_delay=60, **more)
        return [retry.delay_for(n, lambda: 0.5) for n in range(1, 6)]

    assert series("constant") == [10, 10, 10, 10, 10]
    assert series("linear") == [10, 20, 30, 40, 50]
    assert series("exponential") == [10, 20, 40, 60, 60]
    assert series("exponential_jitter") == [5, 10, 20, 30, 30]


def test_without_a_delay_the_retry_is_immediate() -> None:
    assert Retry(3).delay_for(1, never) is None


def test_a_thousand_retries_do_not_overflow() -> None:
    assert Retry(10_000, delay=1).delay_for(10_000, never) == 3600


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_retries": -1}, "must be a whole number, 0 or more"),
        ({"max_retries": 1.5}, "must be a whole number, 0 or more"),
        ({"max_retries": True}, "must be a whole number, 0 or more"),
        ({"max_retries": "3"}, "must be a whole number, 0 or more"),
        ({"max_retries": 10**9}, "too many"),
        ({"max_retries": 3, "delay": -1}, "^delay=-1"),
        ({"max_retries": 3, "delay": float("nan")}, "^delay=nan"),
        ({"max_retries": 3, "max_delay": None}, "^max_delay=None"),
        ({"max_retries": 3, "backoff": "fibonacci"}, "use one of constant, linear"),
        ({"max_retries": 3, "on": 5}, "must be a tuple of exception classes and error codes"),
        ({"max_retries": 3, "on": (5,)}, "takes exception classes and error codes, not 5"),
        ({"max_retries": 3, "on": (int,)}, "takes exception classes and error codes"),
        ({"max_retries": 3, "never_on": ("",)}, "takes exception classes and error codes"),
        ({"max_retries": 3, "on": ("WORKER_CRASHED",)}, "use on_crash and max_crashes"),
    ],
)
def test_nonsense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Retry(**options)


def test_a_single_class_or_code_will_do() -> None:
    assert Retry(1, on=ValueError).on == (ValueError,)  # type: ignore[arg-type]
    assert Retry(1, on="BUSY").on == ("BUSY",)  # type: ignore[arg-type]


def test_of() -> None:
    assert Retry.of(None) is None
    assert Retry.of(3) == Retry(3)
    assert Retry.of(Retry(2)) == Retry(2)
    for bad in (True, "3", 1.5, [3]):
        with pytest.raises(ConfigError, match="is not a retry policy"):
            Retry.of(bad)  # type: ignore[arg-type]


def test_exceptions_match_with_their_subclasses() -> None:
    retry = Retry(3, on=(OSError, "RATE_LIMITED"), never_on=(FileNotFoundError,))
    assert retry.lists_exception(ConnectionError(), "UNHANDLED_EXCEPTION")
    assert not retry.lists_exception(FileNotFoundError(), "UNHANDLED_EXCEPTION")
    assert not retry.lists_exception(ValueError(), "UNHANDLED_EXCEPTION")


def test_codes_match_by_name_and_only_if_listed() -> None:
    retry = Retry(3, on=(OSError, "RATE_LIMITED"))
    assert retry.lists_code("RATE_LIMITED")
    assert not retry.lists_code("OUT_OF_STOCK")
    assert not Retry(3).lists_code("RATE_LIMITED")
    assert not Retry(3, on=("A",), never_on=("A",)).lists_code("A")
    assert Retry(3, on=("UNHANDLED_EXCEPTION",)).lists_exception(
        ValueError(), "UNHANDLED_EXCEPTION"
    )


def test_the_default_lists_exceptions_but_not_exits() -> None:
    assert Retry(3).lists_exception(ValueError(), "UNHANDLED_EXCEPTION")
    assert not Retry(3).lists_exception(SystemExit(1), "TASK_EXITED")
    assert not Retry(3).lists_exception(KeyboardInterrupt(), "KEYBOARD_INTERRUPT")
    assert Retry(3, on=("TASK_EXITED",)).lists_exception(SystemExit(1), "TASK_EXITED")


def test_a_timeout_counts_as_listed_unless_refused() -> None:
    assert Retry(3, on=(ValueError,)).lists_timeout
    assert not Retry(3, never_on=("TASK_TIMEOUT",)).lists_timeout


def test_plain_data_and_back() -> None:
    full = Retry(
        3, delay=10, backoff="linear", max_delay=60, on=(TimeoutError, "BUSY"), never_on=("BAD",)
    )
    plain = full.as_dict()
    assert plain == {
        "max_retries": 3,
        "delay": 10,
        "backoff": "linear",
        "max_delay": 60,
        "on": ["builtins.TimeoutError", "BUSY"],
        "never_on": ["BAD"],
    }
    back = Retry.from_dict({**plain, "of_a_newer_version": 1})
    assert back.on == ("builtins.TimeoutError", "BUSY")
    assert back.as_dict() == plain
    assert Retry(3).as_dict() == {"max_retries": 3}
    assert Retry.from_dict({"max_retries": 3}) == Retry(3)


def test_seconds_are_kept_as_seconds() -> None:
    retry = Retry(1, delay=timedelta(minutes=1))  # type: ignore[arg-type]
    assert retry.delay == 60.0
