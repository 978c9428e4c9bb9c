"""What a failure of PostgreSQL means to the caller.

Owns the translation of psycopg's errors into Holdfast's. Five kinds are told apart,
because a worker acts differently on each:

    answered    the server (or its machine) says that it cannot serve now: nobody else is
                served either, so nobody can take our leases          StoreUnavailable
    silent      no answer came; others may be served meanwhile        StoreUnavailable(silent)
    conflict    the transaction met another one and was undone        StoreUnavailable
    locked      a row is held by another open transaction          StoreUnavailable(locked)
    refused     this statement or these settings are wrong for good   StoreError, ConfigError

Where it is not known whether a commit landed, `commit_unknown` says so. No message holds a
password, and none quotes stored values: the server's DETAIL shows whole rows.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg import errors

from holdfast.core.errors import (
    ConfigError,
    HoldfastError,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
)
from holdfast.core.redaction import redact
from holdfast.store.row_refused import RowRefused

_CONFLICTS = frozenset({"40001", "40P01"})
_LOCKED = "55P03"
"""Lock timeout: the server ended the wait, and nothing was written."""
_TIRED = "57014"
"""Statement timeout."""
_ANSWERS = frozenset({"25006", "25P03", "57P01", "57P02", "57P03", "57P04", "57P05"})
_ANSWER_CLASSES = ("53", "58")
_ENDED_IDLE = frozenset({"25P03", "57P05"})
"""The session was ended for its idleness, so before it saw any COMMIT."""
_ABSENT = frozenset({"42P01", "42703", "3F000"})
_SHARED_SESSION = frozenset({"26000", "42P05", "08P01"})
_QUOTES_VALUES = ("22", "23")
_ROW_CLASSES = ("22", "23", "54", "09", "27", "2F", "38", "39", "44", "P0")
"""Values out of range, constraints, limits such as that of an index entry; and what functions
raise: we have none that do, so it is a trigger that somebody put on a table."""

_REFUSED_WORDS = ("Connection refused", "No such file or directory", "FATAL:")
_MISCONFIGURED = re.compile(
    r"authentication failed for user|no password supplied|no pg_hba.conf entry"
    r'|(role|database) ".*" does not exist|permission denied for database|does not support SSL'
)


class ServerSilent(psycopg.OperationalError):
    """The server did not answer although the connection seems to stand."""


def translate(
    error: psycopg.Error, *, doing: str, lost: bool = False, committing: bool = False
) -> HoldfastError:
    """The error to raise for what happened while `doing`.

    `lost` says that the connection is gone, `committing` that a commit was under way.
    """
    state = error.sqlstate
    reason = _reason(error)
    unknown = committing and state not in _ENDED_IDLE
    unknown = unknown and (lost or isinstance(error, ServerSilent) or state == "40003")
    if state is None or state.startswith("08"):
        if lost or isinstance(error, psycopg.OperationalError):
            return _unavailable(
                f"PostgreSQL did not answer while {doing}: {reason}", unknown, silent=True
            )
        return StoreError(f"psycopg refused while {doing}: {reason}")
    message = f"PostgreSQL could not serve while {doing}: {reason} ({state})"
    if state in _ANSWERS or state.startswith(_ANSWER_CLASSES) or lost:
        return _unavailable(message, unknown)
    if state in _CONFLICTS or _slot_taken(error):
        return _unavailable(message, unknown, conflict=True)
    if state == _LOCKED:
        return _unavailable(message, unknown, locked=True)
    if state == _TIRED or is_stale_plan(error):
        return _unavailable(message, unknown)
    refusal = f"PostgreSQL refused while {doing}: {reason} ({state})"
    return RowRefused(refusal) if _was_raised(error) else _refused(state, refusal)


def translate_connect(error: psycopg.Error, *, address: str, worked_before: bool) -> HoldfastError:
    """The error to raise when no connection could be opened.

    libpq gives no code here, only the server's sentence; one in another language is taken
    for an outage, which is the careful reading. A store that has worked before does not
    become misconfigured by itself, so then everything is an outage.
    """
    reason = _reason(error)
    message = f"cannot connect to {address}: {reason}"
    asked = getattr(error.pgconn, "needs_password", False) is True
    if not worked_before and (asked or _MISCONFIGURED.search(reason)):
        return ConfigError(f"{message}; check the URL and the server's settings", option="url")
    silent = not any(words in reason for words in _REFUSED_WORDS)
    return _unavailable(message, False, silent=silent)


def malformed(error: psycopg.Error, *, address: str) -> ConfigError:
    """The error for a URL that libpq cannot read."""
    # What libpq quotes may be a piece of a password that it cut at the wrong place; the name of an
    # option is none.
    reason = _reason(error)
    named = {name for name, _ in parse_qsl(urlsplit(address).query, keep_blank_values=True)}
    quoted = re.search(r'"([^"]*)"', reason)
    secret = "@" in address or redact(address) != address
    if secret and (quoted is None or quoted[1] not in named or "@" in quoted[1]):
        reason = "percent-encode special characters in its password"
    return ConfigError(f"the PostgreSQL URL cannot be read: {reason}", option="url")


def _slot_taken(error: psycopg.Error) -> bool:
    """Whether a unique slot was taken between our look and our write: the next look sees it."""
    return error.diag.constraint_name == "holdfast_tasks_unique"


def _was_raised(error: psycopg.Error) -> bool:
    """Whether a function raised it (RAISE, with whatever code), or a policy refuses the row."""
    return error.diag.source_function in ("exec_stmt_raise", "ExecWithCheckOptions")


def is_stale_plan(error: psycopg.Error) -> bool:
    """Whether a migration has changed a table under a prepared statement."""
    return isinstance(error, errors.FeatureNotSupported) and (
        error.diag.source_function == "RevalidateCachedQuery"
    )


def spoils(error: psycopg.Error) -> bool:
    """Whether a connection that still stands must not be used again after this error."""
    return (
        isinstance(error, ServerSilent)
        # A primary that became a standby: a new connection may find the new primary.
        or error.sqlstate == "25006"
        or error.sqlstate in _SHARED_SESSION
        or is_stale_plan(error)
    )


def may_show(error: psycopg.Error) -> bool:
    """Whether the driver's error may be chained: it must not quote what users stored."""
    return not (error.sqlstate or "").startswith(_QUOTES_VALUES)


