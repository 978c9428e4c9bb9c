"""The way by which notifications come, and whether they do.

Owns the opening of connections that LISTEN: over `listen_url` if there is one, otherwise to where
all others go. A transaction pooler accepts LISTEN and lets no notification through, and a
`listen_url` may lead to another database; neither gives an error. So wherever there is doubt, a
test notification is sent by an ordinary connection, and the route is used only if it arrives.

Where it does not, nothing waits for notifications: listeners sleep, their users poll, the log says
so once and what to do about it, and the route is tried again now and then.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from time import monotonic

import psycopg
from psycopg import sql

from holdfast.core.errors import HoldfastError
from holdfast.store.postgres.connection import Opener, OwnConnection

logger = logging.getLogger("holdfast.store")

AGAIN_S = 300.0
"""How long a route that was found useless is left alone."""
PATIENCE_S = (0.5, 1.5, 3.0)
"""How long each of the words has to arrive; on a busy server the first may be late."""


class ListenRoute:
    """Opens connections on which notifications arrive."""

    def __init__(
        self,
        opener: Opener,
        say: Callable[[str], None] | None = None,
        *,
        is_apart: bool = False,
    ) -> None:
        """`say` notifies a channel by an ordinary connection; `is_apart`: over a URL of its own."""
        self._opener = opener
        self._say = say
        self._is_apart = is_apart
        self._useless_until = 0.0
        self._told = False

    def open(self, channels: Sequence[str]) -> OwnConnection | None:
        """A connection that listens to these; None if nothing would arrive on it."""
        if self.rest() > 0:
            return None
        try:
            connection = self._opener.open()
        except HoldfastError as error:
            self._unreachable(error)
            raise
        try:
            if self._is_in_doubt(connection) and not self._arrives(connection):
                self._give_up(connection.pooled)
                connection.close()
                return None
            for channel in channels:
                _listen(connection, channel)
        except BaseException:
            connection.close()
            raise
        if self._told:
            self._told = False
            logger.info("notifications arrive over %s now", self._opener.address)
        return connection

    def rest(self) -> float:
        """Seconds until a route that was found useless is tried again."""
        return max(0.0, self._useless_until - monotonic())

    def _is_in_doubt(self, connection: OwnConnection) -> bool:
        return self._say is not None and (self._is_apart or connection.pooled)

    def _arrives(self, connection: OwnConnection) -> bool:
        assert self._say is not None
        channel = _channel()
        _listen(connection, channel)
        for seconds in PATIENCE_S:
            self._say(channel)
            if any(True for _ in connection.notifies(timeout=seconds, stop_after=1)):
                break
        else:
            return False
        connection.execute(sql.SQL("UNLISTEN {}").format(sql.Identifier(channel)), prepare=False)
        return True

    def _unreachable(self, error: HoldfastError) -> None:
        """Say it, if it is only this URL: an outage is reported by those who run operations."""
        if not self._is_apart or self._say is None or self._told:
            return
        try:
            self._say(_channel())
        except (HoldfastError, psycopg.Error):
            return
        self._told = True
        logger.warning(
            "the listen_url cannot be used: %s. It is tried again; until then tasks and results "
            "are found by looking every second or so",
            error,
        )

    def _give_up(self, pooled: bool) -> None:
        self._useless_until = monotonic() + AGAIN_S
        if self._told:
            return
        self._told = True
        if not self._is_apart:
            why = "a transaction pooler stands in between"
        elif pooled:
            why = "this listen_url leads through a transaction pooler, too"
        else:
            why = "this listen_url leads to another database"
        logger.warning(
            "notifications do not arrive over %s: %s. Until that is mended, tasks and results are "
            "found by looking every second or so. Give the address of the server itself as "
            "listen_url (HOLDFAST_LISTEN_URL, holdfast worker --listen-url): one connection of "
            "each process goes there",
            self._opener.address,
            why,
        )


def _channel() -> str:
    """One of our own, so that nobody else is woken, and none of ours is left behind at a pooler."""
    return f"holdfast_echo_{os.urandom(8).hex()}"


def _listen(connection: OwnConnection, channel: str) -> None:
    connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)), prepare=False)
