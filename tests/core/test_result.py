from __future__ import annotations

import copy
from enum import StrEnum

import pytest

from holdfast.core.error_code import ErrorCode, ErrorFamily
from holdfast.core.result import MESSAGE_LIMIT, TaskError, TaskResult


class Mine(StrEnum):
    OUT_OF_STOCK = "OUT_OF_STOCK"


def test_an_error_of_ones_own() -> None:
    error = TaskError("OUT_OF_STOCK", "none left", data={"sku": 7})
    assert error.error_code == "OUT_OF_STOCK"
    assert (error.message, error.data) == ("none left", {"sku": 7})
    assert (error.exception, error.traceback, error.causes) == (None, None, ())
    assert not error.is_ours
    assert str(error) == "OUT_OF_STOCK: none left"
    assert str(TaskError("OUT_OF_STOCK")) == "OUT_OF_STOCK"


@pytest.mark.parametrize(
    ("exception", "code", "shown"),
    [
        ("builtins.KeyError", ErrorCode.UNHANDLED_EXCEPTION, "KeyError: 'x'"),
        ("__main__.Mine", ErrorCode.UNHANDLED_EXCEPTION, "Mine: 'x'"),
        ("shop.errors.Empty", ErrorCode.UNHANDLED_EXCEPTION, "shop.errors.Empty: 'x'"),
        ("holdfast.core.errors.TaskFailed", ErrorCode.UNHANDLED_EXCEPTION, "TaskFailed: 'x'"),
        ("builtins.SystemExit", ErrorCode.TASK_EXITED, "SystemExit: 'x'"),
        ("holdfast.core.signals.Abort", ErrorCode.ABORTED, "ABORTED: 'x'"),
        (None, ErrorCode.UNHANDLED_EXCEPTION, "UNHANDLED_EXCEPTION: 'x'"),
    ],
)
def test_an_exception_is_shown_with_its_type(
    exception: str | None, code: ErrorCode, shown: str
) -> None:
    assert str(TaskError.ours(code, "'x'", exception=exception)) == shown


def test_a_code_may_be_an_enum_of_ones_own() -> None:
    assert TaskError(Mine.OUT_OF_STOCK) == TaskError("OUT_OF_STOCK")


@pytest.mark.parametrize("code", list(ErrorCode))
def test_our_codes_are_refused_however_they_are_given(code: ErrorCode) -> None:
    with pytest.raises(ValueError, match="is reserved for Holdfast"):
        TaskError(code.value)
    with pytest.raises(ValueError, match="is reserved for Holdfast"):
        TaskError(code)


@pytest.mark.parametrize("code", ["", "two words", "é", "A" * 101, "A\n", None, 7])
def test_unusable_codes_are_refused(code: str) -> None:
    with pytest.raises(ValueError, match="is not usable"):
        TaskError(code)


def test_ours_are_made_on_their_own_path() -> None:
    error = TaskError.ours(ErrorCode.TASK_TIMEOUT, "too long")
    assert error.is_ours
    assert error.error_code is ErrorCode.TASK_TIMEOUT


def test_what_is_read_back_knows_whose_it_is() -> None:
    ours = TaskError.stored("TASK_TIMEOUT", "", None, None, None, ())
    theirs = TaskError.stored("OUT_OF_STOCK", "", None, None, None, ())
    assert ours.error_code is ErrorCode.TASK_TIMEOUT
    assert not theirs.is_ours


def test_texts_are_bounded_and_storable() -> None:
    error = TaskError("X", "a\x00b\ud800c" + "d" * 1_000_000)
    assert len(error.message) <= MESSAGE_LIMIT
    assert error.message.startswith("a\ufffdb\ufffdc")
    assert "shortened from 1,000,005 characters" in error.message
    error.message.encode()


def test_an_error_cannot_be_changed_and_can_be_copied() -> None:
    error = TaskError("X", "m", data=[1])
    with pytest.raises(AttributeError):
        error.message = "other"  # type: ignore[misc]
    assert copy.deepcopy(error) == error


def test_every_code_has_a_family_and_a_meaning() -> None:
    for code in ErrorCode:
        assert code.value == code.name
        assert isinstance(code.family, ErrorFamily)
        assert code.meaning
    assert {code.family for code in ErrorCode} == set(ErrorFamily)


def test_ok() -> None:
    result = TaskResult(ok=3)
    assert result.is_ok
    assert not result.is_err
    assert (result.ok, result.err, result.ok_value) == (3, None, 3)
    with pytest.raises(ValueError, match="holds a value: 3"):
        assert result.err_value
    assert repr(result) == "TaskResult(ok=3)"


def test_none_is_a_value() -> None:
    result = TaskResult(ok=None)
    assert result.is_ok
    assert result.ok_value is None


def test_err() -> None:
    error = TaskError("OUT_OF_STOCK", "none left")
    result = TaskResult(err=error)
    assert result.is_err
    assert (result.ok, result.err, result.err_value) == (None, error, error)
    with pytest.raises(ValueError, match="holds an error: OUT_OF_STOCK: none left"):
        assert result.ok_value


def test_exactly_one_of_both() -> None:
    with pytest.raises(TypeError, match="exactly one"):
        TaskResult()  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="exactly one"):
        TaskResult(ok=1, err=TaskError("X"))  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="takes a TaskError, not str"):
        TaskResult(err="X")  # type: ignore[call-overload]


def test_a_result_is_a_value() -> None:
    assert TaskResult(ok=[1]) == TaskResult(ok=[1])
    assert TaskResult(ok=1) != TaskResult(ok=2)
    assert TaskResult(ok=None) != TaskResult(err=TaskError("X"))
    assert TaskResult(ok=1) != 1
    for result in (TaskResult(ok=None), TaskResult(err=TaskError("X"))):
        assert copy.copy(result) == result
    with pytest.raises(AttributeError):
        TaskResult(ok=1).ok = 2  # type: ignore[misc]


def test_a_result_can_be_matched() -> None:
    match TaskResult(ok=5):
        case TaskResult(ok=value, err=None):
            assert value == 5
        case _:
            pytest.fail("no match")
