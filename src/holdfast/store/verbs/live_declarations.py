"""Which schedules live workers declare, by name, with the hashes of their definitions."""

from __future__ import annotations

import msgspec

from holdfast.store import rows
from holdfast.store.op import Statement, Steps

_declared = msgspec.json.Decoder(dict[str, str])


def live_declarations() -> Steps[dict[str, set[str]]]:
    """By the name of the schedule; what cannot be read declares nothing."""
    found: dict[str, set[str]] = {}
    for text in rows.texts(row[0] for row in (yield Statement("live_declarations"))):
        try:
            declared = _declared.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            continue
        for name, config_hash in declared.items():
            found.setdefault(name, set()).add(config_hash)
    return found
