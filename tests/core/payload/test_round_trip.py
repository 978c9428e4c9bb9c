"""Values keep their type on the way, or are refused where they are sent."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Union
from uuid import UUID

import msgspec
import pytest

from holdfast.core.errors import PayloadError
from holdfast.core.payload.codec import encode_arguments
from holdfast.core.payload.signature import Signature


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


class Level(IntEnum):
    HIGH = 1


class Pair(NamedTuple):
    left: int
    right: int


@dataclass
class Order:
    id: int
    extra: Any = None
    tags: set[str] = field(default_factory=set)


class Packed(msgspec.Struct):
    data: Any


class Ratio(float): ...


class Options(TypedDict):
    size: Any


def untyped(x):  # type: ignore[no-untyped-def]
    return x


def anything(x: Any, *rest: Any, **others: object) -> Any:
    return x


def sent(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
    """What arrives of a call, after the checks that a send makes."""
    signature = Signature(function, "task")
    args_json, kwargs_json, special = encode_arguments(args, kwargs)
    if special:
        signature.check_types(args, kwargs, args_json, kwargs_json)
    else:
        signature.check(args_json, kwargs_json)
    return signature.decode(args_json, kwargs_json)


CHANGING: dict[str, tuple[Any, str]] = {
    "bytes": (b"ab", "a bytes and would arrive as a str"),
    "bytearray": (bytearray(b"ab"), "a bytearray and would arrive as a str"),
    "set": ({1, 2}, "a set and would arrive as a list"),
    "frozenset": (frozenset({1}), "a frozenset and would arrive as a list"),
    "tuple": ((1, 2), "a tuple and would arrive as a list"),
    "empty tuple": ((), "a tuple and would arrive as a list"),
    "named tuple": (Pair(1, 2), "a Pair and would arrive as a list"),
    "Decimal": (Decimal("1.5"), "a Decimal and would arrive as a str"),
    "UUID": (uuid.uuid4(), "an? UUID and would arrive as a str"),
    "datetime": (datetime.now(UTC), "a datetime and would arrive as a str"),
    "date": (date(2026, 1, 1), "a date and would arrive as a str"),
    "timedelta": (timedelta(1), "a timedelta and would arrive as a str"),
    "Path": (Path("a"), "a PosixPath and would arrive as a str"),
    "enum": (Colour.RED, "a Colour and would arrive as a str"),
    "text enum": (Word.YES, "a Word and would arrive as a str"),
    "number enum": (Level.HIGH, "a Level and would arrive as an int"),
    "dataclass": (Order(1), "an Order and would arrive as a dict"),
    "struct": (Packed(1), "a Packed and would arrive as a dict"),
}


@pytest.mark.parametrize("function", [untyped, anything])
@pytest.mark.parametrize("case", CHANGING)
def test_without_an_annotation_no_type_changes(case: str, function: Callable[..., Any]) -> None:
    value, words = CHANGING[case]
    calls: list[tuple[dict[str, Any], str]] = [
        ({"x": value}, "x"),
        ({"x": [1, {"deep": [value]}]}, r"x\[1\]\.deep\[0\]"),
        ({"x": {"not an identifier": value}}, r"x\['not an identifier'\]"),
    ]
    for call, path in calls:
        refused = f"^argument {path} of task 'task' is {words}"
        with pytest.raises(PayloadError, match=refused):
            sent(function, **call)
        with pytest.raises(PayloadError, match=refused):
            sent(function, call["x"])


@pytest.mark.parametrize("case", CHANGING)
def test_the_same_holds_for_results(case: str) -> None:
    value, words = CHANGING[case]
    for function in (untyped, anything):
        signature = Signature(function, "task")
        with pytest.raises(PayloadError, match=f"^result of task 'task' is {words}"):
            signature.encode_result(value)
        with pytest.raises(PayloadError, match=r"^result\.a of task") as caught:
            signature.encode_result({"a": value})
        assert (caught.value.problem, caught.value.path) == ("unserialisable", "result.a")


def test_the_remedy_is_named() -> None:
    with pytest.raises(PayloadError) as caught:
        sent(untyped, Path("a"))
    assert str(caught.value) == (
        "argument x of task 'task' is a PosixPath and would arrive as a str, because no "
        "annotation says what it is: annotate the parameter, such as `x: Path`, or send plain data"
    )
    with pytest.raises(PayloadError, match=r"annotate the function's result, such as `-> set`"):
        Signature(untyped, "task").encode_result({1})


def test_variadic_parameters_are_checked_too() -> None:
    with pytest.raises(PayloadError, match=r"^argument args\[2\] of task"):
        sent(anything, 1, 2, {3})
    with pytest.raises(PayloadError, match=r"^argument other of task"):
        sent(anything, 1, other={3})


@pytest.mark.parametrize(
    "value",
    [None, True, 1, 1.5, "x", [1, [2]], {"a": {"b": None}}, Ratio(0.5), OrderedDict(b=1, a=2)],
)
def test_plain_values_need_no_annotation(value: Any) -> None:
    assert sent(untyped, value)[0] == [value]
    assert Signature(untyped, "task").encode_result(value)


PARTLY: dict[str, tuple[Any, Any, str | None]] = {
    "dict": (dict[str, Any], {"a": Path("a")}, "x.a"),
    "bare dict": (dict, {"a": {1}}, "x.a"),
    "bare list": (list, [1, b"x"], r"x[1]"),
    "tuple for a bare list": (list, (1, 2), None),
    "tuple for a sequence": (Sequence[Any], (1, 2), None),
    "set for a bare list": (list, {1, 2}, None),
    "enums for a bare list": (list, {Colour.RED}, "x"),
    "bare tuple": (tuple, (1, (2, 3)), r"x[1]"),
    "bare set": (set, {1, 2}, None),
    "paths in a bare set": (set, {Path("a")}, "x"),
    "part of a tuple": (tuple[Path, Any], (Path("a"), Path("b")), "x[1]"),
    "optional": (dict[str, Any] | None, {"a": (1,)}, "x.a"),
    "optional plain": (dict[str, Any] | None, {"a": [1]}, None),
    "a field": (Order, Order(1, Decimal(1)), "x.extra"),
    "a plain field": (Order, Order(1, {"a": 1}, {"t"}), None),
    "a field in a list": (list[Order], [Order(1), Order(2, {3})], "x[1].extra"),
    "struct": (Packed, Packed((1,)), "x.data"),
    "typed dict": (Options, {"size": {1}}, "x.size"),
    "enum key": (dict[Any, int], {Word.YES: 1}, "x.yes"),
}


@pytest.mark.parametrize("case", PARTLY)
def test_what_an_annotation_leaves_open_is_checked(case: str) -> None:
    kind, value, path = PARTLY[case]

    def function(x):  # type: ignore[no-untyped-def]
        return x

    function.__annotations__ = {"x": kind, "return": kind}
    if path is None:
        sent(function, value)
        return
    with pytest.raises(PayloadError) as caught:
        sent(function, value)
    assert caught.value.path == f"args[0]{path.removeprefix('x')}"
    with pytest.raises(PayloadError):
        Signature(function, "task").encode_result(value)


TYPED: list[tuple[Any, Any]] = [
    (bytes, b"ab"),
    (set[int], {1, 2}),
    (tuple[int, str], (1, "x")),
    (Decimal, Decimal("1.5")),
    (Path, Path("a")),
    (UUID, UUID(int=7)),
    (datetime, datetime(2026, 1, 1, tzinfo=UTC)),
    (Colour, Colour.RED),
    (Word, Word.YES),
    (list[Order], [Order(1)]),
    (Pair, Pair(1, 2)),
    (dict[str, Path], {"a": Path("a")}),
    (Union[Path, None], Path("a")),  # noqa: UP007
]


@pytest.mark.parametrize(("kind", "value"), TYPED)
def test_what_is_annotated_keeps_its_type(kind: Any, value: Any) -> None:
    def function(x):  # type: ignore[no-untyped-def]
        return x

    function.__annotations__ = {"x": kind, "return": kind}
    assert sent(function, value) == ([value], {})
    signature = Signature(function, "task")
    assert signature.decode_result(signature.encode_result(value)) == value


def test_an_annotation_that_names_another_type_is_obeyed() -> None:
    def function(path: str, ids: list[int], ratio: float) -> None: ...

    assert sent(function, Path("a"), {1}, 2) == (["a", [1], 2.0], {})


def test_bytes_do_not_become_text() -> None:
    def function(text: str = "", texts: list[str] | None = None) -> None: ...

    with pytest.raises(PayloadError, match="is a bytes and would arrive as a str, because its"):
        sent(function, b"ab")
    with pytest.raises(PayloadError, match=r"^argument texts\[1\] of task"):
        sent(function, texts=["a", b"b"])
