"""What an annotation says of a value that does not exist yet, as a type checker would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict

import pytest
from msgspec import Struct, field
from pydantic import BaseModel, Field

from holdfast.core.result import TaskError, TaskResult
from holdfast.core.workflows.value_kind import NoMember, fits, item_kind, member, shown

Name = NewType("Name", str)


@dataclass
class Raw:
    rows: list[int]
    source: str | None


class Meta(TypedDict):
    size: int


class Pair(NamedTuple):
    left: int
    right: str


class Packed(Struct, array_like=True):
    first: int
    second: str


class Renamed(Struct):
    count: int = field(name="n")


class Model(BaseModel):
    size: int = Field(alias="Size")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (int, int),
        (int, float),
        (bool, int),
        (Any, int),
        (int, Any),
        (int, object),
        (int, int | None),
        (type(None), int | None),
        (None, None),
        (Name, str),
        (Annotated[int, "x"], int),
        (list[int], list[int]),
        (list[int], Sequence[int]),
        (list[int], Iterable[int | str]),
        (list[int], list),
        (list[Any], list[str]),
        (tuple[int, str], tuple[int, str]),
        (tuple[int, int], Sequence[int]),
        (tuple[int, ...], tuple[int, int]),
        (dict[str, int], Mapping[str, int]),
        (Meta, Meta),
        (Meta, dict),
        (Literal["a"], str),
        (Literal["a"], Literal["a", "b"]),
        (Raw, Raw | None),
        (TaskResult[int, TaskError], TaskResult[int, TaskError]),
        (datetime, datetime),
    ],
)
def test_these_fit(given: Any, wanted: Any) -> None:
    assert fits(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (str, int),
        (float, int),
        (int | None, int),
        (str, None),
        (list[int], list[str]),
        (list[int], int),
        (int, list[int]),
        (str, list[str]),
        (dict[str, int], dict[str, str]),
        (tuple[int, str], tuple[int, int]),
        (tuple[int, int], tuple[int, int, int]),
        (Raw, Meta),
        (Meta, Raw),
        (dict, Meta),
        (Literal["c"], Literal["a", "b"]),
        (TaskResult[int, TaskError], TaskResult[str, TaskError]),
        (TaskError, str),
        (datetime, date),
        (bytes, str),
    ],
)
def test_these_do_not(given: Any, wanted: Any) -> None:
    assert not fits(given, wanted)


@pytest.mark.parametrize(
    ("kind", "key", "attribute", "found"),
    [
        (Raw, "rows", True, ("rows", list[int])),
        (Raw | None, "rows", True, ("rows", list[int])),
        (list[int], 0, False, (0, int)),
        (list[int], -1, False, (-1, int)),
        (tuple[int, str], -1, False, (1, str)),
        (dict[str, int], "a", False, ("a", int)),
        (dict[int, str], 3, False, ("3", str)),
        (Meta, "size", False, ("size", int)),
        (Pair, "right", True, (1, str)),
        (Pair, 0, False, (0, int)),
        (Packed, "second", True, (1, str)),
        (Renamed, "count", True, ("n", int)),
        (Model, "size", True, ("Size", int)),
        (TaskError, "message", True, ("message", str)),
        (Any, "x", True, ("x", Any)),
        (Any, 3, False, (3, Any)),
    ],
)
def test_a_part_is_found_where_it_is_stored(
    kind: Any, key: str | int, attribute: bool, found: tuple[Any, Any]
) -> None:
    assert tuple(member(kind, key, attribute=attribute)) == found


@pytest.mark.parametrize(
    ("kind", "key", "attribute", "said"),
    [
        (Raw, "rowz", True, "the fields of Raw are rows, source"),
        (Raw, "rows", False, "write .rows"),
        (Meta, "size", True, r"write \['size'\]"),
        (Meta, "sise", False, "the fields of Meta are size"),
        (Pair, 2, False, "left, right"),
        (tuple[int, str], 2, False, "of 2 items"),
        (list[int], "a", False, "numbers for keys"),
        (list[int], "append", True, "inside a task"),
        (int, "real", True, "inside a task"),
        (str, 0, False, "inside a task"),
        (TaskResult[int, TaskError], "ok", True, "inside a task"),
    ],
)
def test_what_is_not_there_is_refused(
    kind: Any, key: str | int, attribute: bool, said: str
) -> None:
    with pytest.raises(NoMember, match=said):
        member(kind, key, attribute=attribute)


def test_items() -> None:
    assert item_kind(list[int]) is int
    assert item_kind(tuple[int, str]) == int | str
    assert item_kind(list) is Any
    for kind in (int, str, dict[str, int], Raw):
        with pytest.raises(NoMember, match="is no list"):
            item_kind(kind)


def test_types_are_shown_as_they_are_written() -> None:
    assert shown(list[int | None]) == "list[int | None]"
    assert shown(TaskResult[str, TaskError]) == "TaskResult[str, TaskError]"
    assert shown(Literal["a"]) == "Literal['a']"
