"""The codec: what goes in comes out, and what would not is refused, with its place."""

from __future__ import annotations

import math
import re
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import PayloadError
from holdfast.core.payload.check import MAX_DEPTH
from holdfast.core.payload.codec import (
    DEFAULT_LIMIT,
    canonical,
    decode,
    encode_arguments,
    encode_value,
    unsupported,
)
from tests.core.quick import quick

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def named(value: object) -> str:
    """A test's name that is the same in every process: no addresses, no order of a set."""
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}-of-{len(value)}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:40]


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Key(StrEnum):
    A = "a"


class Point(NamedTuple):
    x: int
    y: float


class Movie(TypedDict):
    title: str


class Item(msgspec.Struct):
    sku: str
    price: float


@dataclass
class Order:
    id: int
    items: list[Item]
    at: datetime | None = None


class Model(pydantic.BaseModel):
    name: str = pydantic.Field(alias="theName")
    when: datetime
    where: Path


class StrictModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    when: datetime


class Opaque:
    pass


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@quick
@given(JSON)
def test_json_comes_back_exactly(value: Any) -> None:
    text = encode_value(value)
    assert "\x00" not in text
    assert decode(text) == value
    assert decode(canonical(text)) == value


@quick
@given(st.lists(JSON, max_size=3), st.dictionaries(TEXT, JSON, max_size=3))
def test_arguments_come_back_exactly(args: list[Any], kwargs: dict[str, Any]) -> None:
    args_json, kwargs_json, _ = encode_arguments(args, kwargs)
    assert decode(args_json) == args
    assert decode(kwargs_json) == kwargs


def test_no_arguments() -> None:
    assert encode_arguments((), {}) == ("[]", "{}", False)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("a\x00b", str),
        ("zwölf 🦀 \u2028", str),
        (-(2**63), int),
        (2**63 - 1, int),
        (-0.0, float),
        (5e-324, float),
        (datetime(2026, 7, 1, 12, 30, 1, 5, tzinfo=UTC), datetime),
        (datetime(2026, 7, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30))), datetime),
        (date(2026, 7, 1), date),
        (time(12, 30, 1), time),
        (timedelta(days=1, microseconds=5), timedelta),
        (UUID(int=7), UUID),
        (Decimal("1.10"), Decimal),
        (Colour.RED, Colour),
        (Level.HIGH, Level),
        (b"\x00\xff", bytes),
        ((1, "a"), tuple[int, str]),
        ({3, 1, 2}, set[int]),
        (frozenset({"b", "a"}), frozenset[str]),
        (Point(1, 2.5), Point),
        ({"title": "Ran"}, Movie),
        (Item("a", 1.5), Item),
        (Order(1, [Item("a", 1.5)], datetime(2026, 7, 1, tzinfo=UTC)), Order),
        (Path("/tmp/a.png"), Path),
        (PurePosixPath("a/b"), PurePosixPath),
        ({"a": Path("x")}, dict[str, Path]),
        (Model(theName="x", when=datetime(2026, 7, 1, tzinfo=UTC), where=Path("a")), Model),
        (StrictModel(when=datetime(2026, 7, 1, tzinfo=UTC)), StrictModel),
        ([StrictModel(when=datetime(2026, 7, 1, tzinfo=UTC))], list[StrictModel]),
        ("a", Literal["a", "b"]),
        (None, Path | None),
    ],
    ids=named,
)
def test_types_come_back_by_their_annotation(value: Any, kind: Any) -> None:
    back: Any = decode(encode_value(value), kind)
    assert back == value
    assert type(back) is type(value)


def test_containers_and_scalars_of_subclasses_travel_as_plain_ones() -> None:
    class Name(str):
        __slots__ = ()

    class Ratio(float):
        __slots__ = ()

    assert encode_value(OrderedDict(b=1, a=2)) == '{"b":1,"a":2}'
    assert encode_value(defaultdict(int, a=1)) == '{"a":1}'
    assert encode_value([Name("x"), Ratio(0.5)]) == '["x",0.5]'
    assert encode_value({Key.A: 1, Name("b"): 2}) == '{"a":1,"b":2}'


