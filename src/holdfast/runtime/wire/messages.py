"""What supervisor, template and children say to each other.

Owns the messages; `framing` puts them on a socket, as msgpack. Nothing is pickled,
and no message names a class to import. Small integers name things on the wire: a *slot*
is one task handed to one child, a *ticket* one question and its answer.

    supervisor → template   Fork
    template → supervisor   Manifest, Broken, Forked, Died
    supervisor → child      Run, Withdraw, Cancel, Stack, Tell, Reply, Rang, Leave
    child → supervisor      Hello, Done, Withdrawn, Said, Note, Stacked, Where, Told, Ask, Listen,
                            Waits

A process child's output comes through a pipe instead, cut into pieces by markers; the rest
of the pipe until the next marker belongs to the slot that the marker names. What a child has
written before it sent a `Done` is in the pipe when the `Done` arrives.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from holdfast.core.outcome import Reported, Why

Kind: TypeAlias = Literal["process", "thread", "async"]
KINDS: tuple[Kind, ...] = ("process", "thread", "async")

Slot: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Ticket: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Amount: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
"""What a child says is checked where it is decoded: the store would refuse larger numbers, and
with them a whole batch."""

EXIT_LEFT = 0
"""A child that was asked to leave has left."""
EXIT_ENDED = 81
"""A process child ended the task it was told to end, reported that, and made room."""
EXIT_CUT_OFF = 82
"""A child lost its supervisor, or its end of the socket (user code may close anything)."""
EXIT_BROKEN = 83
"""A child met an error of Holdfast's own."""


