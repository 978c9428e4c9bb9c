"""Rows that cannot be read: an operator's way to be rid of them.

Owns their deletion by raw key: what stands in the database, because such a row may have no id. A
row that can be read is a task, and is never touched here, whatever its status.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.errors import UnreadableRow
from holdfast.store import rows
from holdfast.store.op import Ints, Key, Keys, Statement, Steps, Texts, writes
from holdfast.store.verbs.inspect import by_id

_LARGEST_KEY = 2**63 - 1
_MOST_DIGITS = len(str(_LARGEST_KEY))


@writes
def delete_unreadable(raw_keys: Sequence[str]) -> Steps[dict[str, bool]]:
    """Delete the unreadable rows of tasks with these keys; True for each that is gone.

    A key is what lists and the log name a row by: its id; on SQLite also the number of the row, or
    the text that stands in place of the id.
    """
    # Longer ones Python refuses to read as a number.
    digits = [key for key in raw_keys if key.isdecimal() and len(key) <= _MOST_DIGITS]
    numbers = [int(key) for key in digits if int(key) <= _LARGEST_KEY]
    found = yield by_id(
        [rows.uuid(key) for key in raw_keys if rows.is_uuid(key)],
        texts=Texts(rows.texts(key for key in raw_keys if not rows.is_uuid(key))),
        numbers=Ints(numbers),
    )
    unreadable: dict[Key, set[str]] = {}
    for row in found:
        try:
            rows.task(row)
        except UnreadableRow:
            unreadable[rows.key(row[-1])] = {rows.named(row[-1]), rows.named(row[0])}
    if unreadable:
        yield Statement("delete_unreadable", {"keys": Keys(unreadable)})
    gone = {name for names in unreadable.values() for name in names}
    return {key: key in gone or key.lower() in gone for key in raw_keys}
