"""claim, under limits and by concurrency keys: whom it may take is decided in its transaction.

Owns the order in which keys take turns. The transaction locks the counters of the queue and of its
limited tasks, folds in what came free, reads candidates, decides (`core.limiting`), claims those
that are still there, and writes the counters for those it got. Invariant: no counter is ever
above its capacity, because whoever raises it has it locked.

Tasks with a key are found key by key (`key_walk`), from where the last claim stopped and once
round: each key gives one task, and only when all have given one each gives another; so a key with a
million tasks and a key with one are served alike. Where keys do not take turns, those tasks come
first that stand first in the queue. A key whose counter somebody else has locked is being served by
them: it is passed over.

A queue without limits and keys is not claimed from in this way, but by `claims.claim`.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from holdfast.core.limiting import (
    Budget,
    LimitBook,
    queue_scope,
    scopes_of,
)
from holdfast.core.options.limit import Rule
from holdfast.core.records import Claimed, Position
from holdfast.store import rows
from holdfast.store.op import Key, Keys, Row, Rows, Statement, Steps, Texts, writes
from holdfast.store.verbs import limits
from holdfast.store.verbs.claims import (
    Request,
    behind,
    claim_params,
    claimed,
    position,
    task_name_of,
)
from holdfast.store.verbs.key_walk import Entries, KeyPlace, KeyWalk

_BEGINNING: Final = KeyPlace()
_LOOKS: Final = 4
"""Of how many keys a claim looks behind the first tasks, if it has room for more."""
_OTHERS_US: Final = 10_000
"""µs after which a key is looked at again whose counter another claim had."""


class LimitedClaim(NamedTuple):
    """What a claim under limits found."""

    claimed: Claimed
    is_stale: bool = False
    """The limits have changed: nothing was claimed, read them first."""
    is_held_back: bool = False
    """Limits kept some of what there is from being claimed."""
    next_us: int | None = None
    """In how many µs a rate may let the next one begin; None: when a slot comes free."""
    place: KeyPlace = KeyPlace()
    """Where the turns of keys go on."""
    saw_all: bool = True
    """Whether more of the queue need not be looked at: nothing may be taken, or all keys were
    met."""
    is_full: bool = False
    """Whether nothing may be taken now, whatever else comes into the queue."""

    def next_at(self, now: float) -> float | None:
        """When a rate may let the next one begin, in seconds like `now`."""
        return None if self.next_us is None else now + self.next_us / 1_000_000


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
    whole = {name: _scopes(book, request.queue, name) for name in names}
    chosen: list[_Candidate] = []
    after: Position | None = request.after
    while after is not None and len(chosen) < request.wanted:
        left = {name: max(0, budget.left(scopes)) for name, (scopes, _) in whole.items()}
        number = min(sum(left.values()), request.wanted - len(chosen))
        if not number:
            break
        open_names = {name for name, free in left.items() if free}
        found = yield _limited_candidates(request, open_names, after, number)
        for key, name, *_ in found:
            scopes, slots = whole[name]
            if budget.take(scopes):
                chosen.append(_Candidate(rows.key(key), name, None, scopes, slots))
        # Those of which no more may begin may stand before others.
        after = position([found[-1][2:]]) if len(found) == number else None
    for scopes, _ in whole.values():
        # Of these there may be more.
        budget.block(scopes)
    got = yield from _take(request, budget, chosen)
    short = len(chosen) < request.wanted
    is_full = all(budget.left(scopes) <= 0 for scopes, _ in whole.values())
    return LimitedClaim(
        got,
        is_held_back=short and bool(budget.blocked),
        next_us=_until(budget) if short else None,
        saw_all=is_full,
        is_full=is_full,
    )


@writes
def claim_keys(
    request: Request, book: LimitBook, place: KeyPlace = _BEGINNING
) -> Steps[LimitedClaim]:
    """Take tasks with keys from one queue, the keys in turn from `place` on."""
    budget = yield from _open(request, book)
    if isinstance(budget, LimitedClaim):
        return budget._replace(place=place)
    is_fair = request.queue not in book.unfair
    wanted = min(request.wanted, budget.left(_known_scopes(budget, queue_scope(request.queue))))
    if wanted <= 0:
        budget.block([queue_scope(request.queue)])
        # What came free has to be counted all the same: it is in the ledger no more.
        nothing = yield from _take(request, budget, ())
        return LimitedClaim(nothing, False, True, _until(budget), place.anew(), is_full=True)
    walk = KeyWalk(place, request, wanted)
    turns = _Turns(request, book, budget, wanted)
    while not walk.is_over and (len(turns.chosen) < wanted or not is_fair):
        found = yield from walk.step()
        yield from turns.meet(found)
        if is_fair:
            turns.one_of_each(found)
    looks = 1 if len(turns.chosen) >= wanted else _LOOKS
    for key in [*walk.deep][:looks]:
        found = yield from walk.look_behind(key, wanted)
        yield from turns.meet(found)
        if is_fair:
            turns.one_of_each(found)
    if is_fair:
        turns.go_round()
    else:
        turns.in_order(walk.cut)
    got = yield from _take(request, budget, turns.chosen)
    short = len(turns.chosen) < wanted
    last = None
    if turns.chosen:
        # Those that were not served come first.
        last = walk.reached if short or not is_fair else turns.chosen[-1].concurrency_key
    until = _until(budget) if short or wanted < request.wanted else None
    if short and turns.met_others:
        # What others leave of these keys can be taken when their claim is over.
        until = min(until or _OTHERS_US, _OTHERS_US)
    return LimitedClaim(
        got,
        is_held_back=bool(budget.blocked or turns.met_others)
        and len(turns.chosen) < request.wanted,
        next_us=until,
        place=walk.place(last, turns.most_of_a_key),
        saw_all=walk.saw_all and not walk.deep and not turns.has_more(walk.cut),
    )


class _Turns:
    """Whom a claim takes of those whose keys it has met, within what is free."""

    def __init__(self, request: Request, book: LimitBook, budget: Budget, wanted: int) -> None:
        self._request = request
        self._book = book
        self._budget = budget
        self._wanted = wanted
        self._needs: dict[tuple[str, str], tuple[tuple[str, ...], int]] = {}
        self._waiting: dict[str, deque[Row]] = {}
        self._took_last: set[str] = set()
        """Keys of which the last task that was looked at could be taken."""
        self.chosen: list[_Candidate] = []
        self.met_others = False
        """Whether another claim had the counter of some key."""

    def meet(self, found: Entries) -> Steps[None]:
        """Lock what the tasks of these keys count against."""
        own: dict[str, Rule] = {}
        for key, of_key in found.items():
            self._waiting[key] = deque(of_key)
            # A key that was written by hand may be no text, and cannot be counted.
            counted = key if rows.optional_text(key) is not None else None
            for task in {row[1] for row in of_key}:
                counters = scopes_of(self._book, self._request.queue, task, counted)
                self._needs[task, key] = _needs(counters)
                own |= {scope: rule for scope, rule, _ in counters if not self._budget.knows(scope)}
        yield from _lock_keys(self._budget, own)
        self.met_others |= not all(map(self._budget.knows, own))

    def one_of_each(self, keys: Iterable[str]) -> bool:
        """Take one task of each of these keys that has one which may begin; whether any had."""
        before = len(self.chosen)
        for key in keys:
            waiting = self._waiting[key]
            while waiting and len(self.chosen) < self._wanted and not self._take(waiting.popleft()):
                pass
        return len(self.chosen) > before

    def go_round(self) -> None:
        """Each key has given one: take another of each, and so on."""
        while len(self.chosen) < self._wanted and self.one_of_each(self._waiting):
            pass

    def in_order(self, cut: Collection[str]) -> None:
        """Take those that stand first in the queue, whatever their keys; `cut`: keys that may have
        more tasks than were read."""
        every = (row for of_key in self._waiting.values() for row in of_key)
        for row in sorted(every, key=lambda row: (row[3], row[4], rows.as_hex(row[5]))):
            if len(self.chosen) >= self._wanted:
                break
            waiting = self._waiting[row[2]]
            waiting.popleft()
            if self._take(row) and not waiting and row[2] in cut:
                # What comes next of this key may stand before what is left of the others.
                break

    def has_more(self, cut: Collection[str]) -> bool:
        """Whether more could be taken of a key of which all that was read has been taken."""
        return any(not self._waiting[key] for key in self._took_last.intersection(cut))

    @property
    def most_of_a_key(self) -> int:
        """How many were taken of one key, at the most."""
        return max(Tally(each.concurrency_key for each in self.chosen).values(), default=0)

    def _take(self, row: Row) -> bool:
        scopes, slots = self._needs[row[1], row[2]]
        if not (all(map(self._budget.knows, scopes)) and self._budget.take(scopes)):
            self._took_last.discard(row[2])
            return False
        self._took_last.add(row[2])
        self.chosen.append(_Candidate(rows.key(row[0]), row[1], row[2], scopes, slots))
        return True


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


def _scopes(book: LimitBook, queue: str, task: str) -> tuple[tuple[str, ...], int]:
    return _needs(scopes_of(book, queue, task, None))


def _needs(found: Sequence[tuple[str, Rule, int]]) -> tuple[tuple[str, ...], int]:
    """The counters that a task counts against, and the bits of those that it holds one of."""
    # What has only a rate holds nothing, and gives nothing back.
    slots = sum(bit for _, rule, bit in found if rule.capacity is not None)
    return tuple(scope for scope, _, _ in found), slots


def _known_scopes(budget: Budget, scope: str) -> list[str]:
    return [scope] if budget.knows(scope) else []


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


def _limited_candidates(
    request: Request, names: Collection[str], after: Position, number: int
) -> Statement:
    known = [known for known in request.known if task_name_of(known) in names]
    params = claim_params(request) | {
        "known": Texts(known),
        "concurrency_key": "",
        "wanted": number,
        **behind(after),
    }
    return Statement("limited_candidates", params)
