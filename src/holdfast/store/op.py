"""Operations: what the store is asked to do, without saying on which connection.

Owns the one idiom of this layer. A *verb* is a generator function that yields
`Statement`s, receives their rows, and returns a value. It knows no driver and
does no other I/O, so one body serves SQLite, PostgreSQL, a caller's own
connection, and a caller's own *async* connection:

    @writes
    def pause(queue: str) -> Steps[bool]:
        rows = yield Statement("pause_queue", {"queue": queue})
        return bool(rows)

    store.run(pause("images"))          # own connection, own transaction
    drive(pause("images"), execute)     # any sync connection
    await adrive(pause("images"), execute)

Rules: an operation is single-use and runs in exactly one transaction; operations
compose with `yield from`; a tuple of statements may be yielded when none needs
the rows of another, and the answer is then a list of row lists (PostgreSQL sends
them in one round trip).

Values cross this line in neutral types, which each engine binds in its own way:

    id, token    bytes of length 16        PostgreSQL uuid        SQLite text
    time         `At`, integer µs (UTC)    timestamptz            integer
    duration     int, µs, named *_us       bigint                 integer
    batches      `Uuids`, `Texts`, `Ints`  binary arrays          JSON for json_each
    fenced batch `Changes`                 jsonb map + uuid[]     JSON for json_each
    many rows    `Table`                   one array per column   executemany, or JSON
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import wraps
from typing import Any, Generic, NamedTuple, ParamSpec, TypeAlias, TypeVar

from msgspec import Struct

from holdfast.core.errors import StoreUnavailable

T = TypeVar("T")
P = ParamSpec("P")

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Sequence[Row]
Key: TypeAlias = "bytes | int"
"""Names a task inside the store: its id on PostgreSQL, its integer row key on SQLite."""


class At(int):
    """A point in time: microseconds since 1970-01-01 UTC."""

    __slots__ = ()


class Uuids(list[bytes]):
    """A batch of ids or tokens."""


class Texts(list["str | None"]):
    """A batch of strings."""


class Ints(list[int]):
    """A batch of integers."""


class Keys(list["bytes | int"]):
    """A batch of row keys."""


@dataclass(frozen=True, slots=True)
class Changes:
    """One row per (key, claim token), each with the fields its verb needs.

    A batch may hold claims of several tokens; the statement must match each task
    with *its* token, never with any token of the batch. A task stands in it once (`apart`): of
    two rows one engine would write the last and the other both. Fields are positional, or
    named (a mapping) where there are many:

        PostgreSQL   {"<id>": [token, field, …]}     {"<id>": {"token": token, name: field, …}}
        SQLite       [[key, token, field, …], …]     [[key, token, {name: field, …}], …]
    """

    rows: Sequence[tuple[Key, bytes, Sequence[Any] | Mapping[str, Any]]]
    text: int | None = None
    """Which positional field is a text that may be long. SQLite takes these texts beside the JSON
    (`<name>_texts`), and has two fields in its place: where it begins, and its size in bytes."""

    def __post_init__(self) -> None:
        if len({row[0] for row in self.rows}) != len(self.rows):
            raise ValueError("a task stands twice in one batch of changes")


def apart(items: Sequence[T], key: Callable[[T], Key]) -> Iterator[list[T]]:
    """The items in as few parts as name no task twice; nearly always one."""
    while items:
        first: dict[Key, T] = {}
        rest = [item for item in items if first.setdefault(key(item), item) is not item]
        yield list(first.values())
        items = rest


class Column(Enum):
    """The neutral type of a `Table` column."""

    UUID = "uuid"
    KEY = "key"
    TEXT = "text"
    INT = "int"
    BIGINT = "bigint"
    BOOL = "bool"
    TIME = "time"
    BYTES = "bytes"


class Alike(NamedTuple):
    """How rows are written that differ only in their first columns."""

    statement: str
    """Its text takes the first columns as a batch, and the others as parameters."""
    own: int
    """How many columns are the first."""


class Plain(NamedTuple):
    """How a single row is written that leaves some columns empty."""

    statement: str
    """Its text takes the other columns as parameters."""
    pick: Callable[[Row], Row]
    empty: Row
    """What `pick` gives of such a row."""
    times: Sequence[str]
    """Which of the other columns are times; they are never empty."""


class Table(Struct, frozen=True):
    """Rows to insert: every row has the columns of `columns`, in their order."""

    columns: Mapping[str, Column]
    rows: Sequence[Row]
    alike: Alike | None = None
    plain: Plain | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is a single row, which leaves empty what a plain one does."""
        plain = self.plain
        return plain is not None and len(self.rows) == 1 and plain.pick(self.rows[0]) == plain.empty

    def common(self, alike: Alike) -> Row | None:
        """What all rows have behind their own columns; None if they differ there, too."""
        common = self.rows[0][alike.own :] if self.rows else None
        for row in self.rows:
            if row[alike.own :] != common:
                return None
        return common


class Channel(StrEnum):
    """What a hint is about. A hint may be lost, late or doubled; polling is the truth."""

    READY = "holdfast_ready"
    """A task became claimable, the payload is its queue; or a queue was paused (`paused`); or a
    slot of a limit came free (`came_free`)."""
    DONE = "holdfast_done"
    """Some task ended; waiters read the ids they wait for. The payload is `ENDED`."""


ENDED = "!"
"""No queue's name has this character: who listens to both channels can tell them apart."""


def paused(queue: str) -> str:
    """The payload that says that a queue was paused."""
    return f"!{queue}"


