"""Arrays in PostgreSQL's binary format, built by hand.

Owns the encoding of whole columns. A claim or a bulk send carries hundreds of ids at
once, and a driver that adapts a list looks at every element in Python; joining
prepared bytes is one call into C. Per element, against psycopg's own lists: uuid 0.01 µs
for 0.36, text 0.16 for 0.46, integers 0.06 for 0.33.

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


class BinaryArray:
    """An encoded array, ready to be sent as one parameter."""

    __slots__ = ("data",)

    oid: ClassVar[int]
    element_oid: ClassVar[int]

    def __init__(self, data: bytes) -> None:
        self.data = data


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


class BytesArray(BinaryArray):
    """`bytea[]`."""

    __slots__ = ()
    oid, element_oid = 1001, 17


class Encoder:
    """Encodes arrays of one type.

    `width` is None where elements differ in length, `encode` where they are bytes already.
    """

    __slots__ = ("_kind", "_width", "_prefix", "_encode", "_one", "_one_null")

    def __init__(
        self,
        kind: type[BinaryArray],
        width: int | None,
        encode: Callable[[Any], bytes] | None,
    ) -> None:
        self._kind = kind
        self._width = width
        self._prefix = b"" if width is None else _int4(width)
        self._encode = encode
        self._one = self._head(1, has_null=False)
        self._one_null = kind(self._head(1, has_null=True) + _NULL)

    def __call__(self, values: Sequence[Any]) -> BinaryArray:
        """The array of these values; None is NULL."""
        count = len(values)
        if count == 0:
            # An empty array has no dimensions, and then no bounds follow.
            return self._kind(_head(0, 0, self._kind.element_oid, 0, 0)[:12])
        if count == 1:
            return self.one(values[0])
        if values.count(values[0]) == count:
            return self._repeat(values[0], count)
        if None in values:
            body = b"".join([_NULL if v is None else self._element(v) for v in values])
            return self._kind(self._head(count, has_null=True) + body)
        body = self._variable(values) if self._width is None else self._fixed(values, self._width)
        return self._kind(self._head(count, has_null=False) + body)

    def one(self, value: Any) -> BinaryArray:
        """The array of a single value."""
        if value is None:
            return self._one_null
        return self._kind(self._one + self._element(value))

    def _repeat(self, value: Any, count: int) -> BinaryArray:
        element = _NULL if value is None else self._element(value)
        return self._kind(self._head(count, has_null=value is None) + element * count)

    def _fixed(self, values: Sequence[Any], width: int) -> bytes:
        elements: Iterable[bytes] = values if self._encode is None else map(self._encode, values)
        body = self._prefix + self._prefix.join(elements)
        return _sized(body, (4 + width) * len(values))

    def _variable(self, values: Sequence[Any]) -> bytes:
        encoded = list(values if self._encode is None else map(self._encode, values))
        parts: list[bytes] = [b""] * (2 * len(encoded))
        parts[::2] = map(_int4, map(len, encoded))
        parts[1::2] = encoded
        return b"".join(parts)

    def _element(self, value: Any) -> bytes:
        encoded: bytes = value if self._encode is None else self._encode(value)
        if self._width is None:
            return _int4(len(encoded)) + encoded
        return self._prefix + _sized(encoded, self._width)

    def _head(self, count: int, *, has_null: bool) -> bytes:
        return _head(1, has_null, self._kind.element_oid, count, 1)


def encode_time(at: int) -> bytes:
    """A `timestamptz` of microseconds since 1970."""
    return _int8(at - UNIX_EPOCH_US)


def _sized(body: bytes, expected: int) -> bytes:
    # One wrong length would shift every element after it, and the server might not notice.
    if len(body) != expected:
        raise ValueError(f"an array element has the wrong length: {len(body)} for {expected} bytes")
    return body


uuids = Encoder(UuidArray, 16, None)
"""`uuid[]` of 16-byte ids."""
texts = Encoder(TextArray, None, str.encode)
"""`text[]`."""
ints = Encoder(Int4Array, 4, _int4)
"""`int4[]`."""
bigints = Encoder(Int8Array, 8, _int8)
"""`int8[]`."""
bools = Encoder(BoolArray, 1, {True: b"\x01", False: b"\x00"}.__getitem__)
"""`bool[]`."""
times = Encoder(TimeArray, 8, encode_time)
"""`timestamptz[]` of microseconds since 1970."""
bytea = Encoder(BytesArray, None, None)
"""`bytea[]`."""

ENCODERS = {
    Column.UUID: uuids,
    Column.KEY: uuids,
    Column.TEXT: texts,
    Column.INT: ints,
    Column.BIGINT: bigints,
    Column.BOOL: bools,
    Column.TIME: times,
    Column.BYTES: bytea,
}
"""How each column of a `Table` is encoded."""
