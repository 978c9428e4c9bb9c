"""Where work comes from: queues, which of the known tasks to take from each, and where to look.

Owns the claimer's memory of every queue: whether anything may be in it, and from which position on
a claim should look (`Cursor`, `KeyRounds`).

A worker of a few queues polls each of them. A worker of many would do nothing else: it asks once
which of them have anything, and looks into those. A source is *awake* from the hint or the answer
that names its queue until a look finds nothing more in it; with few queues all sources are awake
all the time.

A *gated* source has limits, or takes turns between concurrency keys: it is claimed from under the
limits, and only for children that are free, so that nothing of it waits here while it counts. One
that limits hold back is looked into again when a rate may let the next one begin, or a slot has
come free.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final, get_args

from holdfast.core.limiting import NO_LIMITS, LimitBook, queue_scope, task_scope
from holdfast.core.options.policy import Policy
from holdfast.core.records import Position
from holdfast.runtime.queue_choice import QueueChoice
from holdfast.runtime.supervisor.state.cursor import PATIENCE, Cursor
from holdfast.runtime.supervisor.state.key_rounds import KeyRounds
from holdfast.runtime.wire.messages import Kind, KnownTask
from holdfast.store.verbs.claims import known_name, rules
from holdfast.store.verbs.limited_claims import LimitedClaim

FEW: Final = 4
"""Queues that are asked one by one."""
_ALL: Final = 1_000_000
_APART: Final = 1.0
"""Seconds for which what is claimed from a source is not expected to share a child."""


class QueueSource:
    """One queue and some of the known tasks. Changes under the ledger's lock only."""

    def __init__(
        self,
        choice: QueueChoice,
        tasks: Sequence[KnownTask],
        *,
        is_limited: bool = False,
        is_keyed: bool = False,
    ) -> None:
        self.choice = choice
        self.is_keyed = is_keyed
        """Whether it is of tasks with concurrency keys; all others are of those without."""
        self.is_gated = is_limited or is_keyed
        self.has_keys = False
        """Whether tasks with keys wait, as far as is known."""
        self.uses_keys = False
        """Whether there were any, ever."""
        self.rounds = KeyRounds()
        """Of tasks with keys: where their turns go on."""
        self._hints = self._hints_at_claim = 0
        self._frees = self._frees_at_claim = 0
        self._claim_began = 0.0
        self.held_back_until = 0.0
        """Nothing can be claimed before, unless a slot comes free; 0: not held back."""
        self.waits_for_rate = False
        self._is_full = False
        """Whether what comes in can begin no sooner than what is held back."""
        self._in_hand_at_claim = 0
        self._most_in_hand: int | None = None
        """How many of its tasks limits let this worker have at a time; None: all it wants."""
        self.signs_at = 0.0
        """When it was last asked whether tasks with keys wait."""
        self.queue = choice.name
        self.kind: Kind = tasks[0].kind
        self.names = [known_name(task.name, task.version) for task in tasks]
        """What a claim may take."""
        self.tasks = [task.name for task in tasks]
        self._scopes = {queue_scope(choice.name), *map(task_scope, self.tasks)}
        self.policies = rules((task.name, task.version, task.task_options) for task in tasks)
        """What those among them that were sent by name should go by."""
        self.only = tasks[0] if tasks[0].max_concurrent is not None else None
        """The one task of this source, if it has a limit of its own."""
        self.is_deep = False
        """Whether the last claim found as much as it wanted, so that there is likely more."""
        self.is_urgent = False
        """Whether something in it goes before what children have not begun."""
        self.is_careful = False
        """Whether a claim was refused for a row that breaks the constraints of the table."""
        self._apart_until = 0.0
        self._has_alone = any(Policy.decode(task.task_options).is_alone for task in tasks)
        self.cursor = Cursor()

    def may_find(self, now: float) -> bool:
        """Whether a claim may find something."""
        if self.held_back_until:
            return False
        return self.has_keys if self.is_keyed else self.cursor.may_find(now)

    def hinted(self, polled_at: float | None = None) -> None:
        """Something came into its queue, or a slot has come free; or it may have, if `polled_at`
        says when nobody has said so."""
        if polled_at is not None and polled_at < self.rounds.poll_not_before:
            return
        self.sent()
        self.freed()

    def sent(self) -> None:
        """Something came into its queue."""
        self._hints += 1
        self.cursor.hinted()
        self.has_keys = self.has_keys or self.uses_keys
        if not (self._is_full and self.held_back_until):
            self.held_back_until = self.rounds.hint_not_before

    def freed(self) -> None:
        """A slot has come free of a limit that may hold it back."""
        self._hints += 1
        self._frees += 1
        self.held_back_until = self.rounds.hint_not_before

    def waits_for(self, scopes: Collection[str]) -> bool:
        """Whether one of these limits may hold it back."""
        return self.is_gated and not self._scopes.isdisjoint(scopes)

    def revive(self, now: float) -> None:
        """Look again, if it is held back until now."""
        if 0.0 < self.held_back_until <= now:
            self.rounds.hint_not_before = 0.0
            self._is_full = False
            self.hinted()

    def begin_claim(self, now: float, in_hand: int) -> None:
        """A claim from it begins, while so many of its tasks are in hand: hints from now on are
        about what it may not see."""
        self._in_hand_at_claim = in_hand
        self._hints_at_claim, self._frees_at_claim = self._hints, self._frees
        self._claim_began = now

    def met_limits(self, found: int, *, is_short: bool, is_held_back: bool) -> None:
        """A claim under limits is over, which found so many."""
        if is_held_back:
            # What was in hand before it. (What ended meanwhile has made room that it did not see.)
            self._most_in_hand = max(1, self._in_hand_at_claim + found)
        elif self._most_in_hand is not None:
            # They may leave more by now: try a little more each time.
            self._most_in_hand += 1 + self._most_in_hand // 10
        self.is_deep = is_held_back or not is_short

    def share(self, children: int) -> int:
        """How many of what limits leave to this worker one of so many children may have."""
        return _ALL if self._most_in_hand is None else -(-self._most_in_hand // max(children, 1))

    @property
    def has_news(self) -> bool:
        """Whether a hint came since the last claim from it began."""
        return self._hints != self._hints_at_claim

    @property
    def has_freed(self) -> bool:
        """Whether a slot may have come free since then."""
        return self._frees != self._frees_at_claim

    def turned(self, found: LimitedClaim, now: float, *, is_held_back: bool) -> None:
        """A claim has met some keys."""
        self.rounds.met(found, now - self._claim_began, now, is_held_back=is_held_back)
        if self.has_news:
            self.rounds.anew()

    def hold_back(self, until: float, *, for_rate: bool, is_full: bool) -> None:
        """Limits leave nothing to be claimed; `is_full`: whatever comes in."""
        self.held_back_until, self.waits_for_rate = until, for_rate
        self._is_full = is_full

    def may_share(self, now: float) -> bool:
        """Whether what is claimed next can be expected to share a child with others."""
        return now >= self._apart_until and not self._has_alone

    def met_alone(self, now: float) -> None:
        """Among what was claimed was a task that cannot share a child."""
        self._apart_until = now + _APART


def sources(
    choices: Sequence[QueueChoice], tasks: Sequence[KnownTask], book: LimitBook = NO_LIMITS
) -> list[QueueSource]:
    """The sources of a worker: a task with a limit of its own is claimed apart from the rest, and
    so are those that have a limit in the whole fleet, and those with concurrency keys."""
    free = [task for task in tasks if task.max_concurrent is None]
    by_kind = [[task for task in free if task.kind == kind] for kind in get_args(Kind)]
    apart = [[task] for task in tasks if task.max_concurrent is not None]
    found: list[QueueSource] = []
    for choice in choices:
        for group in filter(None, (*by_kind, *apart)):
            limited = [task for task in group if book.limits_whole(choice.name, task.name)]
            plain = [task for task in group if task not in limited]
            if plain:
                found.append(QueueSource(choice, plain))
            if limited:
                found.append(QueueSource(choice, limited, is_limited=True))
            found.append(QueueSource(choice, group, is_keyed=True))
    return found


class SourceList:
    """All sources of a worker, and when to look into them. Shares the ledger's lock."""

    def __init__(
        self, sources: Sequence[QueueSource], lock: threading.RLock, poll: float = 1.0
    ) -> None:
        self._lock = lock
        self._poll = poll
        self._poll_at = 0.0
        self._all: Sequence[QueueSource] = ()
        self._by_queue: defaultdict[str, list[int]] = defaultdict(list)
        self._awake: set[int] = set()
        self._keyed: set[str] = set()
        """Queues in which tasks with keys have been seen."""
        self.queues = list(dict.fromkeys(source.queue for source in sources))
        self.are_many = len(self.queues) > FEW
        self._wants_asking = self.are_many
        """Whether to ask all queues of many before the next poll is due."""
        self._ask_not_before = 0.0
        self._is_asking = False
        self._asks_for_poll = False
        self.replace(sources)

    def replace(self, sources: Sequence[QueueSource]) -> None:
        """Other sources of the same queues, because the limits have changed."""
        with self._lock:
            self._all = sources
            self._by_queue.clear()
            for place, source in enumerate(sources):
                self._by_queue[source.queue].append(place)
                source.uses_keys = source.has_keys = source.queue in self._keyed
            self._awake = set() if self.are_many else set(range(len(sources)))
            self._wants_asking = self.are_many

    def ranks(self) -> dict[str, int]:
        """The places of the queues, where those that come first are served first."""
        weighted = any(source.choice.weight is not None for source in self._all)
        return {} if weighted else {queue: place for place, queue in enumerate(self.queues)}

    def choices(self) -> dict[str, QueueChoice]:
        """How each queue is served."""
        return {source.queue: source.choice for source in self._all}

    def hinted(self, queues: frozenset[str]) -> bool:
        """There may be something in these queues, or anywhere if it does not say; False if that is
        nothing to us."""
        with self._lock:
            if queues and "" not in queues:
                return self._sent(queues)
            if self.are_many:
                self._wants_asking = True
            else:
                self.wake(self.queues)
            return True

    def _sent(self, queues: Iterable[str]) -> bool:
        places = [place for queue in queues for place in self._by_queue.get(queue, ())]
        for place in places:
            self._all[place].sent()
        self._awake.update(places)
        return bool(places)

    def wake(self, queues: Iterable[str], *, polled_at: float | None = None) -> bool:
        """There may be something in these queues; False if none of them is ours. `polled_at`:
        nobody has said so."""
        is_ours = False
        for queue in queues:
            for place in self._by_queue.get(queue, ()):
                is_ours = True
                self._all[place].hinted(polled_at)
                self._awake.add(place)
        return is_ours

    def freed(self, scopes: Collection[str]) -> bool:
        """Slots of these limits came free; False if nothing of ours waits for one."""
        waiting = [source for source in self._all if source.waits_for(scopes)]
        for source in waiting:
            source.freed()
        return bool(waiting)

    def poll(self, now: float) -> bool:
        """Look everywhere, if that is due; of many queues, somebody has to ask first."""
        if self.are_many or not self._is_poll_due(now):
            return False
        self.wake(self.queues, polled_at=now)
        return True

    def until_poll(self, now: float) -> float:
        """Seconds until there is something to look for although nothing was heard."""
        due = min(self._poll_at, self._ask_not_before) if self._wants_asking else self._poll_at
        held_back = (self._all[place].held_back_until for place in self._awake)
        return max(0.0, min([due, *filter(None, held_back)]) - now)

    def revive(self, now: float) -> None:
        """Look again into what was held back until now."""
        for place in self._awake:
            self._all[place].revive(now)

    def has_gated(self, now: float) -> bool:
        """Whether something may be claimed that is claimed for free children only."""
        return any(self._all[p].is_gated and self._all[p].may_find(now) for p in self._awake)

    def signs(self, queue: str, has_keys: bool, now: float) -> None:
        """Whether tasks with concurrency keys wait in a queue."""
        with self._lock:
            if has_keys:
                self._keyed.add(queue)
            for place in self._by_queue.get(queue, ()):
                source = self._all[place]
                source.signs_at = now
                source.has_keys = has_keys
                source.uses_keys = source.uses_keys or has_keys
                if source.is_keyed and has_keys:
                    self._awake.add(place)

    def begin_asking(self, now: float) -> bool:
        """Whether it is time to ask which of many queues have something; `asked` follows."""
        with self._lock:
            if not (self._is_poll_due(now) or (self._wants_asking and now >= self._ask_not_before)):
                return False
            self._asks_for_poll = not self._wants_asking
            # What comes in from here on gives another hint.
            self._wants_asking, self._is_asking = False, True
            return True

    def asked(self, found: Iterable[str] | None, began: float, now: float) -> None:
        """These have something; None if they could not be asked."""
        with self._lock:
            self._is_asking = False
            if found is None:
                self._wants_asking = True
                return
            # Hints that do not say which queue may come as often as anybody commits.
            self._ask_not_before = now + PATIENCE * (now - began)
            self.wake(found, polled_at=now if self._asks_for_poll else None)

    def _is_poll_due(self, now: float) -> bool:
        if now < self._poll_at:
            return False
        # The jitter keeps a fleet from asking in step.
        self._poll_at = now + self._poll * random.uniform(0.75, 1.25)
        return True

    def awake(self) -> Sequence[QueueSource]:
        """Those that may have something, in the order of the queues."""
        return [self._all[place] for place in sorted(self._awake)]

    def in_turn(self) -> Sequence[QueueSource]:
        """Those worth a look, in the order to try them: as given, or drawn by weight."""
        found = [source for source in self.awake() if source.has_keys or not source.is_keyed]
        if not found or found[0].choice.weight is None:
            return found
        # Drawing keys u^(1/w) and sorting is a draw without replacement by weight.
        keys = {s.queue: random.random() ** (1 / (s.choice.weight or 1)) for s in found}
        return sorted(found, key=lambda s: -keys[s.queue])

    def found(self, source: QueueSource, last: Position, now: float) -> None:
        """A claim from this source was satisfied; there may be more behind its last task."""
        with self._lock:
            source.is_deep = True
            source.cursor.looked(last, full=True, now=now)

    def short(self, source: QueueSource, horizon: Position | None, now: float) -> None:
        """A claim from it found less than it wanted; `horizon` is where it stopped looking."""
        with self._lock:
            source.is_deep = False
            source.cursor.looked(horizon, full=False, now=now)
            self._rest(source, now)

    def turned(
        self, source: QueueSource, found: LimitedClaim, *, is_short: bool, now: float
    ) -> None:
        """Keys of this source have had their turn; `is_short`: fewer were found than wanted."""
        with self._lock:
            held_back = is_short and found.is_held_back
            source.turned(found, now, is_held_back=held_back)
            if not (is_short and found.saw_all) or source.has_news:
                return
            source.rounds.over(now)
            if source.rounds.is_held_back:
                self.hold_back(source, source.rounds.until, now, is_full=found.is_full)
                return
            source.has_keys = False
            self._rest(source, now)

    def hold_back(
        self, source: QueueSource, until: float | None, now: float, *, is_full: bool
    ) -> None:
        """Limits hold back what is in this source: until a rate lets the next one begin, or a slot
        comes free; `is_full`: and whatever comes in."""
        with self._lock:
            # A slot may have come free since: then nobody would say so again.
            if not (source.has_freed if is_full else source.has_news):
                source.hold_back(
                    now + self._poll if until is None else until,
                    for_rate=until is not None,
                    is_full=is_full,
                )

    def _rest(self, source: QueueSource, now: float) -> None:
        """Of many queues, one in which nothing is left is not looked into until there is a hint."""
        if self.are_many and not source.may_find(now) and not source.held_back_until:
            self._awake -= {p for p in self._by_queue[source.queue] if self._all[p] is source}

    def look_again(self, source: QueueSource) -> None:
        """There may be more in this source than a claim has seen."""
        with self._lock:
            source.cursor.hinted()

    def may_find(self, now: float) -> bool:
        """Whether a claim from any of them may find something, as far as is known."""
        if self._wants_asking or self._is_asking:
            return True
        return any(
            self._all[place].may_find(now) or self._all[place].waits_for_rate
            for place in self._awake
        )
