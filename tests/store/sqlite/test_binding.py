from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from holdfast.core.errors import StoreError
from holdfast.store.op import (
    Alike,
    At,
    Changes,
    Column,
    Ints,
    Keys,
    Row,
    Statement,
    Table,
    Texts,
    Uuids,
)
from holdfast.store.sqlite.binding import Execution, SqliteBinder, prepare, value

ONE = UUID("0190163d-8694-739b-aea5-966c26f8ad91")
TWO = UUID("0190163d-8694-739b-aea5-966c26f8ad92")


def test_parameters_are_numbered_in_the_order_of_their_first_use() -> None:
    found = prepare("SELECT :b, :a, :b, :now")

    assert found.sql == "SELECT ?1, ?2, ?1, ?3"
    assert found.names == ("b", "a", "now")
    assert found.now == 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ':no', 'it''s :no'",
        'SELECT ":no"',
        "SELECT 1 -- :no\n",
        "SELECT 1 /* :no\n :no */",
        "SELECT CAST('12:30' AS TEXT)",
        "SELECT a::no",
    ],
)
def test_what_only_looks_like_a_parameter_stays(text: str) -> None:
    assert prepare(text).sql == text
    assert prepare(text).names == ()


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        (ONE.bytes, str(ONE)),
        (b"log line", b"log line"),
        (At(5), 5),
        (True, 1),
        (None, None),
        ("text", "text"),
        (7, 7),
        (Uuids([]), "[]"),
        (Uuids([ONE.bytes, TWO.bytes]), f'["{ONE}","{TWO}"]'),
        (Texts(['a"b', None, "ü"]), '["a\\"b",null,"ü"]'),
        (Ints([]), "[]"),
        (Ints([1, 2]), "[1,2]"),
        (Keys([1, 2]), "[1,2]"),
        (Keys([ONE.bytes]), f'["{ONE}"]'),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_a_neutral_value_is_bound(given: Any, bound: Any) -> None:
    found = value(given)

    assert found == bound
    assert type(found) is type(bound)


def test_changes_keep_each_row_with_its_own_token() -> None:
    changes = Changes(
        [
            (1, ONE.bytes, ["null", None, At(9), TWO.bytes]),
            (2, TWO.bytes, []),
            (3, ONE.bytes, {"result": "{}", "id": ONE.bytes}),
        ]
    )

    assert json.loads(value(changes)) == [
        [1, str(ONE), "null", None, 9, str(TWO)],
        [2, str(TWO)],
        [3, str(ONE), {"result": "{}", "id": str(ONE)}],
    ]


def test_long_texts_of_changes_stand_beside_the_json() -> None:
    binder = SqliteBinder(lambda name: [":changes :changes_texts"])
    rows = [(1, ONE.bytes, (7, "äö", 8)), (2, TWO.bytes, (7, "", 8)), (3, TWO.bytes, (7, "ab", 8))]

    (call,) = binder.bind(Statement("x", {"changes": Changes(rows, text=1)}))

    assert call.values is not None
    changes, texts = call.values
    assert json.loads(changes) == [
        [1, str(ONE), 7, 1, 4, 8],
        [2, str(TWO), 7, 5, 0, 8],
        [3, str(TWO), 7, 5, 2, 8],
    ]
    assert bytes(texts) == "äöab".encode()


def test_text_survives_the_way_through_json() -> None:
    awkward = 'quote " backslash \\ newline \n ü \U0001f980 \\u0000 \x7f'
    connection = sqlite3.connect(":memory:")

    ((found,),) = connection.execute(
        "SELECT value FROM json_each(?)", (value(Texts([awkward])),)
    ).fetchall()
    connection.close()

    assert found == awkward


def test_a_statement_of_several_texts_shares_parameters_and_time() -> None:
    binder = SqliteBinder(lambda name: ["UPDATE t SET a = :a WHERE at < :now", "SELECT :now, :b"])

    calls = binder.bind(Statement("x", {"a": 1, "b": 2, "unused": 3}))

    assert [call.at(99).values for call in calls] == [[1, 99], [99, 2]]


def test_now_can_be_given() -> None:
    binder = SqliteBinder(lambda name: ["SELECT :now"])

    (call,) = binder.bind(Statement("x", {"now": At(1)}))

    assert call.at(99).values == [1]


