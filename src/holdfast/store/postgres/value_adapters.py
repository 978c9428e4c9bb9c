"""How values cross between Python and PostgreSQL on our cursors.

Owns one map of adapters and the cursors that use it. The map hangs on the cursor and
never on the connection, so a caller's own connection keeps its own adapters while we
use it, and whatever the caller has registered does not reach us.

    bytes of length 16 <-> uuid        At  -> timestamptz -> int (µs since 1970)
    int  -> int8                       str -> text
    json, jsonb -> str                 BinaryArray, Jsonb -> their type

Parameters have fixed types (an int is always int8, whatever its size): a prepared
statement is looked up by the types of its parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import Any, cast

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.pq import Format
from psycopg.rows import TupleRow, tuple_row
from psycopg.types.bool import BoolBinaryDumper, BoolBinaryLoader, BoolLoader
from psycopg.types.datetime import TimestamptzLoader
from psycopg.types.numeric import (
    FloatBinaryDumper,
    Int2BinaryLoader,
    Int4BinaryLoader,
    Int8BinaryDumper,
    Int8BinaryLoader,
    IntLoader,
)
from psycopg.types.string import (
    ByteaBinaryLoader,
    ByteaLoader,
    StrBinaryDumper,
    TextBinaryLoader,
    TextLoader,
)

from holdfast.store.op import At
from holdfast.store.postgres.arrays import (
    UNIX_EPOCH_US,
    BinaryArray,
    BoolArray,
    BytesArray,
    Int4Array,
    Int8Array,
    TextArray,
    TimeArray,
    UuidArray,
    encode_time,
)

_unpack_int8 = cast("Callable[[Buffer], tuple[int]]", Struct("!q").unpack)
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Jsonb:
    """JSON text that is a `jsonb` from the start.

    Sent as text and cast, it would be parsed anew for every row that looks into it.
    """

    __slots__ = ("data",)

    def __init__(self, text: str) -> None:
        # The first byte is the version of the binary format.
        self.data = b"\x01" + text.encode()


class _IdDumper(Dumper):
    oid = 2950
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        if len(obj) != 16:
            raise psycopg.DataError(f"an id is 16 bytes long, not {len(obj)}")
        return obj


class _AtDumper(Dumper):
    oid = 1184
    format = Format.BINARY

    def dump(self, obj: At) -> bytes:
        return encode_time(obj)


class _EncodedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: BinaryArray | Jsonb) -> bytes:
        return obj.data


class _JsonbDumper(_EncodedDumper):
    oid = 3802


class _AtLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return _unpack_int8(data)[0] + UNIX_EPOCH_US


class _AtTextLoader(TimestamptzLoader):
    def load(self, data: Buffer) -> int:  # type: ignore[override]
        return (super().load(data) - _UNIX_EPOCH) // _MICROSECOND


class _IdTextLoader(Loader):
    def load(self, data: Buffer) -> bytes:
        return bytes.fromhex(bytes(data).replace(b"-", b"").decode())


class _JsonbTextLoader(Loader):
    format = Format.BINARY

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._text = TextBinaryLoader(oid, context)

    def load(self, data: Buffer) -> bytes | str:
        return self._text.load(bytes(data)[1:])


def _adapters() -> AdaptersMap:
    known = AdaptersMap(psycopg.adapters)
    known.register_dumper(bytes, _IdDumper)
    known.register_dumper(At, _AtDumper)
    known.register_dumper(int, Int8BinaryDumper)
    known.register_dumper(bool, BoolBinaryDumper)
    known.register_dumper(float, FloatBinaryDumper)
    known.register_dumper(str, StrBinaryDumper)
    known.register_dumper(Jsonb, _JsonbDumper)
    kinds = (UuidArray, TextArray, Int4Array, Int8Array, BoolArray, TimeArray, BytesArray)
    for kind in kinds:
        known.register_dumper(
            kind, type(f"_{kind.__name__}Dumper", (_EncodedDumper,), {"oid": kind.oid})
        )

    # Every type of our columns is named, so that nothing an application has registered
    # globally changes what the rows look like. `bytea` is the fastest way to 16 bytes.
    loaders: dict[str, tuple[type[Any], type[Any]]] = {
        "uuid": (ByteaBinaryLoader, _IdTextLoader),
        "bytea": (ByteaBinaryLoader, ByteaLoader),
        "timestamptz": (_AtLoader, _AtTextLoader),
        "bool": (BoolBinaryLoader, BoolLoader),
        "int2": (Int2BinaryLoader, IntLoader),
        "int4": (Int4BinaryLoader, IntLoader),
        "int8": (Int8BinaryLoader, IntLoader),
        "text": (TextBinaryLoader, TextLoader),
        "varchar": (TextBinaryLoader, TextLoader),
        "name": (TextBinaryLoader, TextLoader),
        "json": (TextBinaryLoader, TextLoader),
        "jsonb": (_JsonbTextLoader, TextLoader),
    }
    for name, (binary, text) in loaders.items():
        known.register_loader(name, text)
        known.register_loader(name, binary)
    return known


_ADAPTERS = _adapters()


class NeutralCursor(psycopg.RawCursor[TupleRow]):
    """A cursor over any sync connection that speaks the store's neutral types."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(connection, row_factory=tuple_row)

    @property
    def adapters(self) -> AdaptersMap:
        return _ADAPTERS

    def rows(self) -> list[TupleRow]:
        """All rows of the answer; none for a statement that returns nothing."""
        return [] if self.rownumber is None else self.fetchall()


class AsyncNeutralCursor(psycopg.AsyncRawCursor[TupleRow]):
    """The same over an async connection."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        super().__init__(connection, row_factory=tuple_row)

    @property
    def adapters(self) -> AdaptersMap:
        return _ADAPTERS

    async def rows(self) -> list[TupleRow]:
        """All rows of the answer; none for a statement that returns nothing."""
        return [] if self.rownumber is None else await self.fetchall()
