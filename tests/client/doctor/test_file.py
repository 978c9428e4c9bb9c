"""Judgements on files and disks that no test can bring about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.client.doctor.file import DiskSpace, FileState, judge_disk, judge_file, measure_disk
from holdfast.client.doctor.finding import Severity

MB = 1 << 20
HEALTHY = FileState("/srv/tasks.db", "3.51.3", "wal", True, "ext4", 4 * MB, 100 * MB, 10 * MB)


def test_a_file_that_is_in_order() -> None:
    assert list(judge_file(HEALTHY)) == []
    assert list(judge_file(replace(HEALTHY, version="", kind=None))) == []


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"kind": "nfs4"}, "network-filesystem"),
        ({"kind": "fuse.sshfs"}, "network-filesystem"),
        ({"journal_mode": "delete"}, "journal-mode"),
        ({"version": "3.45.0"}, "sqlite-version"),
        ({"wal_bytes": 65 * MB}, "long-wal"),
        ({"free_bytes": 80 * MB}, "empty-pages"),
        ({"durable": False}, "commits-do-not-wait"),
    ],
)
def test_one_thing_that_is_not(changed: dict[str, object], code: str) -> None:
    assert [each.code for each in judge_file(replace(HEALTHY, **changed))] == [code]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("free", "total", "severity"),
    [
        (500 * MB, 100_000 * MB, Severity.WARNING),
        (50 * MB, 100 * MB, Severity.CRITICAL),
        (2_000 * MB, 100_000 * MB, Severity.WARNING),
        (2_000 * MB, 10_000 * MB, None),
        (900 * MB, 2_000 * MB, None),
    ],
)
def test_room(free: int, total: int, severity: Severity | None) -> None:
    found = [each.severity for each in judge_disk("/srv", DiskSpace(free, total))]
    assert found == ([] if severity is None else [severity])


def test_room_that_cannot_be_told() -> None:
    assert measure_disk("/nowhere/at/all") is None
    assert list(judge_disk("/nowhere", None)) == []
