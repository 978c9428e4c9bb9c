"""The caller's own connection, for the length of a block.

Owns the binding of a context (a thread, or an asyncio task and those it starts) to a
connection: inside `with app.using(connection)` everything the app asks of its store is
asked on that connection, in the transaction the caller began. Nothing is committed here.

A binding ends with its block, also for asyncio tasks that were started inside and live on:
they go back to the app's own connections.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from holdfast.core.errors import ConfigError

if TYPE_CHECKING:
    # Most programs never bring a connection of their own.
    from holdfast.store.callers.adoption import AdoptedConnection

__all__ = ["Using", "bound"]


@dataclass(slots=True, eq=False)
class _Binding:
    owner: object
    connection: AdoptedConnection
    outer: _Binding | None
    ended: bool = False


# One variable for all apps: a context keeps every variable it has seen alive.
_current: ContextVar[_Binding | None] = ContextVar("holdfast_using", default=None)


def bound(owner: object) -> AdoptedConnection | None:
    """The connection that `owner` must use here and now, if it has been given one."""
    binding = _current.get()
    while binding is not None:
        if binding.owner is owner and not binding.ended:
            return binding.connection
        binding = binding.outer
    return None


class Using:
    """What `app.using(connection)` returns: a context manager, sync and async.

    with engine.begin() as connection, app.using(connection):
        connection.execute(insert(orders).values(order))
        confirm.send(order.id)      # commits with the order, or not at all
    """

    def __init__(self, owner: object, connection: AdoptedConnection) -> None:
        self._owner = owner
        self._connection = connection
        self._entered: list[tuple[_Binding, Token[_Binding | None]]] = []

    def __enter__(self) -> Self:
        binding = _Binding(self._owner, self._connection, _current.get())
        self._entered.append((binding, _current.set(binding)))
        return self

    def __exit__(self, *_: object) -> None:
        if not self._entered:
            raise ConfigError("using(…) was left without having been entered")
        binding, token = self._entered.pop()
        binding.ended = True
        _current.reset(token)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()
