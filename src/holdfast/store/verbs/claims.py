"""claim, start, release, renew: taking tasks, beginning them, giving them back, keeping them.

Owns a worker's side of its claims. Invariant: a task in CLAIMED or RUNNING carries exactly
one token, the lease row of that token names it, and no worker writes to the task without
it. Nothing enters these states except through `claim` and `start`.

A claim looks at one queue and mints one token. Its answer may be lost on the way: the
caller then asks `release_token`, which gives back whatever the claim had taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from holdfast.core.errors import PayloadError, UnreadableRow
from holdfast.core.options.policy import BY_NAME, Policy
from holdfast.core.records import (
    HEAD,
    LOST,
    Answer,
    Claimed,
    ClaimedTask,
    Landing,
    Position,
    Refused,
)
from holdfast.core.status import TaskStatus
from holdfast.store import rows
from holdfast.store.op import (
    At,
    Changes,
    Channel,
    Hint,
    Key,
    Keys,
    Rows,
    Statement,
    Steps,
    Texts,
    Uuids,
    alone,
    reads,
    writes,
)
from holdfast.store.verbs import freed_slots, returned_steps

MAX_TASKS_PER_LEASE = 500
"""Also the most that one claim takes."""


_ORDER = attrgetter("priority", "enqueued_at", "id")


Rules: TypeAlias = tuple[str | None, int]
"""The options of a task as they are stored, and how many retries they grant."""
_NO_POLICIES: Mapping[str, Rules] = {}


def rules(tasks: Iterable[tuple[str, int, str | None]]) -> dict[str, Rules]:
    """The rules of tasks (name, version, options), except for those that have none of their own."""
    return {
        known_name(name, version): (options, Policy.decode(options).max_retries)
        for name, version, options in tasks
        if options is not None
    }


class Begin(Struct, frozen=True, gc=False):
    """A claimed task and the process that is to run it."""

    key: Key
    token: bytes
    pid: int
    process_name: str


class Hold(NamedTuple):
    """A claimed task, to be given back."""

    key: Key
    token: bytes


class ChildIdentity(NamedTuple):
    """A process that is to run what is claimed."""

    hostname: str
    pid: int
    process_name: str


_NOBODY = ChildIdentity("", 0, "")


def known_name(task_name: str, version: int) -> str:
    """How a claim names a task it can run."""
    return f"{task_name}@{version}"


def task_name_of(known: str) -> str:
    """The task's name in what `known_name` made."""
    return known.rpartition("@")[0]


class Request(NamedTuple):
    """One claim to be made: up to `wanted` tasks of one queue, in its order, from `after` on."""

    token: bytes
    worker_id: str
    queue: str
    known: Iterable[str]
    wanted: int
    lease_us: int
    after: Position = HEAD
    policies: Mapping[str, Rules] = _NO_POLICIES
    """The rules that a task gets that was sent by name."""
    child: ChildIdentity | None = None
    """What is claimed for a child is started, too: its code may have run from here on. (Each
    task's `attempt` is what it was before, as with any claim.)"""
    aside: Sequence[Key] = ()
    """Rows that cannot even be written: they are passed over."""
    careful: bool = False
    """Whether to pass over all rows that break the constraints of the table."""
    limits_version: str | None = None
    """Under which limits: if there are others by now, nothing is claimed."""


@alone
def claim(request: Request) -> Steps[Claimed]:
    """Take tasks of one queue.

    At most 1,000 entries are examined; `horizon` tells where to go on when that was not
    enough to find tasks this worker knows. Rows that cannot be read are claimed as well, and
    named: the caller ends them (`refuse`).
    """
    return claimed(request, (yield _claim(request)))


def _claim(request: Request) -> Statement:
    return Statement("claim", claim_params(request))


def claim_params(request: Request) -> dict[str, object]:
    """The parameters that all ways to claim share."""
    return {
        "token": request.token,
        "worker_id": request.worker_id,
        "queue_name": request.queue,
        "known": Texts(request.known),
        "wanted": min(request.wanted, MAX_TASKS_PER_LEASE),
        "lease_us": request.lease_us,
        "by_name": BY_NAME,
        "aside": Keys(request.aside),
        "careful": request.careful,
        "most_starts": rows.MOST_STARTS,
        "longest": rows.LONGEST_PAYLOAD,
        "policies": dict(request.policies),
        "begins": request.child is not None,
        "limits_version": request.limits_version,
        **(request.child or _NOBODY)._asdict(),
        **behind(request.after),
    }


