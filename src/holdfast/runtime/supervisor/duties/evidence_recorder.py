"""Evidence of running tasks: what they print, and what they say about themselves.

Owns what has been heard and not yet stored, and how much memory that takes: of each run no more
than the store would keep, and of all runs together little more than `MOST_HELD`, however long
the store is away. Where something had to be left out it says so.

While a task runs, its notes and the head of its output are written a few times a second; what is
left when it ends is written with its end, in the same transaction. None of it is worth an
outcome: what the store refuses is dropped.

A row that another transaction holds (the task's own, perhaps, before it commits) is not waited
for: its notes stay here and gather, and those of others are written.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.core.text import one_line
from holdfast.runtime.supervisor.children.output_log import OutputLog, StrayOutput
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.child_handle import (
    Assignment,
    ChildHandle,
    ProtocolError,
)
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.task_log import named
from holdfast.runtime.wire.messages import Note
from holdfast.store.op import Key
from holdfast.store.protocol import Store
from holdfast.store.verbs import evidence
from holdfast.store.verbs.evidence import LONGEST_OUTPUT, LogPart, TaskNote

log = logging.getLogger("holdfast.worker")

_EVERY = 0.2
_IDLE = 60.0
"""Seconds to the next look while no run has anything to say."""
_MOST_TASKS = 200
_LONGEST = 2000
MOST_HELD = 64 * 1024 * 1024
"""Bytes of all runs; once they are held, each run keeps only its last few."""
_LEAST_OUTPUT = 16 * 1024
_LEFT_OUT = "\n[... more output is left out: a task's output ends here ...]\n"


@dataclass(slots=True)
class Record:
    """What is known of one run and not yet stored."""

    assignment: Assignment
    output_log: OutputLog = field(default_factory=OutputLog)
    note: TaskNote | None = None
    lines: list[str] = field(default_factory=list)
    """What a generator has put out."""
    held: int = 0
    """Characters of them."""
    room: int = LONGEST_OUTPUT - len(_LEFT_OUT)
    """How many more of them the store will take: it keeps the first."""

    def put_out(self, text: str, *, scarce: bool) -> None:
        """A generator yields; what nobody would keep is not kept here either."""
        room = 0 if scarce and self.held > _LEAST_OUTPUT else self.room
        if len(text) > room:
            text = text[:room] + _LEFT_OUT
            self.room = 0
        else:
            self.room -= len(text)
        self.lines.append(text)
        self.held += len(text)

    @property
    def size(self) -> int:
        """How much it holds, about."""
        return self.held + len(self.output_log)

    def take_note(self) -> TaskNote | None:
        """What it said about itself; each thing once."""
        note, self.note = self.note, None
        if note is not None and self.lines:
            note = replace(note, output="".join(self.lines))
            self.lines.clear()
            self.held = 0
        return note

    def take_part(self, *, all_of_it: bool) -> LogPart | None:
        """What it printed; each piece once."""
        data = self.output_log.rest() if all_of_it else self.output_log.live()
        if not data:
            return None
        task = self.assignment.task
        part = LogPart(task.key, task.token, self.assignment.attempt, self.output_log.parts, data)
        self.output_log.parts += 1
        return part


class EvidenceRecorder:
    """Heard by the message loop, written by a duty of its own and by the finisher."""

    name = "evidence_recorder"

    def __init__(self, store: Store, ledger: Ledger, outage: Outage) -> None:
        self._store = store
        self._ledger = ledger
        self._outage = outage
        self._lock = threading.Lock()
        self._records: dict[int, Record] = {}
        self._stray = StrayOutput()
        self.wake: Callable[[], None] = lambda: None
        """Called when a run has something to say, and `tick` has said that it sleeps."""
        self._sleeps = False
        self._held: set[Key] = set()
        """Tasks that somebody held when their notes were last to be written."""
        self._size = 0
        """How much is held of all runs; counted anew with each tick."""

    def printed(self, child: ChildHandle, slot: int, data: bytes) -> None:
        """A process child wrote into its pipe, on behalf of this slot or of none."""
        assignment = self._ledger.own(child, slot)
        if assignment is not None:
            self.said(assignment, data)
        else:
            self._stray.printed(child.name, data)

    def said(self, assignment: Assignment, data: bytes) -> None:
        """A task printed."""
        with self._lock:
            output_log = self._record(assignment).output_log
            before = len(output_log)
            output_log.add(data, scarce=self._size > MOST_HELD)
            self._size += len(output_log) - before

    def complained(self, child: ChildHandle, data: bytes) -> None:
        """A child has something to say that is no task's output: a hook of its failed."""
        if not child.complaining.allows():
            return
        text = one_line(data.decode("utf-8", "replace"), _LONGEST)
        log.error("%s: %s", child.name, text)

    def noted(self, assignment: Assignment, note: Note) -> None:
        """A task said something about itself."""
        _check(note)
        if note.heartbeat:
            assignment.beat_at = monotonic()
        with self._lock:
            record = self._record(assignment)
            if note.output is not None and not record.room and not _says_more(note):
                return
            task = assignment.task
            record.note = _merged(record.note or TaskNote(task.key, task.token), note)
            if note.output is not None and record.room:
                before = record.held
                record.put_out(note.output, scarce=self._size > MOST_HELD)
                self._size += record.held - before

    def gone(self, child: ChildHandle) -> None:
        """A child is dead: its pipe says no more."""
        self._stray.gone(child.name)

    def _record(self, assignment: Assignment) -> Record:
        record = self._records.get(assignment.slot)
        if record is None:
            record = self._records[assignment.slot] = Record(assignment)
            assignment.has_evidence = True
            if self._sleeps:
                self.wake()
        return record

    def close(self, assignment: Assignment) -> tuple[TaskNote | None, LogPart | None]:
        """A run that `has_evidence` has ended: what its end is to be written with."""
        with self._lock:
            record = self._records.pop(assignment.slot)
            assignment.has_evidence = False
            return record.take_note(), record.take_part(all_of_it=True)

    def tick(self) -> float:
        """Write what running tasks have said since the last time."""
        with self._lock:
            self._size = sum(record.size for record in self._records.values())
            slept, self._sleeps = self._sleeps, not self._records
            if self._sleeps:
                return _IDLE
            if slept:
                # There will be more in a moment.
                return _EVERY
        if self._outage.is_on:
            return _EVERY * 5
        with self._lock:
            started = [record for record in self._records.values() if record.assignment.started]
            noted = [record for record in started if record.note is not None]
            # Those that were held come last: they must not keep others from being written.
            noted.sort(key=lambda record: record.assignment.task.key in self._held)
            noted = noted[:_MOST_TASKS]
            printed = [record for record in started if record.output_log.is_waiting][:_MOST_TASKS]
            parts = [record.take_part(all_of_it=False) for record in printed]
        try:
            if noted:
                self._write_notes([record.assignment for record in noted])
            if printed:
                self._store.run(evidence.append_logs([part for part in parts if part is not None]))
        except StoreUnavailable as error:
            self._outage.noted(error)
        except StoreError as error:
            count = len(noted) + len(printed)
            log.error("notes of %d task(s) were refused and are dropped: %s", count, error)
        return _EVERY

    def _write_notes(self, runs: Sequence[Assignment]) -> None:
        by_key = {run.task.key: run.task for run in runs}

        def take(free: set[Key]) -> list[TaskNote]:
            with self._lock:
                some = [self._records.get(run.slot) for run in runs if run.task.key in free]
                notes = [record.take_note() for record in some if record is not None]
            return [note for note in notes if note is not None]

        held = self._held = self._store.run(evidence.write_free_notes(list(by_key), take))
        for key in held:
            task = by_key[key]
            label = f"the row of {named(task)}, whose progress is to be noted,"
            self._ledger.held_rows.held("task", task.id, label)
        met = (task.id for key, task in by_key.items() if key not in held)
        if self._ledger.held_rows.has_any:
            self._ledger.held_rows.free("task", met)


def _check(note: Note) -> None:
    """A child's own code cleans what it sends: what the store would refuse is no accident."""
    for text in (note.progress, note.stage, note.meta, note.output):
        if text is not None and "\0" in text:
            raise ProtocolError("sent a note that cannot be stored")


def _says_more(note: Note) -> bool:
    """Whether there is more in it than a generator's output."""
    return note.heartbeat or not (note.progress is note.stage is note.meta is None)


def _merged(held: TaskNote, note: Note) -> TaskNote:
    stage, meta = held.stage, held.meta
    if note.stage is not None:
        stage, meta = note.stage, note.meta
    elif note.meta is not None:
        meta = note.meta
    return replace(
        held,
        heartbeat=held.heartbeat or note.heartbeat,
        progress=held.progress if note.progress is None else note.progress,
        stage=stage,
        meta=meta,
    )
