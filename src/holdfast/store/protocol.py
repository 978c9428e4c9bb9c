"""What an engine offers: the contract that `SqliteStore` and `PostgresStore` keep.

Owns no behaviour but that a listener can be used in a `with`. Both engines pass the same
conformance suite; nothing above this layer asks which one it has, except to name it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self, TypeVar

from holdfast.store.migrate import SchemaConnection
from holdfast.store.op import Channel, Op
from holdfast.store.settings import Engine, StoreSettings

T = TypeVar("T")


class Listener(Protocol):
    """One subscription to hints."""

    def wait(self, timeout: float) -> frozenset[str]:
        """Sleep until a hint or the timeout; what was heard, empty after a timeout."""
        ...

    def wake(self) -> None:
        """End a `wait` of another thread now."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Store(Protocol):
    """One database that holds tasks. Thread-safe, and usable on both sides of a fork."""

    @property
    def engine(self) -> Engine: ...

    @property
    def settings(self) -> StoreSettings: ...

    def run(self, op: Op[T]) -> T:
        """Run one operation in one transaction of its own."""
        ...

    def attempt(self, make: Callable[[], Op[T]], *, tries: int = 5) -> T:
        """Run an operation, created again after a deadlock or serialisation conflict."""
        ...

    def hint(self, channel: Channel, queues: Sequence[str] = ()) -> None:
        """Wake listeners now, outside any statement. Best effort; never raises."""
        ...

    def listen(self, *channels: Channel) -> Listener: ...

    def tend(self) -> None:
        """Housekeeping of the engine's own, about once a second while there is a worker."""
        ...

    def with_schema(self, work: Callable[[SchemaConnection], T], *, lock: bool) -> T:
        """Run `work` on the schema, in one transaction; with `lock`, alone in the fleet."""
        ...

    def close(self) -> None: ...
