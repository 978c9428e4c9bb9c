"""What type checkers know about results; checked by mypy and pyright, and run."""

from __future__ import annotations

from typing import Never, assert_type

from holdfast.core.result import TaskError, TaskResult


def resize(width: int) -> TaskResult[str, TaskError]:
    if width < 1:
        return TaskResult(err=TaskError("TOO_SMALL"))
    return TaskResult(ok="a.png")


def test_a_result_keeps_both_types() -> None:
    result = resize(1)
    assert_type(result, TaskResult[str, TaskError])
    assert_type(result.ok, str | None)
    assert_type(result.err, TaskError | None)
    assert_type(result.ok_value, str)
    assert_type(resize(0).err_value, TaskError)


def test_one_side_is_inferred_without_the_other() -> None:
    assert_type(TaskResult(ok=1), TaskResult[int, Never])
    assert_type(TaskResult(err=TaskError("X")), TaskResult[Never, TaskError])
