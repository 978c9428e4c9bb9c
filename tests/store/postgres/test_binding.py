"""Statements become numbered SQL and encoded parameters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from holdfast.store.op import (
    Alike,
    At,
    Changes,
    Channel,
    Column,
    Hint,
    Ints,
    Keys,
    Statement,
    Table,
    Texts,
    Uuids,
)
from holdfast.store.postgres.binding import PostgresBinder
from holdfast.store.postgres.values import Jsonb, NeutralCursor

ID = bytes(range(16))
OTHER = bytes(range(16, 32))
TOKEN = bytes(range(32, 48))
AT = At(1_794_778_469_003_715)

Run = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def run(postgres_url: str) -> Run:
    """Bind a statement of this text and execute it."""

    def execute(text: str, statement: Statement) -> list[tuple[Any, ...]]:
        query = PostgresBinder(None, lambda name: text).bind(statement)
        with psycopg.connect(postgres_url) as connection:
            cursor = NeutralCursor(connection)
            cursor.execute(query.sql, query.params, binary=True)
            return cursor.rows()

    return execute


def test_parameters_are_numbered_by_first_use() -> None:
    text = "SELECT :b, :a, :b::int, 5 % 2 WHERE x LIKE ':a'"
    query = PostgresBinder(None, lambda name: text).bind(
        Statement("any", {"a": 1, "b": 2, "unused": 3})
    )
    assert query.sql == b"SELECT $1, $2, $1::int, 5 % 2 WHERE x LIKE ':a'"
    assert query.params == [2, 1]


def test_a_text_is_read_once() -> None:
    asked: list[str] = []

    def text(name: str) -> str:
        asked.append(name)
        return "SELECT 1"

    binder = PostgresBinder(None, text)
    for _ in range(3):
        binder.bind(Statement("one"))
    assert asked == ["one"]


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(LookupError, match=r"'claim' lacks the parameter 'queue'"):
        PostgresBinder(None, lambda name: "SELECT :queue").bind(Statement("claim"))


def test_batches(run: Run) -> None:
    statement = Statement(
        "batches",
        {
            "ids": Uuids([ID, OTHER]),
            "keys": Keys([OTHER]),
            "names": Texts(["a", None]),
            "numbers": Ints([2**40]),
            "none": Uuids(),
            "at": AT,
        },
    )
    text = "SELECT :ids, :keys, :names, :numbers, :none, :at"
    assert run(text, statement) == [([ID, OTHER], [OTHER], ["a", None], [2**40], [], AT)]


def test_a_table_is_one_array_per_column(run: Run) -> None:
    columns = {"id": Column.KEY, "body": Column.TEXT, "at": Column.TIME, "flag": Column.BOOL}
    rows = [(ID, "a", int(AT), True), (OTHER, None, None, False)]
    text = "SELECT * FROM unnest(:id, :body, :at, :flag)"
    assert run(text, Statement("t", table=Table(columns, rows))) == rows
    assert run(text, Statement("t", table=Table(columns, []))) == []


def test_changes_are_looked_up_by_id(run: Run) -> None:
    result = json.dumps({"nul": "\x00", "deep": [1, {"é": "\ud83d\ude00"}]}, ensure_ascii=True)
    changes = Changes(
        [
            (ID, TOKEN, [result, 5, None, True, AT, OTHER]),
            (OTHER, TOKEN, ["", -1, None, False, At(0), ID]),
        ]
    )
    text = """
        SELECT id, (change ->> 0)::uuid, change ->> 1, (change ->> 2)::bigint, change ->> 3,
               (change ->> 4)::bool, (change ->> 5)::timestamptz, (change ->> 6)::uuid
        FROM unnest(:changes_ids) AS id,
             LATERAL (SELECT :changes -> encode(uuid_send(id), 'hex')) AS c (change)
    """
    assert run(text, Statement("c", {"changes": changes})) == [
        (ID, TOKEN, result, 5, None, True, AT, OTHER),
        (OTHER, TOKEN, "", -1, None, False, 0, ID),
    ]


def test_changes_may_name_their_fields(run: Run) -> None:
    changes = Changes([(ID, TOKEN, {"verb": "retry", "delay_us": 5, "error": 'a"\\u0000"'})])
    text = """
        SELECT wish.* FROM jsonb_to_record(:changes -> encode(uuid_send(:id), 'hex'))
            AS wish (token uuid, verb text, delay_us bigint, error text)
    """
    statement = Statement("c", {"changes": changes, "id": ID})
    assert run(text, statement) == [(TOKEN, "retry", 5, 'a"\\u0000"')]


def test_a_dict_is_jsonb() -> None:
    query = PostgresBinder(None, lambda name: "SELECT :o").bind(Statement("d", {"o": {"a": [1]}}))
    [value] = query.params
    assert isinstance(value, Jsonb)
    assert value.data == b'\x01{"a":[1]}'


def test_an_integer_key_belongs_to_the_other_engine() -> None:
    with pytest.raises(TypeError, match="task's id"):
        PostgresBinder(None, lambda name: "").bind(Statement("c", {"x": Changes([(1, TOKEN, [])])}))


@pytest.mark.parametrize(
    ("schema", "channel"),
    [
        (None, "holdfast_ready"),
        ("queue", "queue.holdfast_ready"),
        ("s" * 63, "s" * 30 + "_"),
    ],
)
def test_a_hint_is_bound_for_the_schema(run: Run, schema: str | None, channel: str) -> None:
    binder = PostgresBinder(schema, lambda name: "SELECT :hint_channel, :hint_payloads")
    statement = Statement("h", hint=Hint(Channel.READY, ["a", "b"]))
    name, _ = binder.bind(statement).params
    assert name.startswith(channel)
    assert name.endswith("holdfast_ready")
    assert len(name) <= 63

    text = "SELECT :hint_payloads"
    assert run(text, statement) == [(["a", "b"],)]
    assert run(text, Statement("h")) == [([],)]


def test_payloads_that_are_not_due_stay_away() -> None:
    binder = PostgresBinder(None, lambda name: "SELECT :hint_payloads")
    statement = Statement("h", hint=Hint(Channel.READY, ["a", "b"]))
    [few] = binder.bind(statement, ["b"]).params
    [all_] = binder.bind(statement).params
    assert b"a" not in few.data
    assert b"a" in all_.data


COLUMNS = {"id": Column.UUID, "body": Column.TEXT, "note": Column.TEXT, "at": Column.TIME}
TEXTS = {
    "rows": """
        SELECT id, body, note, at
        FROM unnest(:id::uuid[], :body::text[], :note::text[], :at::timestamptz[])
            AS row (id, body, note, at)
    """,
    "rows_alike": """
        SELECT id, body, :note::text, :at::timestamptz
        FROM unnest(:id::uuid[], :body::text[]) AS row (id, body)
    """,
}
ALIKE = Alike("rows_alike", own=2)


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([], "rows"),
        ([(ID, "one", None, None)], "rows_alike"),
        ([(ID, "one", "a", int(AT)), (OTHER, "two", "a", int(AT))], "rows_alike"),
        ([(ID, None, None, int(AT)), (ID, None, None, int(AT))], "rows_alike"),
        ([(ID, "same", "a", int(AT)), (OTHER, "same", "b", int(AT))], "rows"),
        ([(ID, "same", "a", None), (OTHER, "same", "a", int(AT))], "rows"),
    ],
)
def test_rows_that_are_alike_have_a_text_of_their_own(
    postgres_url: str, rows: list[tuple[Any, ...]], name: str
) -> None:
    query = PostgresBinder(None, TEXTS.__getitem__).bind(
        Statement("rows", table=Table(COLUMNS, rows, ALIKE))
    )
    assert query.name == name
    with psycopg.connect(postgres_url) as connection:
        cursor = NeutralCursor(connection)
        cursor.execute(query.sql, query.params, binary=True)
        assert cursor.rows() == rows


EVERY_KIND = {
    "id": Column.UUID,
    "key": Column.KEY,
    "body": Column.TEXT,
    "small": Column.INT,
    "large": Column.BIGINT,
    "flag": Column.BOOL,
    "at": Column.TIME,
    "blob": Column.BYTES,
}
OF_EVERY_KIND = """
    SELECT id, key, body, small, large, flag, at, blob
    FROM unnest(
        :id::uuid[], :key::uuid[], :body::text[], :small::int[], :large::bigint[],
        :flag::bool[], :at::timestamptz[], :blob::bytea[]
    ) AS row (id, key, body, small, large, flag, at, blob)
"""


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(
    "rest",
    [
        (OTHER, "text", -5, 2**40, True, int(AT), b"any length"),
        (None, None, None, None, None, None, None),
    ],
)
def test_a_column_of_every_kind(run: Run, count: int, rest: tuple[Any, ...]) -> None:
    rows = [(bytes([number] * 16), *rest) for number in range(count)]
    assert run(OF_EVERY_KIND, Statement("rows", table=Table(EVERY_KIND, rows))) == rows
