"""The way from concurrency key to concurrency key: where a claim begins to look, and how far.

Owns the pages of one claim, and the *round* that goes on over several: a claim looks at no more
than 1,000 keys, and while nothing can be taken the next one goes on behind them, until all keys
have been met once. So nobody is passed over, and who has met all of them knows that there is
nothing to take.

How many of the first tasks of each key are read follows from what the last claim could take of one:
a single key with very many tasks gives as many at a time as many keys with one each.

The first tasks of a key may be none that this worker knows. Then it looks behind them (`deep`),
into some of these keys in each claim, and a round is not over before it has seen the last of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from holdfast.core.records import HEAD, Position
from holdfast.store import rows
from holdfast.store.op import Row, Statement, Steps
from holdfast.store.verbs.claims import Request, behind, claim_params, position

__all__ = ["MOST_KEYS", "Entries", "KeyPlace", "KeyWalk"]

MOST_KEYS: Final = 1000
_FIRST_KEYS: Final = 16
_LEAST_DEPTH: Final = 4
_MOST_DEPTH: Final = 500
_MOST_DEEP: Final = 1000
_MOST_ROWS: Final = 8000
"""What one page reads, at the most."""

Entries: TypeAlias = "Mapping[str, Sequence[Row]]"
"""Of each key, its first tasks that may be taken: in the order of the keys, and of the queue."""


class KeyPlace(NamedTuple):
    """Where the turns of keys go on."""

    after: str = ""
    """With the first key behind this one."""
    round_from: str | None = None
    """Where a round began in which nothing could be taken so far; None: the next claim begins
    one."""
    has_wrapped: bool = False
    """Whether this round has met the last key, and gone on with the first."""
    depth: int = _LEAST_DEPTH
    """How many of the first tasks of each key are worth reading."""

    deep: tuple[tuple[str, Position], ...] = ()
    """Keys of which nothing could be taken up to these positions, although there may be more."""
    is_walked: bool = False
    """Whether this round has met all keys, and only has to look behind those."""

    def anew(self) -> KeyPlace:
        """The same, but all keys are to be met once more."""
        return self._replace(round_from=None, has_wrapped=False, is_walked=False)


class KeyWalk:
    """The keys that one claim meets, page by page."""

    def __init__(self, place: KeyPlace, request: Request, wanted: int) -> None:
        begins = place.round_from is None
        self._request = request
        self._start = place.after if begins else place.round_from or ""
        # Before the first key there is none to come back to.
        self._has_wrapped = self._start == "" or (place.has_wrapped and not begins)
        self._depth = min(place.depth, request.wanted)
        self._page = max(_FIRST_KEYS, 2 * wanted)
        self._met = 0
        self.reached = place.after
        """The last key that was met."""
        self.cut: set[str] = set()
        """Keys that may have more tasks than were read of them."""
        self.saw_all = place.is_walked
        """Whether this ends the round: all keys were met."""
        self.deep: dict[str, Position] = dict(place.deep)
        """Keys of which nothing was found up to these positions, and which go on behind them."""

    @property
    def is_over(self) -> bool:
        """Whether all keys were met, or as many as one claim looks at."""
        return self.saw_all or self._met >= MOST_KEYS

    def step(self) -> Steps[Entries]:
        """The next keys, with the first tasks of each."""
        page = min(self._page, _MOST_ROWS // self._depth, MOST_KEYS - self._met)
        each = max(self._depth, _LEAST_DEPTH, MOST_KEYS // page)
        least = min(each, self._request.wanted)
        found = yield Statement(
            "keyed_candidates",
            claim_params(self._request)
            | {
                "after_key": rows.as_bound(self.reached),
                "until_key": rows.as_bound(self._start) if self._start else None,
                "wrapped": self._has_wrapped,
                "keys": page,
                "each": each,
            },
        )
        entries: dict[str, list[Row]] = {}
        for row in found:
            of_key = entries.setdefault(row[2], [])
            if row[0] is not None:
                of_key.append(row)
        self.cut |= {key for key, of_key in entries.items() if len(of_key) >= least}
        for key, of_key in entries.items():
            if not of_key and len(self.deep) < _MOST_DEEP:
                self.deep.setdefault(key, HEAD)
        self._met += len(entries)
        # There are many: each of them need not give much.
        self._page, self._depth = page * 4, 1
        self.saw_all = len(entries) < page
        if found:
            self.reached, self._has_wrapped = found[-1][2], bool(found[-1][6])
        return entries

    def look_behind(self, key: str, number: int) -> Steps[Entries]:
        """The next tasks of a key of which the first are none that may be taken."""
        after = self.deep.pop(key)
        bound = rows.as_bound(key)
        params = claim_params(self._request) | {
            "concurrency_key": bound,
            "wanted": number,
            **behind(after),
        }
        found = yield Statement("limited_candidates", params)
        if found:
            return {key: [(row[0], row[1], key, *row[2:], False) for row in found]}
        horizon = {"queue_name": self._request.queue, "concurrency_key": bound, **behind(after)}
        reached = position((yield Statement("claim_horizon", horizon)))
        if reached is not None:
            self.deep[key] = reached
        return {}

    def place(self, last: str | None, most: int) -> KeyPlace:
        """Where the next claim goes on; `last`: the key behind which turns go on, if something was
        taken; `most`: how many of one key."""
        depth = min(max(2 * most, _LEAST_DEPTH), _MOST_DEPTH)
        deep = tuple(self.deep.items())
        if last is not None:
            return KeyPlace(last, depth=depth, deep=deep)
        if self.saw_all and not deep:
            return KeyPlace(self.reached)
        going_on = KeyPlace(self.reached, self._start, self._has_wrapped, deep=deep)
        return going_on._replace(is_walked=self.saw_all)