def test_a_missing_parameter_is_named() -> None:
    binder = SqliteBinder(lambda name: ["SELECT :there, :missing"])

    with pytest.raises(StoreError, match="missing"):
        binder.bind(Statement("x", {"there": 1}))


COLUMNS = {"id": Column.UUID, "name": Column.TEXT, "parent": Column.UUID}
ROWS = [(ONE.bytes, "a", None), (TWO.bytes, "b", ONE.bytes)]


def test_rows_in_the_order_of_the_columns() -> None:
    binder = SqliteBinder(lambda name: ["INSERT INTO t VALUES (:id, :name, :parent)"])

    (call,) = binder.bind(Statement("x", table=Table(COLUMNS, ROWS)))

    assert call.values is None
    assert list(call.rows) == [[str(ONE), "a", None], [str(TWO), "b", str(ONE)]]
    assert not call.returns


def test_rows_in_another_order_with_shared_values() -> None:
    binder = SqliteBinder(lambda name: ["INSERT INTO t VALUES (:now, :name, :queue, :id)"])

    (call,) = binder.bind(Statement("x", {"queue": "q"}, table=Table(COLUMNS, ROWS)))

    # The columns first, in their own order: a row is bound almost as it is.
    assert call.sql == "INSERT INTO t VALUES (?3, ?2, ?4, ?1)"
    assert list(call.at(9).rows) == [[str(ONE), "a", 9, "q"], [str(TWO), "b", 9, "q"]]


def test_rows_of_a_single_column() -> None:
    binder = SqliteBinder(lambda name: ["DELETE FROM t WHERE name = :name"])

    (call,) = binder.bind(Statement("x", table=Table(COLUMNS, ROWS)))

    assert call.sql == "DELETE FROM t WHERE name = ?1"
    assert list(call.rows) == [["a"], ["b"]]


def test_a_text_that_returns_rows_says_so() -> None:
    binder = SqliteBinder(lambda name: ["DELETE FROM t WHERE name = :name RETURNING id"])

    (call,) = binder.bind(Statement("x", table=Table(COLUMNS, ROWS)))

    assert call.returns


def test_a_text_without_columns_runs_once() -> None:
    binder = SqliteBinder(lambda name: ["INSERT INTO t VALUES (:id)", "SELECT count(*) FROM t"])

    insert, select = binder.bind(Statement("x", table=Table(COLUMNS, ROWS)))

    assert len(insert.rows) == 2
    assert select.values == []


TEXTS = {
    "each": ["INSERT INTO t (a, b, c) VALUES (:id, :name, :parent)"],
    "alike": ["INSERT INTO t (a, b, c) SELECT a, b, :parent FROM json_each(:rows) WHERE :now"],
}


def bound(rows: Sequence[Row], **options: bool) -> list[Execution]:
    table = Table(COLUMNS, rows, Alike("alike", own=2))
    return SqliteBinder(TEXTS.__getitem__).bind(Statement("each", table=table), **options)


def test_rows_that_are_alike_are_written_at_once() -> None:
    (call,) = bound([(ONE.bytes, "a", TWO.bytes), (TWO.bytes, "b", TWO.bytes)])

    assert call.all_or_none
    assert call.sql == "INSERT INTO t (a, b, c) SELECT a, b, ?1 FROM json_each(?2) WHERE ?3"
    assert call.at(7).values == [str(TWO), f'[["{ONE}","a"],["{TWO}","b"]]', 7]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS[:1],
        ROWS,
        [(ONE.bytes, "a\x00b", None), (TWO.bytes, "b", None)],
    ],
    ids=["one", "not alike", "a NUL, which does not travel in JSON"],
)
def test_other_rows_are_written_one_by_one(rows: Sequence[Row]) -> None:
    (call,) = bound(rows)

    assert not call.all_or_none
    assert [row[1] for row in call.rows] == [row[1] for row in rows]


def test_rows_that_are_alike_can_be_written_one_by_one() -> None:
    rows = [(ONE.bytes, "a", None), (TWO.bytes, "b", None)]

    (call,) = bound(rows, row_by_row=True)

    assert list(call.rows) == [[str(ONE), "a", None], [str(TWO), "b", None]]
