"""The JSON that `--json` prints.

Owns its form: field names are those of the Python objects (`TaskInfo`, `Attempt`, …),
moments are ISO 8601 in UTC, durations are seconds, ids are text. Fields may be added in later
versions; none changes its meaning. The output is ASCII, so it holds no terminal escapes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from holdfast.cli.render.times import exact


def dump(content: Any) -> str:
    """The text of one document."""
    return json.dumps(content, default=_plain, indent=2)


def dump_line(content: Any) -> str:
    """The same on one line."""
    return json.dumps(content, default=_plain)


def as_dict(record: Any, **more: Any) -> dict[str, Any]:
    """The fields of a record, and some more."""
    return {field.name: getattr(record, field.name) for field in fields(record)} | more


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return exact(value)
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
        case Enum():
            return value.value
        case Mapping():
            return dict(value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return as_dict(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no form in JSON")
