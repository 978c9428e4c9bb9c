from __future__ import annotations

import copy
import inspect
from uuid import UUID

import pytest

from holdfast.core import errors
from holdfast.core.errors import (
    Blame,
    ClaimLost,
    ConfigError,
    HoldfastError,
    IllegalTransition,
    PayloadError,
    PayloadMismatch,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    TaskCancelled,
    TaskDropped,
    TaskExpired,
    TaskFailed,
    TaskNotCompleted,
    TaskNotFound,
    TaskStalled,
    UniqueConflict,
    UnknownTask,
    UnreadableRow,
    UpstreamEnded,
    WaitTimeout,
)
from holdfast.core.lifecycle import Verb
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus

ID = UUID("0197f3c2-5b1e-7d44-9a01-3c5e6f708192")
ERROR = TaskError("OUT_OF_STOCK", "none left")

EXAMPLES: list[HoldfastError] = [
    ConfigError("priority=0 is not usable", option="priority"),
    PayloadError("args[0] is NaN", path="args[0]"),
    PayloadMismatch(ID),
    UnknownTask("resize", 2, known=["fetch", "add"]),
    TaskNotFound(ID),
    UniqueConflict(ID, name="resize", key="user:1"),
    IllegalTransition(ID, Verb.CANCEL, TaskStatus.COMPLETED),
    UpstreamEnded(
        ID, TaskStatus.CANCELLED, Blame(ID, "fetch", TaskStatus.FAILED, "success"), refused=[ID]
    ),
    ClaimLost(ID, Verb.COMPLETE),
    WaitTimeout(ID, 10.0, TaskStatus.RUNNING),
    TaskNotCompleted(ID, ERROR),
    TaskFailed(ID, ERROR),
    TaskCancelled(ID, ERROR),
    TaskExpired(ID, ERROR),
    TaskStalled(ID, ERROR),
    TaskDropped(ID, None),
    StoreError("the database is malformed"),
    UnreadableRow("holdfast_tasks", 17, "args", "is not UTF-8"),
    StoreUnavailable("connection refused", commit_unknown=True),
    SchemaMismatch("schema 9 is newer than this code", found=9, expected=3),
]
IDS = [type(example).__name__ for example in EXAMPLES]


def test_every_class_has_an_example_and_is_exported() -> None:
    classes = {
        name
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, HoldfastError)
    }
    assert classes == {*IDS, "HoldfastError"} == set(errors.__all__)


def test_the_docstring_shows_the_tree() -> None:
    drawn = []
    for line in (errors.__doc__ or "").splitlines():
        text = line.strip("│ ")
        if text.startswith(("├── ", "└── ")):
            depth = line.index("──") // 4
            drawn.append((depth, text.split()[1]))
    parents = {0: "HoldfastError"}
    seen = set()
    for depth, name in drawn:
        cls = getattr(errors, name)
        assert cls.__base__.__name__ == parents[depth - 1], name
        parents[depth] = name
        seen.add(name)
    assert seen == set(IDS)


@pytest.mark.parametrize("error", EXAMPLES, ids=IDS)
def test_errors_survive_a_copy(error: HoldfastError) -> None:
    """Copying takes the same road as pickling, which users do with exceptions."""
    error.call = {"task": "resize"}
    twin = copy.deepcopy(error)
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert twin.__dict__ == error.__dict__


@pytest.mark.parametrize("error", EXAMPLES, ids=IDS)
def test_errors_are_one_clear_sentence(error: HoldfastError) -> None:
    text = str(error)
    assert text
    assert not text.endswith(".")
    assert "\n" not in text
    assert repr(error).startswith(f"{type(error).__name__}({text!r}")


def test_repr_shows_the_fields() -> None:
    assert "option='priority'" in repr(EXAMPLES[0])
    assert "commit_unknown=True" in repr(StoreUnavailable("gone", commit_unknown=True))


@pytest.mark.parametrize("error", EXAMPLES, ids=IDS)
def test_only_an_unavailable_store_is_retryable(error: HoldfastError) -> None:
    assert error.retryable is isinstance(error, StoreUnavailable)


def test_the_call_is_set_per_error() -> None:
    first, second = TaskNotFound(ID), TaskNotFound(ID)
    first.call = object()
    assert second.call is None


def test_ids_may_be_given_as_bytes() -> None:
    assert TaskNotFound(ID.bytes).task_id == ID
    assert str(ID) in str(TaskNotFound(ID.bytes))


def test_facts_are_fields() -> None:
    illegal = IllegalTransition(ID, Verb.CANCEL, TaskStatus.COMPLETED)
    assert (illegal.task_id, illegal.verb, illegal.status) == (ID, "cancel", TaskStatus.COMPLETED)
    assert str(illegal) == f"cannot cancel task {ID}: it is COMPLETED"
    unknown = UnknownTask("resize", known=["fetch", "add"])
    assert unknown.known == ("add", "fetch")
    assert "add, fetch" in str(unknown)
    assert "no task is registered" in str(UnknownTask("resize"))
    waited = WaitTimeout(ID, 2.5, TaskStatus.PENDING)
    assert "is PENDING after 2.5 s" in str(waited)


def test_an_ending_carries_its_error_and_traceback() -> None:
    failed = TaskFailed(ID, ERROR)
    assert failed.error is ERROR
    assert failed.traceback is None
    assert str(failed) == f"task {ID} failed: OUT_OF_STOCK: none left"
    assert TaskDropped(ID).error is None
    assert TaskDropped(ID).traceback is None
    with pytest.raises(TaskNotCompleted):
        raise failed
