"""claim, under limits and by concurrency keys: whom it may take is decided in its transaction.

Owns the order in which keys take turns. The transaction locks the counters of the queue and of its
limited tasks, folds in what came free, reads candidates, decides (`core.limiting`), claims those
that are still there, and writes the counters for those it got. Invariant: no counter is ever
above its capacity, because whoever raises it has it locked.

Tasks with a key are found key by key, from where the last claim stopped: each key gives one task,
then each another, so that a key with a million tasks and a key with one are served alike. A key
whose counter somebody else has locked is being served by them: it is passed over. At most 1,000
keys are looked at.

A queue without limits and keys is not claimed from in this way, but by `claims.claim`.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.core.limiting import (
    PLENTY,
    Budget,
    LimitBook,
    queue_scope,
    scopes_of,
)
from holdfast.core.options.limit import Rule
from holdfast.core.records import Claimed
from holdfast.store import rows
from holdfast.store.op import Key, Keys, Rows, Statement, Steps, Texts, writes
from holdfast.store.verbs import limits
from holdfast.store.verbs.claims import Request, behind, claim_params, claimed, task_name_of

MOST_KEYS = 1000
_FIRST_KEYS = 16


class LimitedClaim(NamedTuple):
    """What a claim under limits found."""

    claimed: Claimed
    is_stale: bool = False
    """The limits have changed: nothing was claimed, read them first."""
    is_held_back: bool = False
    """Limits kept some of what there is from being claimed."""
    next_us: int | None = None
    """In how many µs a rate may let the next one begin; None: when a slot comes free."""
    last_key: str = ""
    """Where the turns of keys go on."""
    saw_all: bool = True
    """Whether more of the queue need not be looked at: nothing may be taken, or all keys were
    seen."""


class _Candidate(NamedTuple):
    key: Key
    task_name: str
    concurrency_key: str | None
    scopes: tuple[str, ...]
    slots: int


@writes
def claim(request: Request, book: LimitBook) -> Steps[LimitedClaim]:
    """Take tasks without a key from one queue, as far as its limits allow."""
    budget = yield from _open(request, book)
    if isinstance(budget, LimitedClaim):
        return budget
    names = {task_name_of(known) for known in request.known}
    whole = {name: _scopes(book, request.queue, name, None) for name in names}
    caps = {name: min(budget.left(scopes), request.wanted) for name, (scopes, _) in whole.items()}
    open_names = {name for name, cap in caps.items() if cap > 0}
    for name in names - open_names:
        budget.block(whole[name][0])
    chosen: list[_Candidate] = []
    if open_names:
        found = yield _limited_candidates(request, open_names, caps)
        for key, name, _ in found:
            scopes, slots = whole[name]
            if budget.take(scopes):
                chosen.append(_Candidate(rows.key(key), name, None, scopes, slots))
        # One that was cut off by its cap may stand behind it.
        for name, number in Tally(each.task_name for each in chosen).items():
            if number >= caps[name]:
                budget.block(whole[name][0])
    got = yield from _take(request, budget, chosen)
    short = len(chosen) < request.wanted
    return LimitedClaim(
        got,
        is_held_back=short and bool(budget.blocked),
        next_us=_until(budget) if short else None,
        saw_all=all(budget.left(scopes) <= 0 for scopes, _ in whole.values()),
    )


@writes
def claim_keys(request: Request, book: LimitBook, after_key: str = "") -> Steps[LimitedClaim]:
    """Take tasks with keys from one queue, the keys in turn from behind `after_key` on."""
    budget = yield from _open(request, book)
    if isinstance(budget, LimitedClaim):
        return budget
    is_fair = request.queue not in book.unfair
    wanted = min(request.wanted, budget.left(_known_scopes(budget, queue_scope(request.queue))))
    if wanted <= 0:
        budget.block([queue_scope(request.queue)])
        nothing = Claimed(request.token, [])
        return LimitedClaim(nothing, False, True, _until(budget), after_key)
    chosen: list[_Candidate] = []
    start, place, wrapped, seen, page = after_key, after_key, after_key == "", 0, _FIRST_KEYS
    if not is_fair:
        # The first of all keys: whose turn it is has no meaning.
        start = place = ""
        wrapped, page = True, MOST_KEYS
    last, saw_all = after_key, False
    while len(chosen) < wanted and seen < MOST_KEYS and not saw_all:
        page = min(max(page, 2 * wanted), MOST_KEYS - seen)
        found = yield _keyed_candidates(request, place, page)
        entries = _by_key(found)
        if wrapped and start:
            # Once round: those behind the start have been seen.
            entries = {key: of_key for key, of_key in entries.items() if key <= start}
        walked = len({row[2] for row in found})
        chosen += yield from _choose(request, book, budget, entries, wanted - len(chosen), is_fair)
        seen += walked
        if walked:
            place = last = found[-1][2]
        beyond = wrapped and bool(start) and place >= start
        if beyond or (walked < page and wrapped):
            saw_all = True
        elif walked < page:
            wrapped, place = True, ""
        page *= 4
    if chosen and is_fair and len(chosen) >= wanted:
        # Those of the last round that were not served come first.
        last = chosen[-1].concurrency_key or last
    got = yield from _take(request, budget, chosen)
    short = len(chosen) < wanted
    return LimitedClaim(
        got,
        is_held_back=bool(budget.blocked) and len(chosen) < request.wanted,
        next_us=_until(budget) if short or wanted < request.wanted else None,
        last_key=last,
        saw_all=saw_all,
    )


def _open(request: Request, book: LimitBook) -> Steps[Budget | LimitedClaim]:
    """Lock what all candidates count against; or the answer, if the rules are others by now."""
    wanted: dict[str, Rule] = {}
    for task in map(task_name_of, request.known):
        wanted |= {scope: rule for scope, rule, _ in scopes_of(book, request.queue, task, None)}
    scopes = Texts(sorted(wanted))
    # The version is read when the counters are locked: who changes a rule locks them, too.
    locked, gate = yield (
        Statement("lock_counters", {"scopes": scopes}),
        Statement("claim_gate", {"queue_name": request.queue}),
    )
    version, is_paused, now = gate[0]
    is_stale = rows.optional_text(version) != book.version
    if is_paused or is_stale:
        return LimitedClaim(Claimed(request.token, []), is_stale=is_stale)
    freed: Rows = ()
    if wanted:
        freed = yield Statement("fold_freed", {"scopes": scopes})
    known = limits.counters(locked)
    missing = sorted(wanted.keys() - known.keys())
    if missing:
        yield limits.adding(missing)
        more = yield Statement("lock_counters", {"scopes": Texts(missing)})
        known |= limits.counters(more)
    budget = Budget(now)
    came_free = _sums(freed)
    for scope, rule in wanted.items():
        budget.add(scope, rule, known[scope], came_free[scope])
    return budget


def _sums(freed: Rows) -> Tally[str]:
    sums: Tally[str] = Tally()
    for scope, number in freed:
        sums[scope] += number
    return sums


def _scopes(book: LimitBook, queue: str, task: str, key: str | None) -> tuple[tuple[str, ...], int]:
    found = scopes_of(book, queue, task, key)
    # What has only a rate holds nothing, and gives nothing back.
    slots = sum(bit for _, rule, bit in found if rule.capacity is not None)
    return tuple(scope for scope, _, _ in found), slots


def _known_scopes(budget: Budget, scope: str) -> list[str]:
    return [scope] if budget.knows(scope) else []


def _by_key(found: Rows) -> dict[str, Rows]:
    entries: dict[str, list[tuple[object, ...]]] = {}
    for row in found:
        of_key = entries.setdefault(row[2], [])
        if row[0] is not None:
            of_key.append(row)
    return entries  # type: ignore[return-value]  # lists are sequences


def _choose(
    request: Request,
    book: LimitBook,
    budget: Budget,
    entries: dict[str, Rows],
    wanted: int,
    is_fair: bool,
) -> Steps[list[_Candidate]]:
    """Some of these, within what is free: one of each key, then another of each; or in order."""
    needs: dict[tuple[str, str], tuple[tuple[str, ...], int]] = {}
    own: dict[str, Rule] = {}
    for key, of_key in entries.items():
        for row in of_key:
            if (row[1], key) in needs:
                continue
            # A key that was written by hand may be no text, and cannot be counted.
            counted = key if rows.optional_text(key) is not None else None
            needs[row[1], key] = _scopes(book, request.queue, row[1], counted)
            counters = scopes_of(book, request.queue, row[1], counted)
            own |= {scope: rule for scope, rule, _ in counters if not budget.knows(scope)}
    yield from _lock_keys(budget, own)
    order = [row for of_key in entries.values() for row in of_key]
    if is_fair:
        rank = {row[0]: place for of_key in entries.values() for place, row in enumerate(of_key)}
        order.sort(key=lambda row: rank[row[0]])
    else:
        order.sort(key=lambda row: (row[3], row[4], rows.as_hex(row[5])))
    chosen: list[_Candidate] = []
    for row in order:
        if len(chosen) >= wanted:
            break
        scopes, slots = needs[row[1], row[2]]
        if all(map(budget.knows, scopes)) and budget.take(scopes):
            chosen.append(_Candidate(rows.key(row[0]), row[1], row[2], scopes, slots))
    return chosen


def _lock_keys(budget: Budget, wanted: dict[str, Rule]) -> Steps[None]:
    """Lock the counters of keys, but for those that others have locked."""
    if not wanted:
        return
    scopes = Texts(sorted(wanted))
    there, ours = yield (
        Statement("read_counters", {"scopes": scopes}),
        Statement("try_counters", {"scopes": scopes}),
    )
    known = limits.counters(ours)
    missing = sorted(wanted.keys() - {row[0] for row in there})
    if missing:
        yield limits.adding(missing)
        more = yield Statement("try_counters", {"scopes": Texts(missing)})
        known |= limits.counters(more)
    freed = yield Statement("fold_freed", {"scopes": Texts(sorted(known))})
    came_free = _sums(freed)
    for scope, counter in known.items():
        budget.add(scope, wanted[scope], counter, came_free[scope])


def _take(request: Request, budget: Budget, chosen: Sequence[_Candidate]) -> Steps[Claimed]:
    """Claim those that are still there, and count them."""
    got = Claimed(request.token, [])
    if chosen:
        params = claim_params(request) | {
            "keys": Keys(each.key for each in chosen),
            "slots": {_named(each.key): each.slots for each in chosen},
        }
        got = claimed(request, (yield Statement("claim_chosen", params)))
        here = {task.key for task in got.tasks} | {each.key for each in got.refused}
        for each in chosen:
            if each.key not in here:
                budget.give_back(each.scopes)
    changed = budget.changed()
    if changed:
        yield limits.writing(changed)
    return got


def _named(key: Key) -> str:
    return key.hex() if isinstance(key, bytes) else str(key)


def _until(budget: Budget) -> int | None:
    at = budget.next_at()
    return None if at is None else max(0, at - budget.now)


def _limited_candidates(request: Request, names: Iterable[str], caps: dict[str, int]) -> Statement:
    wanted = set(names)
    known = [known for known in request.known if task_name_of(known) in wanted]
    params = claim_params(request) | {
        "known": Texts(known),
        "caps": {name: min(cap, PLENTY) for name, cap in caps.items()},
        **behind(request.after),
    }
    return Statement("limited_candidates", params)


def _keyed_candidates(request: Request, after_key: str, keys: int) -> Statement:
    params = claim_params(request) | {
        "after_key": rows.as_bound(after_key),
        "keys": keys,
        "each": max(4, MOST_KEYS // keys),
    }
    return Statement("keyed_candidates", params)
