"""Hand-built arrays arrive as what they were built from."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import pytest
from psycopg.adapt import PyFormat, Transformer

from holdfast.store.op import Column
from holdfast.store.postgres import values as arrays
from holdfast.store.postgres.values import NeutralCursor

ID = bytes(range(16))
OTHER = bytes(range(16, 32))
NOW = 1_794_778_469_003_715

COLUMNS: list[tuple[Column, str, list[Any]]] = [
    (Column.UUID, "uuid[]", [ID, OTHER, bytes(16)]),
    (Column.KEY, "uuid[]", [ID, OTHER]),
    (Column.TEXT, "text[]", ["", "a", "é€😀", "NULL", '{"x": "\\u0000"}', "a" * 5000]),
    (Column.INT, "int4[]", [0, -1, 2**31 - 1, -(2**31)]),
    (Column.BIGINT, "int8[]", [0, -1, 2**63 - 1, -(2**63)]),
    (Column.BOOL, "bool[]", [True, False, True]),
    (Column.TIME, "timestamptz[]", [0, NOW, -1, 946_684_800_000_000]),
]


def shapes(values: list[Any]) -> list[list[Any]]:
    """The forms a column takes: mixed, with nulls, constant, alone, none at all."""
    first = values[0]
    return [
        values,
        [None, *values, None],
        [first] * 7,
        [None] * 3,
        [first],
        [None],
        [],
        [first, first, values[1]],
    ]


@pytest.mark.parametrize(("kind", "sql_type", "values"), COLUMNS)
def test_round_trip(postgres_url: str, kind: Column, sql_type: str, values: list[Any]) -> None:
    with psycopg.connect(postgres_url) as connection:
        for shape in shapes(values):
            cursor = NeutralCursor(connection)
            sql = f"SELECT $1, pg_typeof($1)::text, array_position($1, NULL), $1 = $2::{sql_type}"
            literal = None if kind in (Column.TIME,) else _literal(kind, shape)
            cursor.execute(sql.encode(), [arrays.ENCODERS[kind](shape), literal], binary=True)
            [(back, type_name, null_at, equal)] = cursor.rows()
            assert back == shape
            assert type_name == sql_type.replace("int4", "integer").replace(
                "int8", "bigint"
            ).replace("bool", "boolean").replace("timestamptz", "timestamp with time zone")
            assert null_at == (shape.index(None) + 1 if None in shape else None)
            assert equal is (None if literal is None else True)


def _literal(kind: Column, values: Sequence[Any]) -> str:
    """The array as text, for the server's own parser."""

    def item(value: Any) -> str:
        if value is None:
            return "NULL"
        text = value.hex() if isinstance(value, bytes) else str(value)
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return "{" + ",".join(map(item, values)) + "}"


@pytest.mark.parametrize("bad", [[b"short"], [ID, b"x" * 15, b"x" * 16], [None, b""], [ID[:4]] * 3])
def test_an_id_of_wrong_length_is_refused(bad: list[bytes]) -> None:
    with pytest.raises(ValueError, match="wrong length"):
        arrays.uuids(bad)


def test_two_wrong_lengths_that_cancel_out_are_refused(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        cursor = NeutralCursor(connection)
        with pytest.raises(psycopg.Error):
            cursor.execute(b"SELECT $1", [arrays.uuids([b"x" * 15, b"x" * 17])], binary=True)


@pytest.mark.parametrize(
    ("build", "values"),
    [
        (arrays.uuids, [16]),
        (arrays.uuids, [16, 1]),
        (arrays.ints, [2**31]),
        (arrays.bigints, [2**63]),
        (arrays.ints, ["1"]),
        (arrays.texts, [1]),
    ],
)
def test_a_value_of_wrong_type_or_size_fails_before_anything_is_sent(
    build: Callable[[Any], object], values: list[Any]
) -> None:
    with pytest.raises(
        Exception, match=r"format requires|required argument|encode|too large|no len|bytes-like"
    ):
        build(values)


@pytest.mark.alone
def test_building_costs_less_than_the_drivers_lists() -> None:
    ids = [os.urandom(16) for _ in range(500)]
    as_uuids = [uuid.UUID(bytes=id) for id in ids]
    names = [f"name-{n}" for n in range(500)]
    numbers = list(range(500))

    def driver(values: list[Any]) -> object:
        return Transformer().get_dumper(values, PyFormat.BINARY).dump(values)

    pairs: list[tuple[Callable[[], object], Callable[[], object], float]] = [
        (lambda: arrays.uuids(ids), lambda: driver(as_uuids), 0.3),
        (lambda: arrays.texts(names), lambda: driver(names), 0.8),
        (lambda: arrays.bigints(numbers), lambda: driver(numbers), 0.8),
        (lambda: arrays.texts(["default"] * 500), lambda: driver(names), 0.2),
    ]
    for ours, theirs, most in pairs:
        ratio = min(_seconds(ours) / _seconds(theirs) for _ in range(5))
        assert ratio < most


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    for _ in range(50):
        work()
    return time.perf_counter() - begun
