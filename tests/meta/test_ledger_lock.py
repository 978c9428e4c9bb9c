"""The supervisor's memory is used through methods, which lock; what it guards is its own."""

from __future__ import annotations

import re
from typing import Final

from tests.meta.tree import SOURCE, python_files, shown

STATE: Final = SOURCE / "runtime" / "supervisor" / "state"
REACHED_INTO: Final = re.compile(
    r"\b_?(ledger|roster|outcomes|sources)\.(_\w+|lock|children\b)", re.MULTILINE
)


def test_nobody_outside_reaches_into_the_ledger() -> None:
    found = [
        f"{shown(path)}: {match.group()}"
        for path in python_files("src")
        if STATE not in path.parents
        for match in REACHED_INTO.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_pattern_finds_what_it_is_for() -> None:
    for text in ("self._ledger._assignments", "ledger.lock", "ledger.roster.children.values()"):
        assert REACHED_INTO.search(text), text
    assert not REACHED_INTO.search("self._ledger.roster.all()")
