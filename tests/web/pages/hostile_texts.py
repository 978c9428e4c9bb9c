"""Texts that want to be more than text, written into every text column of a small SQLite store.

They are written with plain SQL, past what sending would have refused: whoever may write rows may
write these, and pages show whatever stands there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw

__all__ = ["TEXTS", "besiege"]

TEXTS: Final[Sequence[str]] = (
    '"><script>document.title="owned"</script>',
    "<img src=x onerror=\"document.title='owned'\">",
    "'-alert(1)-'\" autofocus onfocus=alert(1) x=\"",
    "</title></style></script></textarea><svg onload=alert(1)>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}${7*7}<%= 7*7 %>",
    "\u202egnp.exe\u2066\u200f\u061c",
    "\u062a\u0642\u0627\u0631\u064a\u0631." * 40,
    "W" * 400,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 60,
    "z\u0301\u0302\u0303\u0300" * 80,
    "a\tb\r\nc\x1b[31m\x07\x7f",
    "?a=1&b=2#c%2F..%00",
    "{",
)
PLAIN: Final[Mapping[str, Sequence[str]]] = {
    "tasks": (
        "task_name", "queue_name", "error_code", "failed_reason", "unique_key", "concurrency_key",
        "claimed_by_worker_id", "worker_hostname", "worker_process_name", "schedule_name",
        "trace_context",
    ),
    "task_attempts": (
        "error_code", "error_message", "failed_reason", "worker_id", "worker_hostname",
        "worker_process_name",
    ),
    "task_notes": ("stage", "output"),
    "checkpoints": ("name",),
    "workers": ("hostname", "version", "command"),
    "queues": ("paused_by",),
    "workflows": ("workflow_name", "paused_by"),
    "schedules": ("paused_by",),
    "audit": ("actor", "origin", "verb", "subject", "filter"),
}  # fmt: skip
"""Columns whose content is a text; where there is none, there is still none."""
JSON: Final[Mapping[str, Sequence[str]]] = {
    "tasks": ("args", "tags"),
    "workers": ("queues", "known"),
    "workflows": ("tags",),
    "checkpoints": ("value",),
}
"""Columns whose content is a list of texts."""
OBJECTS: Final[Mapping[str, Sequence[str]]] = {
    "tasks": ("kwargs",),
    "task_notes": ("stage_meta",),
    "workers": ("settings",),
    "audit": ("detail",),
}
"""Columns whose content is an object: its keys and its values are such texts."""


def besiege(path: Path) -> int:
    """Write them over what is there; how many values were written."""
    written = 0
    with closing(apsw.Connection(str(path))) as raw:
        raw.set_busy_timeout(10_000)
        raw.execute("PRAGMA ignore_check_constraints = ON")
        for columns, make in ((PLAIN, _plain), (JSON, _list), (OBJECTS, _object)):
            for table, names in columns.items():
                for shift, name in enumerate(names):
                    written += _write(raw, table, name, [make(text) for text in _turned(shift)])
        _progress(raw)
        _log(raw)
    return written


def _write(raw: apsw.Connection, table: str, column: str, values: Sequence[str]) -> int:
    """Each task gets another one; elsewhere each value there was."""
    key = "seq" if table == "tasks" else column
    there = f"SELECT DISTINCT {key} FROM holdfast_{table} WHERE {column} IS NOT NULL"
    found = raw.execute(there).fetchall()
    for place, (old,) in enumerate(found):
        raw.execute(
            f"UPDATE holdfast_{table} SET {column} = ? WHERE {key} = ?",
            (values[place % len(values)], old),
        )
    return len(found)


def _turned(shift: int) -> list[str]:
    shift %= len(TEXTS)
    return [*TEXTS[shift:], *TEXTS[:shift]]


def _plain(text: str) -> str:
    return text


def _list(text: str) -> str:
    return json.dumps([text, [text]])


def _object(text: str) -> str:
    return json.dumps({text: text, "nested": {text[:50]: [text]}})


def _progress(raw: apsw.Connection) -> None:
    said = json.dumps({"done": 1, "total": 3, "message": "".join(TEXTS[:3])})
    raw.execute("UPDATE holdfast_task_notes SET progress = ?", (said,))


def _log(raw: apsw.Connection) -> None:
    text = "".join(f"{each}\nERROR {each}\n" for each in TEXTS).encode(errors="surrogatepass")
    raw.execute("UPDATE holdfast_task_logs SET data = ?", (text,))
