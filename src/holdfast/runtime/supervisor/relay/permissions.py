"""What code in a task may ask of the store.

Owns the list. It is what the client's verbs consist of, no more: whoever runs in a task may send,
wait, cancel, look and operate as any other program can that has the database's URL. What
belongs to the worker (claims, starts, ends, leases, notes, registration) is not on it, nor is the
deletion of rows that cannot be read, which is for a person to decide. What concerns a claim is
bound to the asker: it must be a task that this very child has in hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from holdfast.runtime.wire.relay_codec import Asked
from holdfast.store.op import Statement
from holdfast.store.verbs.submit import COLUMNS

LOOKING: Final = frozenset(
    {
        "attempts",
        "audit_entries",
        "checkpoints",
        "checkpoint_counts",
        "cleanup_holders",
        "count_workflows",
        "count_dead",
        "counts",
        "database_facts",
        "dead_counts",
        "dependencies",
        "depth_series",
        "edges_above",
        "endings",
        "expired_leases",
        "find_dead",
        "find_ids",
        "fleet_signs",
        "find_workflow_ids",
        "in_flight",
        "last_errors",
        "late_schedules",
        "list_newest",
        "list_queues",
        "list_tasks",
        "list_workers",
        "live_tasks",
        "overdue_edges",
        "pending_kinds",
        "read_counters",
        "read_limits",
        "read_routes",
        "scope_holders",
        "unfair_queues",
        "next_due",
        "next_key",
        "latest_states",
        "list_workflows",
        "read_log",
        "read_output",
        "read_scopes",
        "scope_values",
        "read_steps",
        "read_workflows",
        "stats_series",
        "stats_totals",
        "statuses",
        "table_health",
        "step_values",
        "tasks_by_id",
        "whereabouts",
        "workflow_statuses",
        "worker_history",
        "worker_states",
    }
)
SENDING: Final = frozenset(
    {
        "add_counts",
        "add_edges",
        "add_scope",
        "existing_workflow",
        "lock_tasks",
        "notify",
        "read_clock",
        "replace",
        "reschedule",
        "start_workflow",
        "submit",
        "submit_steps",
        "submitted",
    }
)
OPERATING: Final = frozenset(
    {
        "add_audit_entry",
        "added_again",
        "added_steps",
        "ask_stack_request",
        "cancel",
        "count_ended",
        "deletable",
        "delete",
        "delete_route",
        "delete_checkpoints",
        "family",
        "begin_resubmit",
        "closed_steps",
        "live_parts",
        "order_worker",
        "pause_queue",
        "deletable_workflow",
        "delete_workflow",
        "lost_key",
        "pause_workflow",
        "removable_steps",
        "resubmittable_steps",
        "resubmitting",
        "workflow_steps",
        "promote_now",
        "renew_routes",
        "resubmit",
        "resume_queue",
        "resume_workflow",
        "set_route",
        "stop_parts",
        "stop_workflow",
        "stoppable_steps",
        "take_stack_request",
        "unlist_dead",
    }
)
SCHEDULING: Final = frozenset(
    {
        "add_schedule",
        "change_schedule",
        "delete_schedule",
        "drop_waiting",
        "live_declarations",
        "lock_schedule",
        "note_schedule",
        "read_schedule",
        "read_schedules",
        "read_ticks",
        "refuse_tick",
        "run_is_live",
        "set_schedule",
        "take_tick",
        "waiting_ticks",
    }
)
"""What operating on schedules takes; none of these fires what is due."""
LIMITING: Final = frozenset(
    {
        "add_counters",
        "choose_limit",
        "drop_freed",
        "forget_limits",
        "lock_counters",
        "lock_key_counters",
        "mark_slots",
        "renew_limits",
        "set_fair",
        "set_held",
    }
)
"""What changing a limit takes."""
FOLLOWING: Final = frozenset(
    {
        "close_parts",
        "count_edges",
        "count_steps",
        "finish_workflow",
        "closed_scopes",
        "end_resubmit",
        "lock_children",
        "lock_family",
        "lock_homes",
        "lock_places",
        "lock_scopes",
        "lock_wholes",
        "ended_steps",
        "forget_errors",
        "forget_late",
        "go_on_below",
        "hold",
        "is_released",
        "note_released",
        "note_resubmitted",
        "park",
        "park_added",
        "parked_adders",
        "park_failures",
        "release_held",
        "reopen_edges",
        "reopen_workflow",
        "resolve_edges",
        "resolve_some_edges",
        "returned_steps",
        "revisit_edges",
        "rewrite_edges",
        "scope_gates",
        "step_relatives",
        "settle",
        "skip",
        "step_homes",
        "step_places",
        "take_parked",
        "unbegun_steps",
        "unblock",
        "unmet_edges",
        "unpark",
    }
)
"""What sending and operating do to tasks that wait for others."""
OF_ITS_CLAIM: Final = frozenset({"read_checkpoint", "write_checkpoint"})

ALLOWED: Final = LOOKING | SENDING | OPERATING | SCHEDULING | LIMITING | FOLLOWING | OF_ITS_CLAIM

MOST_AT_ONCE: Final = 10_000
"""Rows that one statement may ask for; the client's own verbs ask for far fewer."""
_BOUNDS: Final = ("limit", "page", "parts", "scan", "cap", "batch")
_ID: Final = list(COLUMNS).index("id")
_ID_SIZE: Final = 16


Holds: TypeAlias = Callable[[object, object], bool]
"""Whether the asker has been given the task with this key, under this claim token."""


class NotAllowed(Exception):
    """A task asked for what code in a task may not have."""


def check(asked: Asked, holds: Holds) -> None:
    """Raise `NotAllowed` for the first statement that code in a task may not ask."""
    for statement in [asked] if isinstance(asked, Statement) else asked:
        _check(statement, holds)


def _check(statement: Statement, holds: Holds) -> None:
    name, params = statement.name, statement.params
    if name not in ALLOWED:
        raise NotAllowed(f"code in a task may not ask the store for {name!r}")
    if name == "submit":
        _check_rows(statement)
        return
    if name in OF_ITS_CLAIM and not holds(params.get("key"), params.get("token")):
        raise NotAllowed(f"{name!r} is about a task that does not run in the asking process")
    for bound in _BOUNDS:
        most = params.get(bound, 0)
        if not isinstance(most, int) or most > MOST_AT_ONCE:
            raise NotAllowed(f"{name!r} asks for too much at once: {bound}={most!r:.50}")


def _check_rows(statement: Statement) -> None:
    """Sends of several children become one statement, so they must be of one shape."""
    table = statement.table
    if table is None or table.columns != COLUMNS:
        raise NotAllowed("'submit' has other columns than a send has")
    for row in table.rows:
        id = row[_ID] if len(row) == len(COLUMNS) else None
        if not isinstance(id, bytes) or len(id) != _ID_SIZE:
            raise NotAllowed("'submit' has a row that no send has")