def _unavailable(
    message: str,
    unknown: bool,
    *,
    silent: bool = False,
    conflict: bool = False,
    locked: bool = False,
) -> StoreUnavailable:
    if unknown:
        message += "; whether the commit landed is not known"
    return StoreUnavailable(
        message, commit_unknown=unknown, silent=silent, conflict=conflict, locked=locked
    )


def _refused(state: str, message: str) -> HoldfastError:
    if state in _ABSENT or (state == "42883" and "holdfast_" in message):
        return SchemaMismatch(
            f"{message}; the tables of Holdfast are missing or older than this code: "
            "run `holdfast db migrate`"
        )
    if state in _SHARED_SESSION:
        return ConfigError(
            f"{message}; a transaction pooler seems to stand in between: set pooler=True",
            option="pooler",
        )
    if state.startswith(_ROW_CLASSES):
        return RowRefused(message)
    if state.startswith("28"):
        return ConfigError(message, option="url")
    if state == "42501":
        message += (
            "; the role of the URL lacks a right: let an administrator make a schema for it "
            '(CREATE SCHEMA queue AUTHORIZATION the_role) and use Holdfast(url, schema="queue"), '
            "or grant it USAGE and CREATE on the schema"
        )
    return StoreError(message)


def _reason(error: psycopg.Error) -> str:
    primary = error.diag.message_primary
    if primary:
        return redact(primary)
    lines = str(error).strip().splitlines()
    return redact(lines[0].strip()) if lines else type(error).__name__