def claimed(request: Request, found: Rows) -> Claimed:
    """What a claim answered: tasks in the order of the queue, and rows that cannot be read."""
    tasks: list[ClaimedTask] = []
    refused: list[Refused] = []
    answer, is_utf8 = rows.claim(found)
    for row in answer:
        try:
            tasks.append(rows.claimed(row, request.token, is_utf8))
        except UnreadableRow as error:
            refused.append(Refused(rows.key(row[0]), f"{error.column} {error.reason}"))
    # Most tasks of a batch share their options.
    unknown = {
        options for options in {task.task_options for task in tasks} if not _is_known(options)
    }
    if unknown:
        why = "task_options are none that this worker knows"
        refused += [Refused(task.key, why) for task in tasks if task.task_options in unknown]
        tasks = [task for task in tasks if task.task_options not in unknown]
    # RETURNING keeps no order.
    tasks.sort(key=_ORDER)
    return Claimed(request.token, tasks, refused)


def _is_known(options: str | None) -> bool:
    try:
        Policy.decode(options)
    except PayloadError:
        return False
    return True


@reads
def candidate(
    queue: str, *, known: Iterable[str], after: Position = HEAD, aside: Sequence[Key] = ()
) -> Steps[Key | None]:
    """The task that a claim would take first: the one to blame if the store refused that claim."""
    found = yield Statement(
        "claim_candidate",
        {
            "queue_name": queue,
            "known": Texts(known),
            "aside": Keys(aside),
            "most_starts": rows.MOST_STARTS,
            **behind(after),
        },
    )
    return rows.key(found[0][0]) if found else None


class Turn(NamedTuple):
    """What one `turn` did."""

    started: Mapping[Key, Landing] = MappingProxyType({})
    """Of those that were claimed before."""
    claimed: Sequence[ClaimedTask] = ()
    begun: Mapping[Key, Landing] = MappingProxyType({})
    """Of those that were claimed now, if the worker began some in the same transaction."""
    refused: Sequence[Refused] = ()
    """Those that were claimed and cannot be read."""


@alone
def turn(begins: Sequence[Begin], request: Request | None, *, hostname: str) -> Steps[Turn]:
    """Start what was claimed before, and claim more: one commit."""
    if request is None:
        return Turn((yield from start(begins, hostname=hostname)))
    if not begins:
        taken = yield from claim(request)
        return Turn(claimed=taken.tasks, refused=taken.refused)
    started, found = yield (_start(begins, hostname), _claim(request))
    taken = claimed(request, found)
    return Turn(_started(begins, started), taken.tasks, refused=taken.refused)


@reads
def horizon(queue: str, after: Position = HEAD, *, key: str = "") -> Steps[Position | None]:
    """Where a claim that started at `after` stopped looking; None if it saw the whole queue.

    Of the tasks without a concurrency key, or of those with this one.
    """
    return position((yield _horizon(queue, after, key)))


@reads
def next_key(queue: str, after_key: str = "") -> Steps[str | None]:
    """The next concurrency key of which tasks wait in a queue."""
    found = yield Statement("next_key", {"queue_name": queue, "after_key": after_key})
    return rows.optional_text(found[0][0]) if found else None


class Standing(NamedTuple):
    """What a claim does not tell of its queue."""

    horizon: Position | None
    """Where it stopped looking; None if it saw the whole queue."""
    has_keys: bool
    """Whether tasks with a concurrency key wait in it."""
    limits_version: str | None


@reads
def standing(queue: str, after: Position | None = HEAD) -> Steps[Standing]:
    """What a claim that started at `after` did not see; None: it did see enough."""
    signs = Statement("queue_signs", {"queue_name": queue})
    found: Rows = ()
    if after is None:
        seen = yield signs
    else:
        found, seen = yield (_horizon(queue, after), signs)
    version, keyed = seen[0]
    return Standing(position(found), bool(keyed), rows.optional_text(version))


def _horizon(queue: str, after: Position, key: str = "") -> Statement:
    params = {"queue_name": queue, "concurrency_key": key, **behind(after)}
    return Statement("claim_horizon", params)


def position(found: Rows) -> Position | None:
    """Where the first of these rows (priority, enqueued at, id) stands; None if there is none."""
    if not found:
        return None
    priority, enqueued_at, id = found[0]
    try:
        return Position(priority, enqueued_at, rows.uuid(id))
    except ValueError:
        # Of the same age as this one, some may come twice or not at all until the next look.
        return Position(priority, enqueued_at, b"\xff" * 16)


@reads
def head_priority(queue: str) -> Steps[int | None]:
    """The priority of the task that comes first in a queue, of those without a concurrency key."""
    found = yield Statement("head_priority", {"queue_name": queue})
    return found[0][0] if found else None


@reads
def ready_queues(queues: Sequence[str]) -> Steps[list[str]]:
    """Which of these queues have a task that is PENDING, whoever knows it."""
    found = yield Statement("ready_queues", {"queues": Texts(queues)})
    return [row[0] for row in found]


