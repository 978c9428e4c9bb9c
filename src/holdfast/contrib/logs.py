"""Log lines of tasks as JSON, for applications that configure logging themselves.

    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    handler.addFilter(TaskFields())

Owns nothing: the form is `core/json_lines.py`, the fields are `runtime/child/task_fields.py`.
"""

from __future__ import annotations

from holdfast.core.json_lines import JsonLines
from holdfast.runtime.child.task_fields import TaskFields

__all__ = ["JsonLines", "TaskFields"]
