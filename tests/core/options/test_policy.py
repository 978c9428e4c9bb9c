from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import PayloadError
from holdfast.core.options.policy import Policy
from holdfast.core.options.retry import Retry
from holdfast.core.payload.codec import decode
from tests.core.quick import quick

SECONDS = st.none() | st.floats(0.001, 1e6).map(lambda s: round(s, 3))
RETRIES = st.builds(
    Retry,
    st.integers(0, 100),
    delay=st.none() | st.integers(0, 1000).map(float),
    backoff=st.sampled_from(["constant", "linear", "exponential", "exponential_jitter"]),
    max_delay=st.integers(0, 10_000).map(float),
    on=st.lists(st.sampled_from(["A", "B"]), unique=True).map(tuple),
)
POLICIES = st.builds(
    Policy,
    retry=st.none() | RETRIES,
    timeout=SECONDS,
    max_heartbeat_interval=SECONDS,
    on_shutdown=st.sampled_from(["resubmit", "stop", "continue"]),
    on_crash=st.sampled_from(["retry", "stall"]),
    max_crashes=st.integers(1, 100),
    at_most_once=st.booleans(),
    dead_letter=st.booleans(),
    capture_output=st.booleans(),
)


@quick
@given(POLICIES)
def test_a_policy_comes_back(policy: Policy) -> None:
    assert Policy.decode(policy.encode()) == policy


def test_the_default_takes_no_room() -> None:
    assert Policy().encode() is None
    assert Policy.decode(None) == Policy()


def test_only_differences_are_written() -> None:
    text = Policy(retry=Retry(3, on=(TimeoutError,)), on_crash="stall", timeout=None).encode()
    assert text is not None
    assert decode(text) == {
        "retry": {"max_retries": 3, "on": ["builtins.TimeoutError"]},
        "timeout": None,
        "on_crash": "stall",
    }


def test_the_defaults_are_the_documented_ones() -> None:
    policy = Policy()
    assert policy.max_retries == 0
    assert policy.timeout == 3600
    assert policy.max_heartbeat_interval is None
    assert (policy.on_shutdown, policy.on_crash, policy.max_crashes) == ("resubmit", "retry", 3)
    assert (policy.at_most_once, policy.dead_letter, policy.capture_output) == (False, True, True)
    assert Policy(retry=Retry(5)).max_retries == 5


def test_keys_of_newer_code_are_ignored() -> None:
    text = '{"max_crashes":5,"colour":{"deep":[1]},"retry":{"max_retries":2,"mood":"calm"}}'
    assert Policy.decode(text) == Policy(max_crashes=5, retry=Retry(2))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        '{"max_crashes":"5"}',
        '{"on_crash":"explode"}',
        '{"retry":{}}',
        '{"retry":{"max_retries":-1}}',
        '{"at_most_once":1}',
    ],
)
def test_what_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(PayloadError, match="these are not task options"):
        Policy.decode(text)


def test_rows_of_one_task_share_their_policy() -> None:
    text: Any = Policy(max_crashes=7).encode()
    assert Policy.decode(text) is Policy.decode(str(text))