class Message(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """One message; array-like, because field names on the wire cost and tell nothing."""


class KnownTask(msgspec.Struct, frozen=True, array_like=True):
    """One task of the application, as the supervisor needs to know it."""

    name: str
    version: int
    queue: str
    kind: Kind
    max_concurrent: int | None
    task_options: str | None
    hooks: list[str] = []
    limits: str | None = None
    """The limits that its code declares, as they are stored."""


class KnownSchedule(msgspec.Struct, frozen=True, array_like=True):
    """One schedule that the application declares: the fields of its `ScheduleDefinition`."""

    name: str
    pattern: str
    timezone: str
    overlap: Literal["skip", "wait", "allow"]
    missed: Literal["latest", "skip", "all"]
    max_missed: int
    start_at: int | None
    end_at: int | None
    task_name: str
    version: int
    payload: str


class Manifest(Message, frozen=True):
    """What the application is; sent once it has been imported."""

    url: str
    settings: dict[str, Any]
    tasks: list[KnownTask]
    threads: int
    """Threads that run in the template; more than one, and children are spawned, not forked."""
    app_name: str
    hooks: list[str] = []
    """The hooks of the worker itself that the application has."""
    schedules: list[KnownSchedule] = []

    def __repr__(self) -> str:
        # Its URLs have passwords.
        return f"<Manifest of {self.app_name}>"


class Broken(Message, frozen=True):
    """The application cannot be imported; `text` is for the user's eyes."""

    text: str


class Fork(Message, frozen=True):
    """Make a child; its descriptors come with this message (socket, shared page, output pipe)."""

    child: int
    kind: Kind
    lanes: int
    name: str
    nonce: bytes
    """Begins every marker that the child writes into its output pipe."""
    descriptors: int
    worker: str = ""
    """The id of the worker, for log lines."""


class Forked(Message, frozen=True):
    child: int
    pid: int


class Died(Message, frozen=True):
    """A child is gone and reaped, and what was left of its process group is killed."""

    child: int
    pid: int
    exit_code: int | None
    exit_signal: int | None


class Job(msgspec.Struct, frozen=True, array_like=True):
    """One task to run."""

    slot: int
    id: bytes
    name: str
    version: int
    queue: str
    args: str
    kwargs: str
    attempt: int
    retry_count: int
    task_options: str | None
    parent_id: bytes | None
    root_id: bytes | None
    workflow_id: bytes | None
    trace_context: str | None
    key: bytes | int
    token: bytes
    scope_id: bytes | None = None
    inputs: str | None = None
    schedule_tick: int | None = None


class Run(Message, frozen=True):
    jobs: list[Job]
    first: bool = False
    """Whether they go before those that have not begun (in a process; others begin all)."""


class Withdraw(Message, frozen=True):
    """Give back what has not begun."""

    slots: list[int]


class Cancel(Message, frozen=True):
    """End this task's code: how depends on the child's kind."""

    slot: int
    why: Why


class Stack(Message, frozen=True):
    ticket: int
    slot: int


class Tell(Message, frozen=True):
    """Run hooks: the worker's own, or those of a task whose own child cannot any more."""

    ticket: int
    hooks: list[str]
    job: Job | None = None
    error: str | None = None
    """The JSON of the `TaskError` that the task came to."""
    delay_us: int | None = None
    """How long until it runs again."""


class Reply(Message, frozen=True):
    """The answer to an `Ask`."""

    ticket: int
    rows: Any = None
    error: str | None = None
    error_kind: str | None = None


class Rang(Message, frozen=True):
    """A hint that the child listens for."""

    channel: str


class Leave(Message, frozen=True):
    """Finish what runs, take nothing more, and exit."""


class Hello(Message, frozen=True):
    """It can take tasks. (Its pid is known from the template, which made it.)"""


class RunReport(msgspec.Struct, frozen=True, array_like=True):
    """What became of one slot, and what it cost."""

    slot: Slot
    outcome: Reported
    run_us: Amount = 0
    cpu_time_us: Amount | None = None
    peak_memory_kb: Amount | None = None
    committed: bool = False
    """The code has completed its task itself, in its own transaction (`complete_in`)."""


class Done(Message, frozen=True):
    reports: list[RunReport]


class Withdrawn(Message, frozen=True):
    """The slots of a `Withdraw` that had indeed not begun, and never will here."""

    slots: list[Slot]


class Said(Message, frozen=True):
    """Output of a task in a thread or async child; a process child has its pipe for that.

    From slot 0, which is nobody's, it is for the worker's log: a hook of the child has raised.
    """

    slot: Slot
    data: bytes


class Note(Message, frozen=True):
    """Something to show or store about a running task; what is None stays as it is."""

    slot: Slot
    heartbeat: bool = False
    progress: str | None = None
    stage: str | None = None
    meta: str | None = None
    output: str | None = None
    """Lines to append to the task's output."""


class Stacked(Message, frozen=True):
    ticket: Ticket
    text: str


class Where(Message, frozen=True):
    """Where the code of a task was when it was told to end, for its time limits."""

    slot: Slot
    text: str


class Told(Message, frozen=True):
    """The hooks of a `Tell` have run; those that raised were logged."""

    ticket: Ticket


class Ask(Message, frozen=True):
    """A step of an operation that the child's code runs on the supervisor's store.

    `step` counts from 0 within an operation; the last message of one has `end` set, and
    `undo` if the operation failed on the child's side and must not be committed.
    """

    ticket: Ticket
    slot: Slot
    step: Amount
    mode: str
    name: str
    statement: Any = None
    end: bool = False
    undo: bool = False


class Listen(Message, frozen=True):
    """The child wants to hear hints of a channel (`Rang`), or no longer."""

    channel: str
    wanted: bool


class Waits(Message, frozen=True):
    """The code of a slot does nothing but wait for other tasks, or no longer."""

    slot: Slot
    waiting: bool


ToSupervisor: TypeAlias = (
    Hello | Done | Withdrawn | Said | Note | Stacked | Where | Told | Ask | Listen | Waits
)
ToChild: TypeAlias = Run | Withdraw | Cancel | Stack | Tell | Reply | Rang | Leave
FromTemplate: TypeAlias = Manifest | Broken | Forked | Died
