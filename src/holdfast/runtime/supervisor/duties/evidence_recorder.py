"""Evidence of running tasks: what they print, and what they say about themselves.

Owns what has been heard and not yet stored. While a task runs, its notes and the head of its
output are written a few times a second; what is left when it ends is written with its end,
in the same transaction. None of it is worth an outcome: what the store refuses is dropped.

A row that somebody's transaction holds (the task's own, perhaps, before it commits) is not waited
for: its notes stay here and gather, and those of others are written.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from holdfast.core.errors import StoreError, StoreUnavailable
from holdfast.core.text import one_line
from holdfast.runtime.supervisor.children.output_log import OutputLog, Splitter
from holdfast.runtime.supervisor.children.stray_output import StrayOutput
from holdfast.runtime.supervisor.outage import Outage
from holdfast.runtime.supervisor.state.assignment import Assignment
from holdfast.runtime.supervisor.state.child_handle import ChildHandle
from holdfast.runtime.supervisor.state.ledger import Ledger
from holdfast.runtime.supervisor.task_log import named
from holdfast.runtime.wire.messages import Note
from holdfast.store.op import Key
from holdfast.store.protocol import Store
from holdfast.store.verbs import evidence
from holdfast.store.verbs.evidence import LogPart, TaskNote

log = logging.getLogger("holdfast.worker")

_EVERY = 0.2
_MOST_TASKS = 200
_LONGEST = 2000


@dataclass(slots=True)
class Record:
    """What is known of one run and not yet stored."""

    assignment: Assignment
    output_log: OutputLog = field(default_factory=OutputLog)
    note: TaskNote | None = None

    def take_note(self) -> TaskNote | None:
        """What it said about itself; each thing once."""
        note, self.note = self.note, None
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
        self._splitters: dict[int, Splitter] = {}
        self._stray = StrayOutput()
        self._held: set[Key] = set()
        """Tasks that somebody held when their notes were last to be written."""

    # --- what is heard (message loop) -------------------------------------------------------

    def printed(self, child: ChildHandle, data: bytes) -> bool:
        """A process child wrote into its pipe; whether it was more than markers."""
        splitter = self._splitters.get(child.number)
        if splitter is None:
            splitter = self._splitters[child.number] = Splitter(child.nonce)
        anything = False
        for slot, piece in splitter.feed(data):
            anything = True
            assignment = self._ledger.assignments.get(slot)
            if assignment is not None:
                self.said(assignment, piece)
            else:
                self._stray.printed(child.name, piece)
        return anything

    def said(self, assignment: Assignment, data: bytes) -> None:
        """A task printed."""
        with self._lock:
            self._record(assignment).output_log.add(data)

    def complained(self, child: ChildHandle, data: bytes) -> None:
        """A child has something to say that is no task's output: a hook of its failed."""
        text = one_line(data.decode("utf-8", "replace"), _LONGEST)
        log.error("%s: %s", child.name, text)

    def noted(self, assignment: Assignment, note: Note) -> None:
        """A task said something about itself."""
        if note.heartbeat:
            assignment.beat_at = monotonic()
        with self._lock:
            record = self._record(assignment)
            record.note = _merged(record.note or _blank(assignment), note)

    def gone(self, child: ChildHandle) -> None:
        """A child is dead: its pipe says no more."""
        self._splitters.pop(child.number, None)
        self._stray.gone(child.name)

    def _record(self, assignment: Assignment) -> Record:
        record = self._records.get(assignment.slot)
        if record is None:
            record = self._records[assignment.slot] = Record(assignment)
        return record

    # --- what is written -------------------------------------------------------------------

    def close(self, assignment: Assignment) -> tuple[TaskNote | None, LogPart | None]:
        """A run has ended: what its end is to be written with."""
        if assignment.slot not in self._records:
            return None, None
        with self._lock:
            record = self._records.pop(assignment.slot)
            return record.take_note(), record.take_part(all_of_it=True)

    def tick(self) -> float:
        """Write what running tasks have said since the last time."""
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
        self._ledger.held_rows.free("task", met)


def _blank(assignment: Assignment) -> TaskNote:
    return TaskNote(assignment.task.key, assignment.task.token)


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
        output=held.output if note.output is None else (held.output or "") + note.output,
    )