def behind(position: Position) -> dict[str, object]:
    """The parameters of a statement that looks into a queue from a position on."""
    return {
        "after_priority": position.priority,
        "after_enqueued_at": At(position.enqueued_at),
        "after_id": position.id,
    }


@alone
def start(begins: Sequence[Begin], *, hostname: str) -> Steps[dict[Key, Landing]]:
    """Begin claimed tasks: from here on their code may have run."""
    return _started(begins, (yield _start(begins, hostname)))


def _start(begins: Sequence[Begin], hostname: str) -> Statement:
    changes = [(b.key, b.token, (b.pid, b.process_name)) for b in begins]
    return Statement("start", {"changes": Changes(changes), "hostname": hostname})


def _started(begins: Sequence[Begin], found: Rows) -> dict[Key, Landing]:
    answers = {begin.key: LOST for begin in begins}
    # Nearly all of them are at their first attempt.
    landings: dict[tuple[int, int], Landing] = {}
    for key, attempt, started_at in found:
        landing = landings.get((attempt, started_at))
        if landing is None:
            landing = Landing(Answer.LANDED, TaskStatus.RUNNING, attempt, started_at)
            landings[attempt, started_at] = landing
        answers[key] = landing
    return answers


@writes
def release(holds: Sequence[Hold], *, queues: Iterable[str] = ()) -> Steps[dict[Key, Landing]]:
    """Give claimed tasks back at no cost; they keep their place."""
    released = yield Statement(
        "release",
        {"changes": Changes([(h.key, h.token, ()) for h in holds])},
        hint=Hint(Channel.READY, sorted(set(queues))),
    )
    landed = {rows.key(row[0]): Landing(Answer.LANDED, TaskStatus.PENDING) for row in released}
    steps = [*rows.uuids([row for row in released if row[2] is not None], 1)]
    yield from freed_slots.say((slots, queue, name) for _, _, _, slots, queue, name, *_ in released)
    if steps:
        yield from returned_steps.restrain(steps)
    return {h.key: landed.get(h.key, LOST) for h in holds}


@writes
def release_token(token: bytes, *, queue: str) -> Steps[int]:
    """Undo a claim whose answer was lost: give back what it took, if it took anything."""
    found = yield Statement("lease_keys", {"token": token})
    if not found:
        return 0
    try:
        keys = rows.keys(found[0][1])
    except (ValueError, TypeError):
        # Somebody has written into our lease; the audit finds what carries its token.
        keys = []
    given_back = yield from release([Hold(key, token) for key in keys], queues=[queue])
    yield Statement("clean_leases", {"tokens": Uuids([token])})
    return sum(landing is not LOST for landing in given_back.values())


@writes
def free(keys: Sequence[Key]) -> Steps[set[Key]]:
    """Which of these tasks no other transaction holds at this moment."""
    return (yield from writable(keys))


def writable(keys: Sequence[Key]) -> Steps[set[Key]]:
    """Which of these tasks can be written now without waiting for another transaction."""
    found = yield Statement("free_tasks", {"keys": Keys(keys)})
    return {rows.key(row[0]) for row in found}


def lockable(keys: Sequence[Key]) -> Steps[set[Key]]:
    """Which of these tasks can be ended now without waiting for another transaction: neither they
    nor what waits for them is held."""
    found = yield Statement("lock", {"keys": Keys(keys)})
    return {rows.key(row[0]) for row in found}


class Renewed(NamedTuple):
    """Which leases are still ours."""

    kept: set[bytes]
    held: set[bytes]
    """Of those, the ones that another transaction holds, so that they were not prolonged.
    No other worker can take them meanwhile."""


@alone
def renew(tokens: Sequence[bytes], *, lease_us: int) -> Steps[Renewed]:
    """Prolong these leases; waits for no lock."""
    found = yield Statement("renew", {"tokens": Uuids(tokens), "lease_us": lease_us})
    answers = {rows.uuid(token): bool(renewed) for token, renewed in found}
    return Renewed(set(answers), {token for token, renewed in answers.items() if not renewed})


@reads
def covered(tokens: Sequence[bytes]) -> Steps[dict[bytes, list[Key]]]:
    """The tasks that still carry each of these tokens."""
    found = yield Statement("covered", {"tokens": Uuids(tokens)})
    tasks: dict[bytes, list[Key]] = {}
    for token, key in found:
        tasks.setdefault(rows.uuid(token), []).append(rows.key(key))
    return tasks


@alone
def clean(tokens: Sequence[bytes]) -> Steps[int]:
    """Delete the leases of batches whose tasks have all ended durably."""
    found = yield Statement("clean_leases", {"tokens": Uuids(tokens)})
    return len(found)
