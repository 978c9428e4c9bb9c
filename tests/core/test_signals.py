from __future__ import annotations

import copy
from datetime import timedelta

import pytest

from holdfast.core.errors import ConfigError, HoldfastError
from holdfast.core.signals import Abort, RetryLater, Snooze

SIGNALS = [RetryLater(), RetryLater(5, "busy"), Snooze(60), Abort("no such order")]


@pytest.mark.parametrize("signal", SIGNALS, ids=repr)
def test_signals_are_exceptions_but_no_errors(signal: Exception) -> None:
    assert not isinstance(signal, HoldfastError)
    twin = copy.copy(signal)
    assert (str(twin), vars(twin)) == (str(signal), vars(signal))


def test_what_they_carry() -> None:
    assert RetryLater().delay_us is None
    assert RetryLater(delay=5).delay_us == 5_000_000
    assert RetryLater(delay=timedelta(minutes=1)).delay_us == 60_000_000
    assert str(RetryLater(5, "busy")) == "busy"
    assert str(RetryLater(5)) == "the task asked to be run again"
    assert Snooze(0.5).delay_us == 500_000
    assert str(Snooze(60)) == "the task asked to be put aside for 60 s"
    assert str(Abort("no such order")) == "no such order"
    assert str(Abort()) == "the task aborted itself"


def test_nonsense_is_refused_where_it_is_raised() -> None:
    with pytest.raises(ConfigError, match=r"RetryLater\(delay\)=-1"):
        RetryLater(delay=-1)
    with pytest.raises(ConfigError, match=r"Snooze\(delay\)="):
        Snooze("a while")  # type: ignore[arg-type]