def test_the_order_of_dicts_is_kept_and_that_of_sets_does_not_matter() -> None:
    assert encode_value({"b": 1, "a": 2}) == '{"b":1,"a":2}'
    assert encode_value({"z", "a", "m"}) == '["a","m","z"]'
    assert encode_value([{"z", "a"}, 1]) == '[["a","z"],1]'


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        (math.nan, "args[0]", "is nan, which JSON cannot hold"),
        ([1, -math.inf], "args[0][1]", "is -inf"),
        ({"a": {"b c": [math.nan]}}, "args[0].a['b c'][0]", "is nan"),
        (Item("a", math.nan), "args[0].price", "is nan"),
        (Order(1, [Item("a", math.inf)]), "args[0].items[0].price", "is inf"),
        (2**63, "args[0]", "is an integer beyond 64 bits: send it as a string"),
        ([-(2**63) - 1], "args[0][0]", "beyond 64 bits"),
        ({1: 2}, "args[0]", "has the key 1, and JSON has only string keys"),
        ({"a": {None: 2}}, "args[0].a", "has the key None"),
        ({1: "a", "1": "b"}, "args[0]", "has the key 1"),
        ({"x": Order({1: 2}, [])}, "args[0].x.id", "has the key 1"),  # type: ignore[arg-type]
        ("a\ud800", "args[0]", "has half of a surrogate pair at position 1"),
        (["ok", "\udfff"], "args[0][1]", "surrogate"),
        ({"\ud800": 1}, "args[0]['\\ud800']", "surrogate"),
        (Path("a\udcff"), "args[0]", "surrogate"),
        (datetime(2026, 7, 1), "args[0]", "without a time zone"),  # noqa: DTZ001
        (Order(1, [], datetime(2026, 7, 1)), "args[0].at", "without a time zone"),  # noqa: DTZ001
        (
            datetime(1900, 1, 1, tzinfo=timezone(timedelta(minutes=19, seconds=32))),
            "args[0]",
            "whose offset has seconds",
        ),
        (Opaque(), "args[0]", "is of type Opaque, which cannot be written as JSON"),
        ([{"a": Opaque()}], "args[0][0].a", "is of type Opaque"),
        (Order(1, [Opaque()]), "args[0]", r"is a Order \(Opaque\)"),  # type: ignore[list-item]
        (1j, "args[0]", "is of type complex"),
        (print, "args[0]", "is of type builtin_function_or_method"),
        ((n for n in range(3)), "args[0]", "is of type generator"),
        ({"a", 1}, "args", "cannot be written as JSON"),
    ],
    ids=named,
)
def test_what_would_not_come_back_is_refused_with_its_place(
    value: Any, path: str, message: str
) -> None:
    with pytest.raises(PayloadError, match=message) as caught:
        encode_arguments((value,), {})
    assert caught.value.path == path
    assert str(caught.value).startswith(path)
    assert caught.value.problem == "unserialisable"


def test_the_place_is_named_in_keyword_arguments_too() -> None:
    with pytest.raises(PayloadError) as caught:
        encode_arguments((1,), {"n": 1, "name": ["a", "b", "c", "\ud800"]})
    assert caught.value.path == "kwargs.name[3]"
    with pytest.raises(PayloadError) as caught:
        encode_value([math.nan], name="result")
    assert caught.value.path == "result[0]"


def test_nesting_comes_back_up_to_the_limit() -> None:
    value = nested(MAX_DEPTH)
    assert decode(encode_value(value)) == value
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(PayloadError, match="is nested deeper than 100 levels") as caught:
            encode_value(nested(depth))
        assert caught.value.path == "value" + "[0]" * MAX_DEPTH


