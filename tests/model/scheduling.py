"""Schedules: a model that goes by the table of what fires when, and rules that hold engines to it.

Owns a third implementation: dictionaries of ticks, no plans and no rows. Which ticks a pattern has
is tested elsewhere, so here all are whole multiples of something, or come once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.core.moment import from_us
from holdfast.core.schedules.definition import ScheduleDefinition
from holdfast.core.schedules.firing import LATE_US, Missed, Overlap
from holdfast.core.schedules.timing import When
from holdfast.store.verbs import cancel, operate, schedules, ticks
from tests.model.side import Side
from tests.model.verdict import SECOND
from tests.support.schedules import call, schedule

NAMES = ("nightly", "often")
EVERY = (20, 60, 420)
_WHOLE = 420 * SECOND
POLICIES: tuple[tuple[Overlap, Missed], ...] = (
    ("skip", "skip"),
    ("skip", "latest"),
    ("wait", "skip"),
    ("wait", "latest"),
    ("wait", "all"),
    ("allow", "skip"),
    ("allow", "latest"),
    ("allow", "all"),
)
FIRED, WAITING, DROPPED = "fired", "waiting", "dropped"


class Fate(NamedTuple):
    """What became of a tick."""

    status: str
    cause: str


class Run(NamedTuple):
    """A task that a tick has sent."""

    name: str
    tick: int


@dataclass
class Known:
    """One schedule, as the model has it."""

    definition: ScheduleDefinition
    every: int
    begin: int | None
    end: int | None
    next: int | None
    is_unique: bool
    is_paused: bool = False
    last: Run | None = None
    runs: int = 0
    dropped: int = 0
    fates: dict[int, Fate] = field(default_factory=dict)

    def after(self, moment: int) -> int | None:
        """The first tick after a moment."""
        if self.begin is not None:
            moment = max(moment, self.begin - 1)
        tick = (moment // self.every + 1) * self.every
        return None if self.end is not None and tick >= self.end else tick

    def between(self, after: int, until: int) -> list[int]:
        found: list[int] = []
        while (tick := self.after(after)) is not None and tick <= until:
            found.append(after := tick)
        return found

    @property
    def waiting(self) -> list[int]:
        return sorted(tick for tick, fate in self.fates.items() if fate.status == WAITING)

    def drop(self, dropped: Sequence[int], cause: str) -> None:
        for tick in dropped:
            self.dropped += 1
            if self.fates.get(tick, Fate(WAITING, "")).status != FIRED:
                self.fates[tick] = Fate(DROPPED, cause)


class Scheduling(RuleBasedStateMachine):
    """Everything that happens to schedules."""

    open_sides: Callable[[ExitStack], Sequence[Side]]

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.sides = type(self).open_sides(self.closing)
        # A moment of which the same is true in every example: all ticks are a while from it.
        self.now = (self.sides[0].lab.clock.now // _WHOLE + 1) * _WHOLE + 10 * SECOND
        for side in self.sides:
            side.lab.clock.move_to(self.now)
        self.known: dict[str, Known] = {}
        self.live: list[Run] = []
        self.sent: list[Run] = []
        self.unique_runs: set[Run] = set()
        """Those that were sent with the unique key."""
        self.ids: dict[tuple[str, Run], bytes] = {}

    def teardown(self) -> None:
        self.closing.close()

    @invariant()
    def same_everywhere(self) -> None:
        expected = {
            name: (s.next, s.runs, s.dropped, bool(s.waiting), s.last and s.last.tick, s.is_paused)
            for name, s in self.known.items()
        }
        fates = {
            (name, tick): fate for name, s in self.known.items() for tick, fate in s.fates.items()
        }
        is_due = {
            name
            for name, s in self.known.items()
            if not s.is_paused
            and (
                (s.next or self.now + 1) <= self.now
                or (s.waiting and (s.definition.overlap == "allow" or not self._is_live(s)))
            )
        }
        for side in self.sides:
            found = {
                each.name: (
                    each.next_run_at,
                    each.run_count,
                    each.dropped_count,
                    each.has_waiting,
                    each.last_tick,
                    each.paused_at is not None,
                )
                for each in side.run(schedules.list_schedules())
            }
            assert found == expected, f"{side.name}: {found}, expected {expected}"
            stored = {
                (name, each.tick): Fate(each.status.value, each.cause.value)
                for name in found
                for each in side.run(ticks.history(name, limit=5000))
            }
            assert stored == fates, f"{side.name}: {stored}, expected {fates}"
            due = side.run(ticks.due())
            assert set(due.names) == is_due, side.name
            coming = [s.next for s in self.known.values() if s.next and not s.is_paused]
            soonest = min((at for at in coming if at > self.now), default=None)
            assert due.next_us == soonest, side.name
            tasks = side.lab.sql(
                "SELECT schedule_name, schedule_tick FROM holdfast_tasks ORDER BY created_at"
            )
            assert sorted(Run(*row) for row in tasks) == sorted(self.sent), side.name

    def both(self, expected: object, make: Callable[[], Any]) -> None:
        for side in self.sides:
            answer = side.run(make())
            assert answer == expected, f"{side.name}: {answer!r}, expected {expected!r}"

    # What happens

    @rule(
        name=st.sampled_from(NAMES),
        every=st.sampled_from(EVERY),
        policy=st.sampled_from(POLICIES),
        most=st.sampled_from((1, 3, 100)),
        begin=st.sampled_from((None, None, 100, -100)),
        end=st.sampled_from((None, None, 1000)),
        unique=st.sampled_from((False, False, True)),
    )
    def add(
        self,
        name: str,
        every: int,
        policy: tuple[Overlap, Missed],
        most: int,
        begin: int | None,
        end: int | None,
        unique: bool,
    ) -> None:
        """A new one, the same once more, or another definition."""
        start_at = None if begin is None else (self.now // SECOND + begin) * SECOND
        end_at = None if end is None else (self.now // SECOND + end) * SECOND
        # Multiples of an interval are counted from `start`, those of a pattern are not.
        when: When = "* * * * *" if every == 60 else timedelta(seconds=every)
        if every != 60:
            start_at = None
        options: dict[str, Any] = {"overlap": policy[0], "missed": policy[1], "max_missed": most}
        options |= {"start": start_at and from_us(start_at), "end": end_at and from_us(end_at)}
        sends = call(unique="k") if unique else call()
        definition = schedule(when, name, sends, **options)
        new = Known(definition, every * SECOND, start_at, end_at, None, unique)
        new.next = new.after(self.now)
        for side in self.sides:
            side.run(schedules.add(definition))
        old = self.known.get(name)
        if old is None:
            self.known[name] = new
        elif old.definition != definition:
            old.drop(old.waiting, "changed")
            old.definition, old.every, old.next = definition, new.every, new.next
            old.begin, old.end, old.is_unique = start_at, end_at, unique

    @rule(by=st.sampled_from((1, 20, 59, 61, 200, 1500)))
    def advance(self, by: int) -> None:
        self._move_to(self.now + by * SECOND)

    @precondition(lambda self: any(s.next for s in self.known.values()))
    @rule()
    def until_the_next(self) -> None:
        at = min(s.next for s in self.known.values() if s.next)
        self._move_to(at)

    def _move_to(self, at: int) -> None:
        self.now = max(self.now, at)
        for side in self.sides:
            side.lab.clock.move_to(self.now)

    @precondition(lambda self: self.known)
    @rule(name=st.sampled_from(NAMES), again=st.booleans())
    def fire(self, name: str, again: bool) -> None:
        """As every worker does; the second of two finds nothing to do."""
        for _ in range(1 + again):
            fired = self._fire(name)
            for side in self.sides:
                done = side.run(ticks.fire(name))
                found = None if done is None else [run.tick for run in done.runs]
                assert found == fired, f"{side.name}: {found}, expected {fired}"
                self._note(side, name, [] if done is None else done.runs)

    def _fire(self, name: str) -> list[int] | None:
        s = self.known.get(name)
        if s is None or s.is_paused:
            return None
        rule = s.definition
        due = [] if s.next is None else s.between(s.next - 1, self.now)
        in_time = [tick for tick in due if self.now - tick <= LATE_US]
        late = [tick for tick in due if tick not in in_time]
        if rule.missed == "latest":
            kept = due[-1:]
        elif rule.missed == "skip":
            kept = in_time[-1:]
        else:
            kept = late[-rule.max_missed :] + in_time
        gone = [tick for tick in due if tick not in kept]
        # All are counted, but only the newest twenty named.
        s.dropped += len(gone[:-20])
        s.drop(gone[-20:], "missed")
        if due:
            s.next = s.after(self.now)
        pool = sorted({*s.waiting, *kept})
        if rule.overlap == "allow":
            chosen, rest = pool[:100], pool[100:]
        elif rule.missed == "all":
            chosen, rest = (pool[:0], pool) if self._is_live(s) else (pool[:1], pool[1:])
        elif not self._is_live(s):
            chosen, rest = pool[-1:], []
            s.drop(pool[:-1], "overlap")
        elif rule.overlap == "wait":
            chosen, rest = [], pool[-1:]
            s.drop(pool[:-1], "overlap")
        else:
            chosen, rest = [], []
            s.drop(pool, "overlap")
        for tick in rest:
            s.fates.setdefault(tick, Fate(WAITING, "tick"))
        return self._send(s, chosen, "tick")

    def _is_live(self, s: Known) -> bool:
        return s.last in self.live

    def _send(self, s: Known, chosen: Sequence[int], cause: str) -> list[int]:
        """Send what these ticks stand for: those that went through."""
        fired: list[int] = []
        for tick in chosen:
            if s.fates.get(tick, Fate(WAITING, "")).status == FIRED:
                continue
            run = Run(s.definition.name, tick)
            if s.is_unique and self._is_taken():
                s.fates[tick] = Fate(DROPPED, "unique")
                s.dropped += 1
                continue
            s.fates[tick] = Fate(FIRED, cause)
            s.runs += 1
            s.last = run
            self.live.append(run)
            self.sent.append(run)
            if s.is_unique:
                self.unique_runs.add(run)
            fired.append(tick)
        return fired

    def _is_taken(self) -> bool:
        return any(run in self.unique_runs for run in self.live)

    def _note(self, side: Side, name: str, runs: Sequence[ticks.TickRun]) -> None:
        self.ids |= {(side.name, Run(name, run.tick)): run.id for run in runs}

    # By hand

    @precondition(lambda self: self.known)
    @rule(picked=st.integers(0, 31), gone=st.booleans())
    def end(self, picked: int, gone: bool) -> None:
        """A run ends, and is perhaps deleted."""
        if not self.live:
            return
        run = self.live.pop(picked % len(self.live))
        if gone:
            self.sent.remove(run)
        for side in self.sides:
            id = self.ids[side.name, run]
            side.run(cancel.cancel([id]))
            if gone:
                side.run(operate.delete([id]))

    @precondition(lambda self: self.known)
    @rule(name=st.sampled_from(NAMES), resume=st.booleans())
    def pause(self, name: str, resume: bool) -> None:
        s = self.known.get(name)
        if s is None:
            return
        changes = s.is_paused == resume
        verb = schedules.resume if resume else schedules.pause
        self.both(changes, lambda: verb(name))
        if resume and changes:
            s.drop(s.waiting, "changed")
            s.next = s.after(self.now)
        s.is_paused = not resume

    @precondition(lambda self: self.known)
    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        self.both(self.known.pop(name, None) is not None, lambda: schedules.delete(name))

    @precondition(lambda self: self.known)
    @rule(name=st.sampled_from(NAMES))
    def run_now(self, name: str) -> None:
        s = self.known.get(name)
        if s is None:
            return
        tick = self.now
        while s.fates.get(tick, Fate(WAITING, "")).status == FIRED:
            tick += 1
        fired = self._send(s, [tick], "run_now")
        for side in self.sides:
            run = side.run(ticks.run_now(name))
            assert ([] if run is None else [run.tick]) == fired, side.name
            self._note(side, name, [] if run is None else [run])

    @precondition(lambda self: self.known)
    @rule(name=st.sampled_from(NAMES), times=st.integers(2, 4), end=st.booleans())
    def go_on(self, name: str, times: int, end: bool) -> None:
        """Some ticks, one after the other, each at its time."""
        for _ in range(times):
            s = self.known.get(name)
            if s is None or s.is_paused or s.next is None:
                return
            self._move_to(s.next)
            self.fire(name, False)
            if end:
                self.end(0, False)

    @precondition(lambda self: self.known)
    @rule(name=st.sampled_from(NAMES), back=st.sampled_from((60, 300, 1500)))
    def backfill(self, name: str, back: int) -> None:
        """What passed before the next tick and was not fired."""
        s = self.known.get(name)
        if s is None:
            return
        begin = self.now - back * SECOND
        end = min(self.now + 1, s.next or self.now + 1)
        part = s.between(begin - 1, end - 1)[:100]
        fired = self._send(s, part, "backfill")
        for side in self.sides:
            done = side.run(ticks.backfill(name, begin, end, begin))
            assert [run.tick for run in done.runs] == fired, side.name
            self._note(side, name, done.runs)