def came_free(scope: str, by: str = "") -> str:
    """The payload that says that a slot of a limit came free, with its scope (`core.limiting`);
    `by`: the worker that knows already."""
    # Scopes have a space in them, names of queues have none.
    return f"!{scope} {by}" if by else f"!{scope}"


class Freed(NamedTuple):
    """A limit of which a slot came free."""

    scope: str
    by: str
    """The worker that knows already, if one does."""


class Heard(NamedTuple):
    """Payloads of both channels, told apart."""

    ready: frozenset[str]
    """Queues to look into; the empty name means all."""
    paused: frozenset[str]
    freed: frozenset[Freed]
    ended: bool


def understand(payloads: frozenset[str]) -> Heard:
    """What payloads say. The empty one says that anything may have happened."""
    marked = {payload for payload in payloads if payload.startswith("!")}
    freed = {payload for payload in marked if " " in payload}
    return Heard(
        payloads - marked,
        frozenset(payload[1:] for payload in marked - freed if payload != ENDED),
        frozenset(map(_freed, freed)),
        ENDED in marked or "" in payloads,
    )


def _freed(payload: str) -> Freed:
    kind, name, *by = payload[1:].split(" ")
    return Freed(f"{kind} {name}", *by[:1] or ("",))


class Hint(Struct, frozen=True):
    """Whom to wake once the transaction has committed.

    SQLite rings its doorbell after the commit. On PostgreSQL the engine binds
    `:hint_channel` and `:hint_payloads`, and the statement itself notifies, so the hint
    costs no round trip and leaves with the commit; the engine may bind no payloads when
    it has just notified, and send one notification a moment later instead.
    """

    channel: Channel
    queues: Sequence[str] = (ENDED,)


class Statement(Struct, frozen=True):
    """One named statement of `store/sql` and its parameters.

    A struct, like what it is made of: one is made for every send, and a frozen dataclass takes
    10 × as long.
    """

    name: str
    params: Mapping[str, Any] = {}
    table: Table | None = None
    hint: Hint | None = None


Steps: TypeAlias = Generator["Statement | tuple[Statement, ...]", Any, T]


class Mode(Enum):
    """What transaction an operation needs."""

    READ = "read"
    WRITE = "write"
    ALONE = "alone"
    """A write whose first step is complete in itself: no BEGIN is spent on it if it is a single
    statement, and whatever the operation asks afterwards only reads."""


class Op(Generic[T]):
    """An operation, ready to run once."""

    __slots__ = ("mode", "name", "waits", "_steps")

    def __init__(self, steps: Steps[T], mode: Mode, name: str, *, waits: bool = True) -> None:
        self._steps = steps
        self.mode = mode
        self.name = name
        self.waits = waits
        """Whether it waits for rows that others hold; see `at_once`."""

    def __iter__(self) -> Steps[T]:
        return self._steps


def _operation(mode: Mode) -> Callable[[Callable[P, Steps[T]]], Callable[P, Op[T]]]:
    def decorate(verb: Callable[P, Steps[T]]) -> Callable[P, Op[T]]:
        @wraps(verb)
        def make(*args: P.args, **kwargs: P.kwargs) -> Op[T]:
            return Op(verb(*args, **kwargs), mode, verb.__name__)

        return make

    return decorate


def at_once(op: Op[T]) -> Op[T]:
    """The same write, which waits for nobody: a row that another transaction holds ends it with
    `StoreUnavailable(locked=True)`. Costs a transaction of its own. (SQLite has no such rows.)"""
    return Op(iter(op), Mode.WRITE, op.name, waits=False)


def reads(verb: Callable[P, Steps[T]]) -> Callable[P, Op[T]]:
    """Declare a verb that only reads."""
    return _operation(Mode.READ)(verb)


def writes(verb: Callable[P, Steps[T]]) -> Callable[P, Op[T]]:
    """Declare a verb that writes in one transaction."""
    return _operation(Mode.WRITE)(verb)


def alone(verb: Callable[P, Steps[T]]) -> Callable[P, Op[T]]:
    """Declare a verb whose single write needs no explicit transaction."""
    return _operation(Mode.ALONE)(verb)


def repeat(run: Callable[[Op[T]], T], make: Callable[[], Op[T]], tries: int) -> T:
    """Run an operation, created again after a deadlock or serialisation conflict."""
    for failed in range(1, tries):
        try:
            return run(make())
        except StoreUnavailable as error:
            if not error.conflict:
                raise
        time.sleep(random.uniform(0.0, 0.005 * 2**failed))
    return run(make())


def drive(
    op: Op[T],
    execute: Callable[[Statement], Rows],
    *,
    first: Callable[[Statement | tuple[Statement, ...]], Any] | None = None,
) -> T:
    """Run an operation on a sync connection; the caller owns the transaction.

    The first step, of one statement or several, is given to `first` if there is one.
    """
    steps = iter(op)
    answer: Any = None
    try:
        if first is not None:
            answer = first(steps.send(None))
        while True:
            asked = steps.send(answer)
            if isinstance(asked, Statement):
                answer = execute(asked)
            else:
                answer = [execute(statement) for statement in asked]
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        steps.close()


async def adrive(op: Op[T], execute: Callable[[Statement], Awaitable[Rows]]) -> T:
    """Run an operation on the caller's own async connection and transaction."""
    steps = iter(op)
    answer: Any = None
    try:
        while True:
            asked = steps.send(answer)
            if isinstance(asked, Statement):
                answer = await execute(asked)
            else:
                answer = [await execute(statement) for statement in asked]
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        steps.close()
