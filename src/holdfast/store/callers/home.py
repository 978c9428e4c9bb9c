"""What a caller's connection and the app's own store have to know of each other.

Owns the two protocols, and imports no engine: the code of a task that completes itself on a
connection of its own runs in a process that never opens the store.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from holdfast.store.op import Op
from holdfast.store.protocol import Store
from holdfast.store.settings import SqliteDriver, StoreSettings

T = TypeVar("T")

Raw: TypeAlias = Any
"""A driver's connection; which one is only known at run time."""


class Home(Protocol):
    """The app's own store, as far as a caller's connection needs to know it."""

    acquainted: WeakKeyDictionary[Raw, str]
    """Connections that were found to lead to this store, and the schema of its tables."""

    def settings_beside(self, library: SqliteDriver | None) -> StoreSettings:
        """The settings, once it is known which SQLite library the caller uses."""
        ...

    @property
    def has_store(self) -> bool:
        """Whether the store has been opened, and so its schema found usable."""
        ...

    def store(self) -> Store:
        """The store, opened if it was not."""
        ...

    def adopt(self, connection: Any) -> AdoptedConnection:
        """Make ready to run operations on a caller's connection; runs nothing on it."""
        ...


class AdoptedConnection(Protocol):
    """A caller's connection; each use finds out anew what is behind it."""

    def run(self, op: Op[T]) -> T: ...

    async def arun(self, op: Op[T]) -> T: ...
