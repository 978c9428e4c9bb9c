"""Seeded defects: one small change to one statement, in both dialects.

Each is a mistake that somebody could make, and that the model has to notice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """What to look for in a statement's text, and what to put there."""

    statement: str
    pattern: str
    instead: str = ""

    def change(self, name: str, text: str) -> str:
        """The text of a statement, with the defect if it is the one."""
        return re.sub(self.pattern, self.instead, text) if name == self.statement else text


MUTANTS = {
    "anybody completes": Mutant("complete", r"AND (task\.)?claim_token = [^\n]*"),
    "anybody starts": Mutant("start", r"AND (task\.)?claim_token = [^\n]*"),
    "anybody releases": Mutant("release", r"AND (task\.)?claim_token = [^\n]*"),
    "anybody ends": Mutant("end", r"AND (held\.)?claim_token = [^\n]*"),
    "an end without a start": Mutant("end", r"AND (held\.)?status = 'RUNNING'"),
    "a start counts nothing": Mutant("start", r"attempt = attempt \+ 1", "attempt = attempt"),
    "a release counts as an attempt": Mutant(
        "release", r"SET status =", "SET attempt = attempt + 1, status ="
    ),
    "a run after a cancel": Mutant(
        "end", r"WHEN (task|held)\.cancel_requested_at IS NOT NULL THEN 'CANCELLED'"
    ),
    "a cancel that nobody wished": Mutant(
        "end", r"(?s)AND \(\s*(held\.)?cancel_requested_at IS NOT NULL\s+OR .*?<> 'ack_cancel'\s*\)"
    ),
    "a retry that comes too late": Mutant("end", r"OR (next|wish)\.at >= (task|held)\.good_until"),
    "an interrupted task loses its place": Mutant("end", r"= 'retry' AS moves", "<> '' AS moves"),
    "an end keeps the unique slot": Mutant(
        "end", r"CASE WHEN final\.live [^\n]* THEN task\.unique_slot END", "task.unique_slot"
    ),
    "a completion keeps the unique slot": Mutant("complete", r"unique_slot = CASE [^\n]* END,"),
    "expired, and keeps the unique slot": Mutant(
        "expire", r"CASE WHEN [^\n]*unique_until = 'deleted' THEN [^\n]* END", "unique_slot"
    ),
    "a start keeps a key that is held until started": Mutant(
        "start", r"unique_slot = CASE [^\n]* END,"
    ),
    "resubmitted without its unique slot": Mutant("resubmit", r"unique_slot = unique_key,"),
    "resubmitted with its old retries": Mutant("resubmit", r"retry_count = CASE WHEN [^\n]* END,"),
    "children counted twice": Mutant(
        "count_edges", r"deps_needed \+ (\S+), updated", r"deps_needed + 2 * \1, updated"
    ),
    "edges resolved twice": Mutant("resolve_edges", r" AND NOT resolved"),
    "a failure is a success": Mutant(
        "resolve_edges", r"on_status = 'always'", "on_status IN ('always', 'success')"
    ),
    "claims from a paused queue": Mutant("claim", r"paused_at IS NOT NULL", "paused_by = '?'"),
    "claims what is too late": Mutant("claim", r"good_until IS NULL OR", "true OR"),
    "claims the last first": Mutant(
        "claim", r"ORDER BY (task\.)?priority", r"ORDER BY -\1priority"
    ),
    "promotes what is not due": Mutant(
        "promote", r"WHERE due_at", "WHERE due_at >= due_at OR due_at"
    ),
    "renews the leases of others": Mutant("renew", r"WHERE token [^\n]*"),
    "leaves attempts behind": Mutant(
        "delete", r"(DELETE FROM \S*holdfast_task_attempts WHERE)", r"\1 false AND"
    ),
    "prunes by the day of birth": Mutant(
        "prunable", r"ELSE task\.finished_at <", "ELSE task.created_at <"
    ),
    "prunes dead letters early": Mutant(
        "prunable", r"WHEN task\.dead AND task\.scope_id IS NULL THEN", "WHEN false THEN"
    ),
    "the sender's clock": Mutant(
        "submit", r"(:?)sent_at, :?now, :?now,", r"\1sent_at, \1sent_at, \1sent_at,"
    ),
}

