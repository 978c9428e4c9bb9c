from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import pytest

from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.payload.codec import encode_arguments
from holdfast.core.payload.signature import Arguments, Signature, result_kind
from holdfast.core.result import TaskError, TaskResult

if TYPE_CHECKING:
    from holdfast.core.lifecycle import Verb


@dataclass
class Order:
    id: int
    tags: set[str]


class Opaque:
    pass


def add(a: int, b: int = 2, /, c: float = 0.5, *, d: str = "x") -> int:
    return a


def gather(first: int, *rest: date, **others: Path) -> None: ...


def anything(a, b=None):  # type: ignore[no-untyped-def]
    return a


def through(signature: Signature, *args: Any, **kwargs: Any) -> Arguments:
    return signature.decode(*encode_arguments(args, kwargs)[:2])


ADD = Signature(add, "add")
GATHER = Signature(gather, "gather")


def test_arguments_come_back_to_call_the_function_with() -> None:
    assert through(ADD, 1) == ([1], {})
    assert through(ADD, 1, 3, 4.5, d="y") == ([1, 3, 4.5], {"d": "y"})
    assert through(ADD, 1, c=1) == ([1], {"c": 1.0})


def test_types_come_back_by_annotation() -> None:
    def f(
        order: Order, path: Path, when: datetime, mode: Literal["a", "b"], id: UUID | None
    ) -> None:
        pass

    when = datetime(2026, 7, 1, tzinfo=UTC)
    order = Order(1, {"x"})
    signature = Signature(f, "f")
    assert through(signature, order, Path("a"), when, mode="a", id=UUID(int=1)) == (
        [order, Path("a"), when],
        {"mode": "a", "id": UUID(int=1)},
    )


def test_variadic_parameters_are_typed_too() -> None:
    day = date(2026, 7, 1)
    assert through(GATHER, 1, day, day, x=Path("a")) == ([1, day, day], {"x": Path("a")})
    with pytest.raises(PayloadError, match=r"argument args\[2\] of task 'gather'"):
        through(GATHER, 1, day, "soon")
    with pytest.raises(PayloadError, match="argument x of task 'gather'"):
        through(GATHER, 1, x=7)


def test_without_annotations_anything_goes() -> None:
    signature = Signature(anything, "anything")
    assert through(signature, {"x": [1, None]}, b="y") == ([{"x": [1, None]}], {"b": "y"})


