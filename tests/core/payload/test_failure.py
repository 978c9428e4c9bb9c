from __future__ import annotations

import traceback

import pytest

from holdfast.core.error_code import ErrorCode
from holdfast.core.errors import PayloadError
from holdfast.core.payload.codec import decode
from holdfast.core.payload.failure import (
    code_of,
    decode_error,
    describe,
    encode_error,
    unstorable,
)
from holdfast.core.result import CAUSES_LIMIT, TaskError
from holdfast.core.signals import Abort, RetryLater


class Rude(Exception):
    def __str__(self) -> str:
        raise SystemExit("not telling")


def raised(error: BaseException) -> BaseException:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError(), ErrorCode.UNHANDLED_EXCEPTION),
        (SystemExit(3), ErrorCode.TASK_EXITED),
        (KeyboardInterrupt(), ErrorCode.KEYBOARD_INTERRUPT),
        (GeneratorExit(), ErrorCode.UNHANDLED_EXCEPTION),
        (Abort("no"), ErrorCode.ABORTED),
        (RetryLater(), ErrorCode.RETRY_LATER),
    ],
)
def test_the_code_of_an_exception(error: BaseException, code: ErrorCode) -> None:
    assert code_of(error) is code
    assert describe(error).error_code is code


def test_an_exception_becomes_text() -> None:
    def fail() -> None:
        try:
            raise KeyError("sku")
        except KeyError as cause:
            raise ValueError("bad order") from cause

    with pytest.raises(ValueError, match="bad order") as caught:
        fail()
    error = describe(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)
    assert error.exception == "builtins.ValueError"
    assert error.message == "bad order"
    assert error.causes == ("KeyError: 'sku'",)
    assert error.traceback is not None
    assert "direct cause of the following exception" in error.traceback
    assert 'raise ValueError("bad order") from cause' in error.traceback
    assert error.traceback.rstrip().endswith("ValueError: bad order")


def during(error: Exception, *, hidden: bool = False) -> None:
    try:
        int("x")
    except ValueError:
        if hidden:
            raise error from None
        raise error  # noqa: B904


def test_it_reads_like_pythons_own_traceback() -> None:
    with pytest.raises(KeyError) as caught:
        during(KeyError("y"))
    described = describe(caught.value)
    assert described.traceback == "".join(traceback.format_exception(caught.value))
    assert described.causes == ("ValueError: invalid literal for int() with base 10: 'x'",)


def test_a_suppressed_context_is_not_told() -> None:
    with pytest.raises(KeyError) as caught:
        during(KeyError("y"), hidden=True)
    described = describe(caught.value)
    assert described.causes == ()
    assert "ValueError" not in (described.traceback or "")
    assert caught.value.__suppress_context__


def test_an_exception_whose_message_raises() -> None:
    error = describe(raised(Rude()))
    assert error.message == "(its message cannot be shown: str() raised SystemExit)"
    assert error.exception == f"{__name__}.Rude"
    assert error.traceback
    encode_error(error)


def test_a_ring_of_causes_ends() -> None:
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__cause__ = second, first
    assert describe(first).causes == ("ValueError: 2",)


def test_a_long_chain_of_causes_is_cut() -> None:
    error = ValueError(0)
    for n in range(1, 20_000):
        following = ValueError(n)
        following.__cause__ = error
        error = following
    causes = describe(error).causes
    assert len(causes) == CAUSES_LIMIT
    assert causes[0] == "ValueError: 19998"


def test_a_huge_message_is_bounded_everywhere() -> None:
    error = describe(raised(ValueError("\ud800\x00" + "x" * 10_000_000)))
    text = encode_error(error)
    assert len(text) < 64 * 1024
    assert decode_error(text) == error


def test_groups_are_described() -> None:
    group = ExceptionGroup("two", [ValueError("a"), KeyError("b")])
    error = describe(raised(group))
    assert error.message == "two (2 sub-exceptions)"
    assert error.traceback is not None
    assert "ValueError: a" in error.traceback


@pytest.mark.parametrize(
    "error",
    [
        TaskError("OUT_OF_STOCK"),
        TaskError("OUT_OF_STOCK", "none left", data={"sku": [1, None]}),
        TaskError.ours(ErrorCode.TASK_TIMEOUT, "too long"),
        describe(raised(ValueError("bad"))),
    ],
)
def test_errors_come_back(error: TaskError) -> None:
    assert decode_error(encode_error(error)) == error


def test_the_stored_shape() -> None:
    assert decode(encode_error(TaskError("X", "m", data=[1]))) == {
        "error_code": "X",
        "message": "m",
        "data": [1],
    }
    assert set(decode(encode_error(describe(raised(ValueError("bad")))))) == {
        "error_code",
        "message",
        "exception",
        "traceback",
    }


def test_data_that_cannot_be_stored_is_told() -> None:
    with pytest.raises(PayloadError, match=r"error\.data\.x is nan") as caught:
        encode_error(TaskError("X", data={"x": float("nan")}))
    assert unstorable(caught.value).error_code is ErrorCode.RESULT_NOT_SERIALISABLE
    with pytest.raises(PayloadError) as caught:
        encode_error(TaskError("X", data="x" * 1000), limit=500)
    assert unstorable(caught.value).error_code is ErrorCode.RESULT_TOO_LARGE
    mismatch = PayloadError("result is no int", problem="mismatch")
    assert unstorable(mismatch).error_code is ErrorCode.RESULT_INVALID


@pytest.mark.parametrize(
    "text", ["{}", "[]", "7", '{"message":"x"}', '{"error_code":"X","causes":7}']
)
def test_what_is_no_error_is_refused(text: str) -> None:
    with pytest.raises(PayloadError):
        decode_error(text)