LIMIT_MUTANTS = {
    "a claim under limits holds nothing": Mutant(
        "claim_chosen",
        r"slots = (\(:slots[^\n]*smallint|json_extract\(:slots[^\n]*'\"'\)),",
        "slots = 0,",
    ),
    "a claim by old limits": Mutant("claim", r"= 'limits'", "= 'limit'"),
    "a claim under limits by old ones": Mutant("claim_gate", r"'limits'", "'limit'"),
    "a paused queue is claimed from under limits": Mutant(
        "claim_gate", r"paused_at IS NOT NULL", "paused_by = '?'"
    ),
    "a plain claim takes tasks with keys": Mutant(
        "claim", r"coalesce\(([a-z.]*)concurrency_key, ''\) = ''", "true"
    ),
    "what came free is subtracted twice": Mutant(
        "fold_freed",
        r"(?s)DELETE (FROM holdfast_freed.*?)RETURNING scope, n",
        r"SELECT scope, n \1",
    ),
    "what came free stays free": Mutant("drop_freed", r"WHERE", "WHERE n < 0 AND"),
    "a new limit does not count what runs": Mutant("mark_slots", r"slots \| :bit[^\n]*", "slots"),
    "a rate that is never paid": Mutant("write_counters", r", paid_until = excluded\.paid_until"),
    "the walk ends with the last key": Mutant(
        "keyed_candidates", r"(NULL AND NOT walk\.wrapped|IS NOT NULL OR NOT walk\.wrapped)", "NULL"
    ),
    "the walk goes round twice": Mutant("keyed_candidates", r":until_key(::text)? IS NULL", "true"),
    "of a key the last task first": Mutant(
        "keyed_candidates", r"ORDER BY (task\.)?priority", r"ORDER BY -\1priority"
    ),
    "limited, and the last first": Mutant(
        "limited_candidates", r"ORDER BY ([a-z]+\.)?priority", r"ORDER BY -\1priority"
    ),
    "a route that senders do not learn of": Mutant("renew_routes", r"value = excluded\.value, "),
    "a limit that workers do not learn of": Mutant("renew_limits", r"value = excluded\.value, "),
    "code overrides what an operator chose": Mutant(
        "declare_limit", r"SET declared", "SET chosen = NULL, declared"
    ),
    "what an operator takes back is kept": Mutant(
        "choose_limit",
        r"SET chosen = excluded\.chosen",
        "SET chosen = coalesce(excluded.chosen, chosen)",
    ),
}

SCHEDULE_MUTANTS = {
    "a tick is fired again": Mutant(
        "take_tick", r"WHERE (holdfast_schedule_ticks\.)?status <> 'fired'"
    ),
    "what was fired is dropped after all": Mutant(
        "note_ticks", r"WHERE (holdfast_schedule_ticks\.)?status = 'waiting' AND [^\n;]*"
    ),
    "a paused schedule is due": Mutant("due_schedules", r"AND paused_at IS NULL"),
    "what waits is not looked at": Mutant("due_schedules", r"WHERE has_waiting", "WHERE NOT true"),
    "the prior run never ends": Mutant("run_is_live", r"AND finished_at IS NULL"),
    "a resume keeps what waits": Mutant(
        "set_schedule", r"has_waiting AND :keeps_waiting[^\n,]*", "has_waiting"
    ),
    "a change keeps what waits": Mutant(
        "drop_waiting", r"SET status = 'dropped'", "SET status = 'waiting'"
    ),
    "a refused tick counts as fired": Mutant(
        "refuse_tick", r"SET status = 'dropped'", "SET status = 'fired'"
    ),
    "runs are not counted": Mutant(
        "note_schedule", r"run_count = [^\n]*:runs[^\n,]*", "run_count = run_count"
    ),
    "a schedule forgets its prior run": Mutant(
        "note_schedule", r"last_task_id = [^\n]*", "last_task_id = NULL,"
    ),
    "a pause is taken back by another": Mutant(
        "set_schedule", r"paused_at = [^\n]*", "paused_at = NULL,"
    ),
    "the history keeps a deleted schedule": Mutant(
        "delete_schedule", r"(DELETE FROM \S*holdfast_schedule_ticks WHERE)", r"\1 false AND"
    ),
}
