"""What a PostgreSQL server has that endangers tasks, or will slow the queue down.

Owns the judgement of what was measured (`store/verbs/diagnosis.py`); it asks nobody. What may not
be seen for lack of rights is absent, and judged as in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from holdfast.client.doctor.finding import Finding, Severity
from holdfast.core.moment import length
from holdfast.store.verbs.diagnosis import CleanupHolder, TableHealth

Facts = Mapping[str, str | None]

_HOUR_US: Final = 3_600_000_000
_SECOND_US: Final = 1_000_000
_MANY_DEAD: Final = 50_000
_WRAPAROUND: Final = 1_500_000_000
"""Of 2.1 billion: from then on there is no time to lose."""
_GIGABYTE: Final = 1 << 30
_MAJOR: Final = re.compile(r"\d+", re.ASCII)
_NEARLY_FULL, _FULL = 0.8, 0.95


def judge_settings(facts: Facts) -> Iterator[Finding]:
    """Settings that endanger what is stored."""
    if facts.get("fsync") == "off":
        yield Finding(
            "fsync-off",
            Severity.CRITICAL,
            "fsync is off on the server",
            "after a crash of the machine the database may be corrupted, with all tasks in it",
            "set fsync = on in postgresql.conf and reload the server",
        )
    if facts.get("full_page_writes") == "off":
        yield Finding(
            "full-page-writes-off",
            Severity.CRITICAL,
            "full_page_writes is off on the server",
            "after a crash of the machine pages may be half old and half new",
            "set full_page_writes = on in postgresql.conf and reload the server",
        )
    if facts.get("synchronous_commit") == "off":
        yield Finding(
            "commits-do-not-wait",
            Severity.WARNING,
            "commits do not wait for the disk (durable=False, which sets synchronous_commit = off)",
            "a crash of the machine loses the latest sends and outcomes: tasks are gone, or run "
            "again",
            "leave out durable=False (HOLDFAST_DURABLE=0), unless such a loss is acceptable",
        )
    if facts.get("read_only") == "true":
        yield Finding(
            "read-only",
            Severity.CRITICAL,
            "this server takes no writes: it is a standby, or read-only",
            "nothing can be sent, claimed or finished here",
            "give the URL of the primary; libpq takes several hosts with "
            "target_session_attrs=read-write",
        )
    if facts.get("autovacuum") == "off" or facts.get("track_counts") == "off":
        name = "autovacuum" if facts.get("autovacuum") == "off" else "track_counts"
        yield Finding(
            "autovacuum-off",
            Severity.WARNING,
            f"{name} is off on the server",
            "dead rows are never removed: the tables of a queue change all the time, and claims "
            "become slower every day",
            f"set {name} = on in postgresql.conf and reload the server",
        )
    version = facts.get("version") or ""
    if version.split(" ")[0] in ("14.0", "14.1", "14.2", "14.3"):
        yield Finding(
            "server-version",
            Severity.WARNING,
            f"PostgreSQL {version} has a bug that corrupts indexes which are built concurrently",
            "a claim may not find tasks",
            "upgrade to 14.4 or later, and REINDEX",
        )


def judge_load(facts: Facts) -> Iterator[Finding]:
    """Connections, transaction numbers, and the WAL."""
    yield from _connections(facts)
    age, most = _number(facts, "transaction_age"), _number(facts, "freeze_max_age")
    if age > _WRAPAROUND or (most and age > 2 * most):
        yield Finding(
            "transaction-age",
            Severity.CRITICAL if age > _WRAPAROUND else Severity.WARNING,
            f"the oldest transaction number of this database is {age:,} transactions old",
            "at 2 billion the server takes no writes any more; autovacuum should have frozen it at "
            f"{most:,}",
            "find out what holds vacuum back (long transactions, prepared ones, replication "
            "slots), then VACUUM (FREEZE) the database",
            {"age": age, "autovacuum_freeze_max_age": most},
        )
    if facts.get("failed_archiving"):
        yield Finding(
            "archiving-fails",
            Severity.WARNING,
            f"the server cannot archive its WAL (it failed at {facts['failed_archiving']})",
            "WAL is kept until it is archived, and fills the disk: then the server stops",
            "look into the server's log for what archive_command says",
        )
    if _number(facts, "hidden_sessions"):
        yield Finding(
            "sessions-hidden",
            Severity.NOTICE,
            f"{_number(facts, 'hidden_sessions')} session(s) of other users cannot be looked into",
            "long transactions of theirs are not found here",
            "GRANT pg_read_all_stats to this user, or run this as another",
        )


def judge_checkpoints(facts: Facts) -> Iterator[Finding]:
    """Whether the server writes whole pages all the time."""
    timed, asked = _number(facts, "timed_checkpoints"), _number(facts, "requested_checkpoints")
    if asked > 20 and asked > 2 * timed:
        yield Finding(
            "checkpoints-too-often",
            Severity.NOTICE,
            f"{asked:,} checkpoints were made because the WAL was full, {timed:,} by the clock",
            "after each one the server writes whole pages, which costs throughput",
            f"raise max_wal_size (it is {facts.get('max_wal_size')})",
            {"requested": asked, "timed": timed},
        )


def major_version(facts: Facts) -> int:
    """17 of "17.2 (Debian 17.2-1)" and of "17beta1"; 0 where it is not known."""
    read = _MAJOR.match(facts.get("version") or "")
    return int(read[0]) if read else 0


def _connections(facts: Facts) -> Iterator[Finding]:
    most = _number(facts, "max_connections") - _number(facts, "reserved_connections")
    used = _number(facts, "used_connections")
    if most > 0 and used >= _NEARLY_FULL * most:
        yield Finding(
            "connections",
            Severity.CRITICAL if used >= _FULL * most else Severity.WARNING,
            f"{used} of {most} connections of the server are in use",
            "when none is left, workers cannot reconnect and programs cannot send",
            "raise max_connections, put a pooler in between, or lower max_connections of the apps "
            "(each process has up to 5)",
            {"used": used, "most": most},
        )


def judge_cleanup(holders: Sequence[CleanupHolder], now: int) -> Iterator[Finding]:
    """Transactions and slots that hold back the removal of dead rows."""
    for holder in holders:
        if holder.kind == "slot":
            yield _slot(holder)
            continue
        since = now if holder.since is None else holder.since
        age = max(0, now - since)
        seconds = age / _SECOND_US
        severity = Severity.CRITICAL if age > _HOUR_US else Severity.WARNING
        detail = {
            "pid": holder.pid,
            "user": holder.user,
            "name": holder.name,
            "state": holder.state,
            "seconds": seconds,
        }
        if holder.kind == "prepared":
            yield Finding(
                "prepared-transaction",
                severity,
                f"the prepared transaction {holder.name!r} of {holder.user} has been open for "
                f"{length(seconds)}",
                "it keeps its locks, and dead rows, until somebody ends it; no restart does",
                f"ask whoever coordinates it; then COMMIT PREPARED or ROLLBACK PREPARED "
                f"'{holder.name}'",
                detail,
            )
            continue
        who = f"{holder.user or 'somebody'}, {holder.name or 'no application name'}"
        yield Finding(
            "long-transaction",
            severity if holder.holds_rows else Severity.NOTICE,
            f"a transaction has been open for {length(seconds)} (server process {holder.pid}, "
            f"{who}, {holder.state})",
            "rows that died since then cannot be removed, and every claim steps over them"
            if holder.holds_rows
            else "it holds no old rows now, but may hold locks",
            f"end it: SELECT pg_terminate_backend({holder.pid}); set "
            "idle_in_transaction_session_timeout against forgotten ones",
            detail,
        )


def _slot(holder: CleanupHolder) -> Finding:
    wal = holder.wal_bytes or 0
    holds = " and dead rows" if holder.holds_rows else ""
    return Finding(
        "replication-slot",
        Severity.CRITICAL if wal > 10 * _GIGABYTE else Severity.WARNING,
        f"nobody reads the replication slot {holder.name!r}; it keeps {wal / 1e6:,.0f} MB of "
        f"WAL{holds}",
        "what it keeps grows until the disk is full: then the server stops",
        f"start its reader, or SELECT pg_drop_replication_slot('{holder.name}'); "
        "max_slot_wal_keep_size puts an end to it",
        {"name": holder.name, "wal_bytes": wal},
    )


def judge_tables(tables: Sequence[TableHealth], now: int) -> Iterator[Finding]:
    """Tables that are not cleaned."""
    for table in tables:
        if table.is_neglected:
            yield Finding(
                "table-not-vacuumed",
                Severity.WARNING,
                f"autovacuum is switched off for {table.table}",
                "its dead rows are never removed, and claims become slower every day",
                f"ALTER TABLE {table.table} RESET (autovacuum_enabled)",
                {"table": table.table},
            )
        if table.dead_rows >= _MANY_DEAD and table.dead_rows > table.live_rows:
            ago = (
                "it has never been vacuumed"
                if table.vacuumed_at is None
                else f"the last vacuum was {length((now - table.vacuumed_at) / _SECOND_US)} ago"
            )
            yield Finding(
                "dead-rows",
                Severity.WARNING,
                f"{table.table} has {table.dead_rows:,} dead rows beside {table.live_rows:,} live "
                f"ones; {ago}",
                "claims step over dead rows: they get slower as there are more",
                f"VACUUM {table.table}; if that removes none, a transaction or a slot holds them "
                "back",
                {"table": table.table, "dead": table.dead_rows, "live": table.live_rows},
            )


def _number(facts: Facts, name: str) -> int:
    try:
        return int(facts.get(name) or 0)
    except ValueError:
        return 0
