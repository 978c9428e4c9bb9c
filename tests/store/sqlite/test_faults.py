from __future__ import annotations

import copy
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.core.errors import SchemaMismatch, StoreError, StoreUnavailable
from holdfast.store.row_refused import RowRefused
from holdfast.store.sqlite import faults
from holdfast.store.sqlite.faults import ConstraintViolated, translate


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (faults.BUSY, "repeat the call"),
        (faults.LOCKED, "repeat the call"),
        (faults.PROTOCOL, "repeat the call"),
        (faults.BUSY_SNAPSHOT, "BEGIN IMMEDIATE"),
        (faults.FULL, "free some space"),
        (faults.NOMEM, "no memory"),
        (faults.IOERR | (4 << 8), "the disk failed"),
        (faults.READONLY, "cannot be written"),
        (faults.CANTOPEN, "cannot be"),
        (faults.INTERRUPT, "interrupted"),
    ],
)
def test_what_may_be_repeated(code: int, words: str, path: Path) -> None:
    path.touch()
    error = translate(code, "sqlite's words", str(path))

    assert isinstance(error, StoreUnavailable)
    assert error.retryable
    assert not error.silent
    assert not error.commit_unknown
    assert words in str(error)
    assert str(path) in str(error)
    assert "database is locked" not in str(error)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (faults.NOTADB, "not a SQLite database"),
        (faults.CORRUPT, "damaged"),
        (faults.TOOBIG, "larger than SQLite can store"),
        (faults.ERROR, "sqlite's words"),
    ],
)
def test_what_may_not(code: int, words: str) -> None:
    error = translate(code, "sqlite's words", "/data/tasks.db")

    # What is too large is a row's fault: whoever writes a batch goes on without that row.
    assert type(error) is (RowRefused if code == faults.TOOBIG else StoreError)
    assert not error.retryable
    assert words in str(error)
    assert "/data/tasks.db" in str(error)


def test_a_commit_that_the_disk_refused_may_have_landed() -> None:
    error = translate(faults.IOERR, "disk I/O error", "/data/tasks.db", committing=True)

    assert isinstance(error, StoreUnavailable)
    assert error.commit_unknown
    full = translate(faults.FULL, "full", "/data/tasks.db", committing=True)
    assert isinstance(full, StoreUnavailable)
    assert not full.commit_unknown


def test_errors_can_be_copied() -> None:
    error = copy.copy(ConstraintViolated("x: y", "y"))

    assert error.constraint == "y"
    assert str(error) == "x: y"


def test_tables_that_are_missing_are_told_with_a_remedy(path: Path) -> None:
    """As after somebody has deleted the file, and an application has made its own tables anew."""
    fault = translate(faults.ERROR, "no such table: holdfast_tasks", str(path))

    assert isinstance(fault, SchemaMismatch)
    assert "restart this process or run `holdfast db migrate`" in str(fault)


def test_a_file_system_that_is_mounted_read_only_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert faults.cannot_open(str(path)) == (
        f"{path.parent} is mounted read-only: remount it, or keep the database elsewhere"
    )
