"""Arrays in PostgreSQL's binary format, built by hand.

Owns the encoding of whole columns. A claim or a bulk send carries hundreds of ids at
once, and a driver that adapts a list looks at every element in Python; joining
prepared bytes is one call into C. Per element, against psycopg's own lists: uuid 0.01 µs
for 0.36, text 0.16 for 0.46, integers 0.06 for 0.33. A column that holds one value
throughout (most columns of a bulk send do) costs a comparison per row and nothing more.

Never decides what a value means: a wrong type fails here, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any, ClassVar

from holdfast.store.op import Column

UNIX_EPOCH_US = 946_684_800_000_000
"""PostgreSQL counts microseconds from 2000-01-01; this is that moment in Unix time."""

_NULL = b"\xff\xff\xff\xff"
_head = Struct("!iiiii").pack
_int4 = Struct("!i").pack
_int8 = Struct("!q").pack
_FLAG = {True: b"\x01", False: b"\x00"}.__getitem__


class BinaryArray:
    """An encoded array, ready to be sent as one parameter."""

    __slots__ = ("data",)

    oid: ClassVar[int]
    element_oid: ClassVar[int]

    def __init__(self, body: bytes, length: int, has_null: bool) -> None:
        dimensions = 1 if length else 0
        # An empty array has no dimensions, and then no bounds follow.
        head = _head(dimensions, has_null, self.element_oid, length, 1)
        self.data = head + body if length else head[:12]


class UuidArray(BinaryArray):
    """`uuid[]`."""

    __slots__ = ()
    oid, element_oid = 2951, 2950


class TextArray(BinaryArray):
    """`text[]`."""

    __slots__ = ()
    oid, element_oid = 1009, 25


class Int4Array(BinaryArray):
    """`int4[]`."""

    __slots__ = ()
    oid, element_oid = 1007, 23


class Int8Array(BinaryArray):
    """`int8[]`."""

    __slots__ = ()
    oid, element_oid = 1016, 20


class BoolArray(BinaryArray):
    """`bool[]`."""

    __slots__ = ()
    oid, element_oid = 1000, 16


class TimeArray(BinaryArray):
    """`timestamptz[]`."""

    __slots__ = ()
    oid, element_oid = 1185, 1184


def uuids(values: Sequence[bytes | None]) -> BinaryArray:
    """`uuid[]` of 16-byte ids."""
    return _fixed(UuidArray, 16, values, None)


def texts(values: Sequence[str | None]) -> BinaryArray:
    """`text[]`."""
    count = len(values)
    if count > 1 and values.count(values[0]) == count:
        return _repeat(TextArray, _text(values[0]), count)
    if None in values:
        return TextArray(b"".join([_text(value) for value in values]), count, True)
    encoded = [value.encode() for value in values if value is not None]
    parts: list[bytes] = [b""] * (2 * count)
    parts[::2] = map(_int4, map(len, encoded))
    parts[1::2] = encoded
    return TextArray(b"".join(parts), count, False)


def ints(values: Sequence[int | None]) -> BinaryArray:
    """`int4[]`."""
    return _fixed(Int4Array, 4, values, _int4)


def bigints(values: Sequence[int | None]) -> BinaryArray:
    """`int8[]`."""
    return _fixed(Int8Array, 8, values, _int8)


def bools(values: Sequence[bool | None]) -> BinaryArray:
    """`bool[]`."""
    return _fixed(BoolArray, 1, values, _FLAG)


def times(values: Sequence[int | None]) -> BinaryArray:
    """`timestamptz[]` of microseconds since 1970."""
    return _fixed(TimeArray, 8, values, encode_time)


def encode_time(at: int) -> bytes:
    """A `timestamptz` of microseconds since 1970."""
    return _int8(at - UNIX_EPOCH_US)


_BY_COLUMN: dict[Column, Callable[[Sequence[Any]], BinaryArray]] = {
    Column.UUID: uuids,
    Column.KEY: uuids,
    Column.TEXT: texts,
    Column.INT: ints,
    Column.BIGINT: bigints,
    Column.BOOL: bools,
    Column.TIME: times,
}


def column(kind: Column, values: Sequence[Any]) -> BinaryArray:
    """The array of one column of a `Table`."""
    return _BY_COLUMN[kind](values)


def _fixed(
    kind: type[BinaryArray],
    width: int,
    values: Sequence[Any],
    encode: Callable[[Any], bytes] | None,
) -> BinaryArray:
    """An array whose elements are all `width` bytes long; `encode` is None for bytes."""
    count = len(values)
    if not count:
        return kind(b"", 0, False)
    prefix = _int4(width)
    if count > 1 and values.count(values[0]) == count:
        first = values[0]
        if first is not None and encode is not None:
            first = encode(first)
        return _repeat(kind, _NULL if first is None else prefix + _sized(first, width), count)
    if None in values:
        body = b"".join(
            _NULL if value is None else prefix + (encode(value) if encode else value)
            for value in values
        )
        width_of_all = (4 + width) * count - width * values.count(None)
        return kind(_sized(body, width_of_all), count, True)
    elements: Iterable[bytes] = map(encode, values) if encode else values
    return kind(_sized(prefix + prefix.join(elements), (4 + width) * count), count, False)


def _repeat(kind: type[BinaryArray], element: bytes, count: int) -> BinaryArray:
    return kind(element * count, count, element == _NULL)


def _text(value: str | None) -> bytes:
    if value is None:
        return _NULL
    encoded = value.encode()
    return _int4(len(encoded)) + encoded


def _sized(body: bytes, expected: int) -> bytes:
    # One wrong length would shift every element after it, and the server might not notice.
    if len(body) != expected:
        raise ValueError(f"an array element has the wrong length: {len(body)} for {expected} bytes")
    return body
