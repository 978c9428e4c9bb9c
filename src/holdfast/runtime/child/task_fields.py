"""Which task a log record comes from, for log lines as JSON.

Owns the fields that a record gets in a child: those of the task whose code has logged it, whatever
kind the child is. A record that no task has logged is left as it is.
"""

from __future__ import annotations

import logging

from holdfast.core.identity import running
from holdfast.core.tracing import current_trace_id, trace_id_of
from holdfast.runtime.child.context import TaskContext

__all__ = ["TaskFields"]

worker_id: str = ""
"""Of the worker that this process is a child of."""


def is_child_of(worker: str) -> None:
    """Note whose child this process is."""
    global worker_id
    worker_id = worker


class TaskFields(logging.Filter):
    """Lets every record pass, and notes its task in `record.holdfast`."""

    def filter(self, record: logging.LogRecord) -> bool:
        context = running.get()
        if isinstance(context, TaskContext) and not hasattr(record, "holdfast"):
            record.holdfast = {
                "task": context.name,
                "task_id": str(context.id),
                "queue": context.queue,
                "attempt": context.attempt,
                "worker": worker_id or None,
                "trace_id": current_trace_id() or trace_id_of(context.lineage.trace_context),
            }
        return True
