"""Our cursors speak neutral types, and only ours do."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from typing import Any

import psycopg
import pytest
from psycopg.adapt import Loader
from psycopg.rows import DictRow, dict_row

from holdfast.core.status import TaskStatus
from holdfast.store.op import At
from holdfast.store.postgres.values import Jsonb, NeutralCursor

ID = bytes(range(16))
AT = At(1_794_778_469_003_715)


def ask(connection: psycopg.Connection[Any], sql: str, *params: Any) -> tuple[Any, ...]:
    cursor = NeutralCursor(connection)
    cursor.execute(sql.encode(), params or None, binary=True)
    [row] = cursor.rows()
    return row


@pytest.mark.parametrize("binary", [True, False])
def test_what_comes_back(postgres_url: str, binary: bool) -> None:
    with psycopg.connect(postgres_url) as connection:
        cursor = NeutralCursor(connection)
        cursor.execute(
            """
            SELECT '00010203-0405-0607-0809-0a0b0c0d0e0f'::uuid,
                   '2026-11-15 21:34:29.003715+00'::timestamptz,
                   '{00010203-0405-0607-0809-0a0b0c0d0e0f,NULL}'::uuid[],
                   true, 1::smallint, 2::int, 3::bigint, 'é'::text, NULL::uuid,
                   '{"a": 1}'::json, '{"a": 1}'::jsonb, 0.5::float8
            """,
            binary=binary,
        )
        assert cursor.rows() == [
            (ID, AT, [ID, None], True, 1, 2, 3, "é", None, '{"a": 1}', '{"a": 1}', 0.5)
        ]


@pytest.mark.parametrize("at", [0, 1, -1, AT, 946_684_800_000_000, 253_402_300_799_999_999])
def test_times_are_exact_to_the_microsecond(postgres_url: str, at: int) -> None:
    with psycopg.connect(postgres_url, options="-c timezone=Asia/Kolkata") as connection:
        back, text = ask(connection, "SELECT $1, to_char($1 AT TIME ZONE 'UTC', 'US')", At(at))
        assert back == at
        assert int(text) == at % 1_000_000


def test_parameters_have_fixed_types(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        types = ask(
            connection,
            "SELECT " + ", ".join(f"pg_typeof(${n})::text" for n in range(1, 9)),
            *(ID, AT, 1, 2**40, "text", True, TaskStatus.PENDING, Jsonb("{}")),
        )
    assert types == (
        "uuid",
        "timestamp with time zone",
        "bigint",
        "bigint",
        "text",
        "boolean",
        "text",
        "jsonb",
    )


def test_an_enum_is_its_value(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert ask(connection, "SELECT $1", TaskStatus.PENDING) == ("PENDING",)


def test_bytes_that_are_no_id_are_refused(postgres_url: str) -> None:
    with (
        psycopg.connect(postgres_url) as connection,
        pytest.raises(psycopg.DataError, match="16 bytes"),
    ):
        ask(connection, "SELECT $1", b"payload")


def test_jsonb_is_exact(postgres_url: str) -> None:
    result = json.dumps({"nul": "\x00", "text": "é\\u0000"})
    assert "\\u0000" in result
    with psycopg.connect(postgres_url) as connection:
        [back] = ask(connection, "SELECT $1 ->> 'r'", Jsonb(json.dumps({"r": result})))
    assert back == result


def test_the_callers_connection_keeps_its_own_ways(postgres_url: str) -> None:
    class Shouting(Loader):
        def load(self, data: Any) -> str:
            return bytes(data).decode().upper()

    with psycopg.Connection[DictRow].connect(postgres_url, row_factory=dict_row) as connection:
        connection.adapters.register_loader("text", Shouting)
        assert ask(connection, "SELECT 'quiet'::text") == ("quiet",)
        row = connection.execute(
            "SELECT 'loud'::text AS t, %s::uuid AS u, %s AS b, now() AS n",
            (uuid.UUID(bytes=ID), b"raw"),
        ).fetchone()
        assert row is not None
        assert row["t"] == "LOUD"
        assert row["u"] == uuid.UUID(bytes=ID)
        assert row["b"] == b"raw"
        assert isinstance(row["n"], dt.datetime)


def test_a_statement_without_rows_answers_none(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        cursor = NeutralCursor(connection)
        cursor.execute(b"CREATE TEMP TABLE t (a int)")
        assert cursor.rows() == []
        cursor.execute(b"SELECT a FROM t")
        assert cursor.rows() == []
