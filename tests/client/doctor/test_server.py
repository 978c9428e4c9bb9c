"""Judgements on figures of a server that no test can bring about."""

from __future__ import annotations

import pytest

from holdfast.client.doctor import server
from holdfast.client.doctor.finding import Severity
from holdfast.store.verbs.diagnosis import CleanupHolder

HEALTHY = {
    "version": "16.4",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "read_only": "false",
    "autovacuum": "on",
    "track_counts": "on",
    "max_connections": "100",
    "reserved_connections": "3",
    "used_connections": "10",
    "hidden_sessions": "0",
    "transaction_age": "1000",
    "freeze_max_age": "200000000",
    "timed_checkpoints": "100",
    "requested_checkpoints": "3",
    "failed_archiving": None,
}


def judged(**changed: str | None) -> dict[str, Severity]:
    facts = HEALTHY | changed
    judges = (server.judge_settings, server.judge_load, server.judge_checkpoints)
    found = [finding for judge in judges for finding in judge(facts)]
    return {each.code: each.severity for each in found}


def test_a_server_that_is_in_order() -> None:
    assert judged() == {}
    assert judged(**dict.fromkeys(HEALTHY, None)) == {}
    assert judged(max_connections="many") == {}


@pytest.mark.parametrize(
    ("code", "severity", "name", "value"),
    [
        ("fsync-off", "critical", "fsync", "off"),
        ("full-page-writes-off", "critical", "full_page_writes", "off"),
        ("commits-do-not-wait", "warning", "synchronous_commit", "off"),
        ("read-only", "critical", "read_only", "true"),
        ("autovacuum-off", "warning", "autovacuum", "off"),
        ("autovacuum-off", "warning", "track_counts", "off"),
        ("server-version", "warning", "version", "14.3 (Debian 14.3-1)"),
        ("connections", "warning", "used_connections", "80"),
        ("connections", "critical", "used_connections", "95"),
        ("transaction-age", "warning", "transaction_age", "500000000"),
        ("transaction-age", "critical", "transaction_age", "1600000000"),
        ("checkpoints-too-often", "notice", "requested_checkpoints", "300"),
        ("archiving-fails", "warning", "failed_archiving", "00000001000000000000004F"),
        ("sessions-hidden", "notice", "hidden_sessions", "2"),
    ],
)
def test_one_thing_that_is_not(code: str, severity: str, name: str, value: str) -> None:
    assert judged(**{name: value}) == {code: Severity(severity)}


@pytest.mark.parametrize(
    ("version", "major"),
    [("18.6", 18), ("17.2 (Debian 17.2-1)", 17), ("17beta1", 17), ("", 0), (None, 0)],
)
def test_the_version_of_a_server(version: str | None, major: int) -> None:
    assert server.major_version({"version": version}) == major


def test_how_long_and_how_much_decide() -> None:
    hour = 3_600_000_000
    held = CleanupHolder("transaction", 7, "ada", "psql", "idle in transaction", 0, True, None)
    slot = CleanupHolder("slot", None, None, "s", "inactive", None, False, 11 << 30)
    found = list(server.judge_cleanup([held, slot], 2 * hour))
    assert [each.severity for each in found] == [Severity.CRITICAL, Severity.CRITICAL]
    (finding,) = server.judge_cleanup([held._replace(holds_rows=False)], hour // 2)
    assert finding.severity is Severity.NOTICE