def test_a_value_that_contains_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append([ring, ring])
    node = Order(1, [])
    node.items.append(node)  # type: ignore[arg-type]
    loop: dict[str, Any] = {}
    loop["self"] = loop
    for value in (ring, node, loop):
        with pytest.raises(PayloadError, match="contains itself"):
            encode_value(value)


def test_parts_shared_a_million_times_do_not_explode() -> None:
    layer: list[Any] = ["x"]
    for _ in range(60):
        layer = [layer, layer]
    with pytest.raises(PayloadError) as caught:
        encode_value(layer, limit=10_000)
    assert caught.value.problem == "too_large"
    with pytest.raises(PayloadError, match="over the limit of 1,048,576 bytes"):
        encode_value(["x" * 1_000_000] * 1000)


def test_keys_that_become_the_same_string_are_refused() -> None:
    class Sly(str):
        __slots__ = ()

        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            return self is other

    with pytest.raises(PayloadError, match="keys that become the same string"):
        encode_value({Sly("a"): 1, Sly("a"): 2})


def test_the_limit_counts_encoded_bytes_of_all_arguments() -> None:
    text = "ü" * 50
    args_json, kwargs_json, _ = encode_arguments((text,), {"k": text}, limit=1000)
    size = len(args_json.encode()) + len(kwargs_json.encode())
    assert encode_arguments((text,), {"k": text}, limit=size)[:2] == (args_json, kwargs_json)
    with pytest.raises(PayloadError, match=f"take {size} bytes, over the limit") as caught:
        encode_arguments((text,), {"k": text}, limit=size - 1)
    assert caught.value.problem == "too_large"


def test_the_default_limit_is_a_mebibyte() -> None:
    assert DEFAULT_LIMIT == 1024 * 1024
    assert encode_value("x" * (DEFAULT_LIMIT - 2))
    with pytest.raises(PayloadError, match="store the data elsewhere and send a reference"):
        encode_value("x" * (DEFAULT_LIMIT - 1))
    with pytest.raises(PayloadError, match=r"the result (is|takes) .*or raise max_payload"):
        encode_value(b"x" * DEFAULT_LIMIT, name="result")


@pytest.mark.parametrize(
    ("text", "kind", "path", "message"),
    [
        ('"x"', int, None, "expected int, got str"),
        ('{"id":1,"items":[{"sku":1,"price":2}]}', Order, ".items[0].sku", "expected str, got int"),
        ("{}", Item, None, "object missing required field sku"),
        ("7", Path, None, "expected str, got int"),
        ('{"when":"soon"}', StrictModel, None, "1 validation error"),
        ("[1,", list[int], None, "truncated"),
        ("[" * 100_000, Any, None, "nested too deeply"),
    ],
)
def test_decoding_says_what_does_not_fit(
    text: str, kind: Any, path: str | None, message: str
) -> None:
    with pytest.raises(PayloadError, match=message) as caught:
        decode(text, kind)
    assert caught.value.path == path
    assert caught.value.problem == "mismatch"


@pytest.mark.parametrize(
    "kind", [int, Any, list[Order], dict[str, Model], Path | None, tuple[Point, ...], object]
)
def test_supported_annotations(kind: Any) -> None:
    assert unsupported(kind) is None


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Opaque, "Opaque cannot be built from JSON"),
        (dict[str, list[Opaque]], "Opaque cannot be built from JSON"),
        (Path | str, "Type unions containing a custom type"),
    ],
)
def test_unsupported_annotations(kind: Any, why: str) -> None:
    assert why in (unsupported(kind) or "")


def test_canonical_text_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical('{"b":[{"d":1,"c":2}],"a":1}') == '{"a":1,"b":[{"c":2,"d":1}]}'


def test_a_message_of_the_codec_keeps_its_names() -> None:
    with pytest.raises(PayloadError, match=r"^JSON is malformed") as raised:
        decode("[1,x]", list)
    assert "jSON" not in str(raised.value)