@pytest.mark.parametrize(
    ("args", "kwargs", "path", "message"),
    [
        (
            (),
            {},
            "kwargs.a",
            "task 'add' needs 'a'; its parameters are (a, b=2, /, c=0.5, *, d='x')",
        ),
        ((1, 2, 3.0, "y"), {}, "args[3]", "takes 3 positional arguments, and 4 were given"),
        ((1,), {"e": 1}, "kwargs.e", "has no parameter named 'e'"),
        ((1,), {"a": 1}, "kwargs.a", "has no parameter named 'a'"),
        ((1, 2, 3.0), {"c": 1.0}, "kwargs.c", "was given 'c' twice, by position and by name"),
        (
            ("1",),
            {},
            "args[0]",
            "argument a of task 'add' does not fit its annotation: expected int, got str",
        ),
        (
            (1, 1.5),
            {},
            "args[1]",
            "argument b of task 'add' does not fit its annotation: expected int",
        ),
        (
            (True,),
            {},
            "args[0]",
            "argument a of task 'add' does not fit its annotation: expected int",
        ),
        (
            (1,),
            {"d": None},
            "kwargs.d",
            "argument d of task 'add' does not fit its annotation: expected str",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    args: tuple[Any, ...], kwargs: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(PayloadError) as caught:
        ADD.check(*encode_arguments(args, kwargs)[:2])
    assert message in str(caught.value)
    assert caught.value.path == path
    assert caught.value.problem == "mismatch"


def test_the_place_inside_an_argument_is_named() -> None:
    def f(*, orders: list[Order]) -> None: ...

    with pytest.raises(PayloadError) as caught:
        through(Signature(f, "f"), orders=[{"id": 1, "tags": []}, {"id": "x", "tags": []}])
    assert caught.value.path == "kwargs.orders[1].id"


def test_what_the_worker_gets_is_what_was_checked() -> None:
    """A stored call of an older signature fails in the worker with the same clear words."""
    with pytest.raises(PayloadError, match="has no parameter named 'gone'"):
        ADD.decode("[1]", '{"gone":1}')


@pytest.mark.parametrize("text", ["", "{}", "7", "[1"])
def test_stored_text_that_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(PayloadError):
        ADD.decode(text, "{}")


def test_forward_references_resolve_when_they_are_needed() -> None:
    def f(x: Later) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    signature = Signature(f, "f")
    assert not signature.resolved
    with pytest.raises(ConfigError, match=r"name 'Later' is not defined.*import that name"):
        signature.check("[1]", "{}")
    globals()["Later"] = int
    try:
        signature.check("[1]", "{}")
        assert signature.resolved
    finally:
        del globals()["Later"]


def test_names_imported_only_for_type_checking_are_told() -> None:
    def f(x: Verb) -> None: ...

    with pytest.raises(ConfigError, match="at run time, not only for type checking"):
        Signature(f, "f").resolve()


def test_a_required_parameter_that_cannot_travel_is_refused_at_definition() -> None:
    def f(x: Opaque) -> None: ...

    with pytest.raises(ConfigError, match="parameter 'x' of task 'f' is annotated with a type"):
        Signature(f, "f")


def test_an_optional_parameter_that_cannot_travel_is_left_to_its_default() -> None:
    def f(x: int, client: Opaque | None = None) -> None: ...

    assert through(Signature(f, "f"), 1) == ([1], {})


def test_unions_that_json_cannot_tell_apart_take_the_first_that_fits() -> None:
    def f(x: str | date, y: Path | int) -> None: ...

    signature = Signature(f, "f")
    assert through(signature, date(2026, 7, 1), 3) == ([date(2026, 7, 1), 3], {})
    assert through(signature, "tomorrow", "a") == (["tomorrow", Path("a")], {})
    with pytest.raises(PayloadError, match="argument x"):
        through(signature, 1.5, 3)


def test_results_are_checked_against_the_return_annotation() -> None:
    assert ADD.encode_result(3) == "3"
    assert ADD.decode_result("3") == 3
    with pytest.raises(PayloadError, match="result of task 'add' does not fit its return") as e:
        ADD.encode_result("x")
    assert e.value.problem == "mismatch"
    with pytest.raises(PayloadError, match="result is nan") as e:
        ADD.encode_result(float("nan"))
    assert e.value.problem == "unserialisable"
    with pytest.raises(PayloadError) as e:
        ADD.encode_result("x" * 100, limit=10)
    assert e.value.problem == "too_large"


def test_an_unusual_return_annotation_gives_plain_data() -> None:
    def f() -> Opaque:
        return Opaque()

    assert Signature(f, "f").decode_result("[1]") == [1]


def test_generators_stream_and_return() -> None:
    def lines() -> Generator[str, None, int]:
        yield "a"
        return 1

    async def stream() -> AsyncIterator[str]:
        yield "a"

    def plain() -> Iterator[str]:
        return iter("ab")

    assert Signature(lines, "lines").streams
    assert Signature(lines, "lines").decode_result("1") == 1
    assert Signature(stream, "stream").streams
    assert not Signature(plain, "plain").streams


@pytest.mark.parametrize(
    ("annotation", "streams", "expected"),
    [
        (int, False, int),
        (TaskResult[str, TaskError], False, str),
        (TaskResult, False, Any),
        (Generator[str, None, Path], True, Path),
        (Generator[str, None, TaskResult[int, TaskError]], True, int),
        (Iterator[str], True, Any),
        (Iterator[str], False, Iterator[str]),
        (AsyncIterator[str], True, Any),
        (None, False, None),
    ],
)
def test_the_type_of_the_result(annotation: Any, streams: bool, expected: Any) -> None:
    assert result_kind(annotation, streams=streams) == expected
