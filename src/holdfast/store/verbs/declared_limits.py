"""What the code of workers declares of the limits of its tasks.

Owns the meeting of two versions of the code, which goes by the same rule as for schedules
(`declarations`): limits in force yield to some that were never seen before, which is a deploy; and
to some that are known only when no other live worker declares those in force, which is a step back.
So an old worker that starts anew during a deploy does not bring its limits back.

Lock order: as of `limits`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from holdfast.core.digest import hex_digest
from holdfast.core.limiting import LimitBook, task_scope
from holdfast.core.options.limit import Limit, encode
from holdfast.core.payload.codec import to_json
from holdfast.store import rows
from holdfast.store.op import Statement, Steps, writes
from holdfast.store.verbs import limits

__all__ = ["LimitDeclaration", "declare"]

_MOST_SEEN = 50
_digests = msgspec.json.Decoder(dict[str, str])
_list = msgspec.json.Decoder(list[str])


class LimitDeclaration(NamedTuple):
    """What came of a declaration."""

    book: LimitBook
    """All limits that hold now."""
    yielded: Sequence[str]
    """Tasks of which other live workers declare other limits, which hold."""


class _Known(NamedTuple):
    digest: str
    seen: Sequence[str]


@writes
def declare(
    declared: Mapping[str, Sequence[Limit]], *, worker_id: str | None = None
) -> Steps[LimitDeclaration]:
    """Bring into force what the code of a worker says, where it is its turn.

    `worker_id`: whose code it is, from now on; without one nobody goes by it but this call.
    """
    mine = {name: _digest(encode(given)) for name, given in declared.items()}
    if worker_id is not None:
        yield Statement("declare_limits", {"worker_id": worker_id, "limits": to_json(mine)})
    chosen, _ = yield from _choose(mine, worker_id)
    if chosen:
        yield from limits.renew()
        # Nobody else changes a limit now, but somebody may have before.
        chosen, seen = yield from _choose(mine, worker_id)
        for name in sorted(chosen):
            params = {
                "scope": task_scope(name),
                "limits": encode(declared[name]),
                "seen": to_json([*seen[name][1 - _MOST_SEEN :], mine[name]]),
            }
            yield Statement("declare_limit", params)
        for name in sorted(chosen):
            yield from limits.counted_anew(task_scope(name))
        yield from limits.say_so()
    known = yield from _known(mine)
    yielded = sorted(name for name, digest in mine.items() if known[name].digest != digest)
    return LimitDeclaration((yield from limits.whole_book()), yielded)


def _choose(
    mine: Mapping[str, str], worker_id: str | None
) -> Steps[tuple[list[str], Mapping[str, Sequence[str]]]]:
    """The tasks of which our declaration should hold and does not, and what was seen of all."""
    known = yield from _known(mine)
    others = [name for name, digest in mine.items() if known[name].digest != digest]
    if not others:
        return [], {}
    live = yield from _live(worker_id or "")
    seen: dict[str, Sequence[str]] = {}
    for name in others:
        digest, before = known[name]
        # No limit was declared by nobody, unless somebody who lives does.
        was_said = digest or digest in live.get(name, ())
        every = [*before, digest] if was_said and digest not in before else before
        seen[name] = [each for each in every if each != mine[name]]
    if worker_id is None:
        return others, seen
    chosen = [
        name
        for name in others
        if mine[name] not in known[name].seen or known[name].digest not in live.get(name, ())
    ]
    return chosen, seen


def _known(mine: Mapping[str, str]) -> Steps[dict[str, _Known]]:
    """What code has declared of these tasks."""
    found = dict.fromkeys(mine, _Known(_digest(None), ()))
    for scope, declared, seen in (yield Statement("read_declared_limits")):
        kind, _, name = (rows.optional_text(scope) or "").partition(" ")
        if kind == "task" and name in found:
            found[name] = _Known(_digest(rows.optional_text(declared)), _decoded(seen))
    return found


def _live(worker_id: str) -> Steps[dict[str, set[str]]]:
    """What other live workers declare, by task; what cannot be read declares nothing."""
    found: dict[str, set[str]] = {}
    texts = yield Statement("live_limits", {"worker_id": worker_id})
    for text in rows.texts(row[0] for row in texts):
        try:
            declared = _digests.decode(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        for name, digest in declared.items():
            found.setdefault(name, set()).add(digest)
    return found


def _decoded(seen: str | None) -> Sequence[str]:
    try:
        return _list.decode(rows.optional_text(seen) or "[]")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ()


def _digest(text: str | None) -> str:
    return "" if text is None else hex_digest(text)[:16]
