"""Wake-up hints between processes that share a file: whoever commits rings at everyone who sleeps.

Owns the sockets in the directory `<database>-bell`: each listener binds a Unix
datagram socket there, whose name says what it listens to, and a ring is one datagram
to each of them. It costs a sender some microseconds and wakes a worker in a fraction
of a millisecond. Only ever a hint: ringing never raises and never blocks; a listener
whose buffer is full has been rung already; one that died is noticed by the refusal
and its socket removed.

A ring may be lost, so whoever waits also looks whether anyone has committed (`commit_watch`). That
is the truth, and how commits are noticed that ring no bell: those of a caller's own transaction, or
of another program.

Where sockets cannot be bound (no permission, no Unix sockets) listeners poll. Where the
directory is absent or closed to us nobody is rung; it is looked for again a moment later,
because a commit should not pay for a system call that fails. A database in memory has its
listeners in this process, and they are rung directly.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from time import monotonic, time_ns

from holdfast.core.errors import StoreError
from holdfast.store import fork
from holdfast.store.op import Channel
from holdfast.store.protocol import Listener
from holdfast.store.sqlite import faults, side_file
from holdfast.store.sqlite.commit_watch import CommitLooks
from holdfast.store.sqlite.side_file import Distrusted

ANYTHING = ""
"""Heard when it is not known what happened."""

_LONGEST_ADDRESS = 100 if sys.platform == "darwin" else 107
_LONGEST_PAYLOAD = 1024
_LONGEST_RECEIVED = 4096
_WAKE = b"\0"
# A socket takes this many datagrams by default and then refuses more, silently for us.
_QUEUE = 10
# A change within the granularity of the filesystem's clock may not show in its time stamp.
_UNSETTLED_NS = 50_000_000
# How long an absent or closed directory is believed to be so. Listeners look by themselves more
# often than people make directories.
_BELIEVED_S = 0.05
_HAS_SOCKETS = hasattr(socket, "AF_UNIX")


class Doorbell:
    """Rings, and lets listen, at one database. Get it from `of`."""

    def __init__(self, path: str) -> None:
        self._folder = None if path == faults.MEMORY else f"{path}-bell"
        self._path = path
        self._mutex = threading.Lock()
        self._local: list[weakref.ref[DoorbellListener]] = []
        self._sender: socket.socket | None = None
        self._descriptor: int | None = None
        self._listed: dict[Channel, list[str]] = {}
        self._listed_at: int | None = None
        self._closed_until = 0.0
        fork.inherit(self)

    def ring(self, channel: Channel, queues: Sequence[str] = ()) -> None:
        """Wake those who listen to the channel."""
        with self._mutex:
            addresses = self._addresses(channel)
            if not addresses and not self._local:
                return
            payload = "\n".join(queues).encode(errors="replace")
            if len(payload) > _LONGEST_PAYLOAD:
                payload = b""
            for reference in self._local:
                listener = reference()
                if listener is not None and channel in listener.channels:
                    listener.ring(payload)
            for address in addresses:
                self._send(payload, address)

    def listen(self, data_version: Callable[[], object], *channels: Channel) -> DoorbellListener:
        """Listen to the channels from now on; `data_version` differs when anyone committed."""
        bound = self._bind(channels)
        if bound is not None:
            receiver, address = bound

            def ring(payload: bytes) -> None:
                with self._mutex:
                    self._socket().sendto(payload, address)

            return DoorbellListener(
                receiver, ring, data_version, channels, CommitLooks(self._path), address
            )
        kind = socket.SOCK_DGRAM if _HAS_SOCKETS else socket.SOCK_STREAM
        receiver, sender = socket.socketpair(type=kind)
        receiver.setblocking(False)
        sender.setblocking(False)
        looks = CommitLooks(self._path)
        listener = DoorbellListener(receiver, sender.send, data_version, channels, looks)
        weakref.finalize(listener, sender.close)
        with self._mutex:
            self._local = [one for one in self._local if one() is not None]
            self._local.append(weakref.ref(listener))
        return listener

    def close(self) -> None:
        with self._mutex:
            if self._sender is not None:
                self._sender.close()
                self._sender = None
            self._forget()

    def __del__(self) -> None:
        self.close()

    def after_fork(self) -> None:
        """In the child: the socket only sends, so it may be shared."""
        self._mutex = threading.Lock()

    def _send(self, payload: bytes, address: str) -> None:
        try:
            (self._sender or self._socket()).sendto(payload, address)
        except (ConnectionRefusedError, FileNotFoundError):
            _remove(address)
            self._listed_at = None
        except OSError:
            # Full: it has been rung already. Or not ours to write to.
            pass

    def _socket(self) -> socket.socket:
        if self._sender is None:
            self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._sender.setblocking(False)
        return self._sender

    def _addresses(self, channel: Channel) -> list[str]:
        """Who listens; the directory is read again only when it has changed."""
        if self._folder is None or not _HAS_SOCKETS:
            return []
        if self._closed_until:
            if monotonic() < self._closed_until:
                return []
            self._closed_until = 0.0
        try:
            if self._descriptor is None:
                # Asked first: a directory that may not be read can be opened all the same.
                if not _may_look_into(self._folder):
                    self._closed_until = monotonic() + _BELIEVED_S
                    return []
                self._descriptor = side_file.look_into(self._folder, self._path)
            state = os.fstat(self._descriptor)
            if state.st_nlink == 0:
                self._forget()
                return []
            if state.st_mtime_ns != self._listed_at:
                settled = time_ns() - state.st_mtime_ns > _UNSETTLED_NS
                self._listed = self._list()
                self._listed_at = state.st_mtime_ns if settled else None
        except (OSError, Distrusted):
            # Removed or closed to us in this moment, or not to be trusted.
            self._closed_until = monotonic() + _BELIEVED_S
            return []
        return self._listed.get(channel, [])

    def _list(self) -> dict[Channel, list[str]]:
        found: dict[Channel, list[str]] = {channel: [] for channel in Channel}
        for path in Path(self._folder or "").iterdir():
            words = path.name.split(".")
            for channel in Channel:
                if channel.value in words:
                    found[channel].append(self._address(path.name))
        return found

    def _address(self, name: str) -> str:
        """The socket's path, or a shorter one when it does not fit into an address."""
        address = f"{self._folder}/{name}"
        if len(os.fsencode(address)) > _LONGEST_ADDRESS:
            return f"/proc/self/fd/{self._descriptor}/{name}"
        return address

    def _bind(self, channels: Sequence[Channel]) -> tuple[socket.socket, str] | None:
        if self._folder is None or not _HAS_SOCKETS:
            return None
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.setblocking(False)
        try:
            opened = side_file.open_folder(self._folder, self._path)
            with self._mutex:
                if self._descriptor is None:
                    self._descriptor = opened
                else:
                    os.close(opened)
                self._closed_until = 0.0
            words = [channel.value for channel in channels]
            address = self._address(".".join([*words, str(os.getpid()), os.urandom(4).hex()]))
            receiver.bind(address)
            side_file.share_socket(address, side_file.mode_beside(self._path))
        except (OSError, Distrusted):
            receiver.close()
            return None
        return receiver, address

    def _forget(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._listed_at = None


class DoorbellListener(Listener):
    """Hears rings at one socket; `ring_it` is how to ring it from this process.

    A wait also looks whether anyone has committed, by `data_version`; `looks` says when.
    """

    def __init__(
        self,
        receiver: socket.socket,
        ring_it: Callable[[bytes], object],
        data_version: Callable[[], object],
        channels: Collection[Channel],
        looks: CommitLooks,
        address: str | None = None,
    ) -> None:
        self.channels = frozenset(channels)
        self._receiver = receiver
        self._ring_it = ring_it
        self._data_version = data_version
        self._address = address
        self._looks = looks
        self._selector = selectors.DefaultSelector()
        self._selector.register(receiver, selectors.EVENT_READ)
        self._watched: int | None = None
        """The descriptor by which the kernel tells of writes, while it is waited for."""
        self._version = data_version()
        self._closed = False
        fork.inherit(self)

    def fileno(self) -> int:
        """Readable when something was heard; only a hint, like all of this."""
        return self._receiver.fileno()

    def wait(self, timeout: float) -> frozenset[str]:
        """Sleep until a hint or the timeout; what was heard, empty after a timeout."""
        deadline = monotonic() + timeout
        try:
            while not self._closed:
                left, pause = deadline - monotonic(), self._looks.pause
                self._watch(self._looks.descriptor)
                ready = {key.fd for key, _ in self._selector.select(max(0.0, min(left, pause)))}
                if self._receiver.fileno() in ready:
                    heard = self._drain()
                    if heard is not None:
                        return heard
                elif ready:
                    self._looks.told()
                elif self._has_changed():
                    return frozenset((ANYTHING,))
                elif left <= pause:
                    break
        except (OSError, ValueError, KeyError):
            # Closed by another thread, between our look at `_closed` and the wait.
            if not self._closed:
                raise
        return frozenset()

    def wake(self) -> None:
        """End a `wait` of another thread now."""
        self.ring(_WAKE)

    def ring(self, payload: bytes) -> None:
        """Ring from this process. Best effort."""
        if not self._closed:
            try:
                self._ring_it(payload)
            except OSError:
                pass

    def close(self) -> None:
        if self._closed:
            return
        self.wake()
        self._closed = True
        self._selector.close()
        self._looks.close()
        self._receiver.close()
        if self._address is not None:
            _remove(self._address)

    def after_fork(self) -> None:
        if not self._closed:
            # The parent listens on; a second holder would only keep its socket alive forever.
            self._closed = True
            self._selector.close()
            self._looks.close()
            self._receiver.close()

    def _watch(self, descriptor: int | None) -> None:
        """Wait for this one, too; or for the bell alone."""
        if descriptor == self._watched:
            return
        if self._watched is not None:
            self._selector.unregister(self._watched)
        if descriptor is not None:
            self._selector.register(descriptor, selectors.EVENT_READ)
        self._watched = descriptor

    def _drain(self) -> frozenset[str] | None:
        """All that has arrived; None if it was nothing after all."""
        heard: set[str] = set()
        count = 0
        while True:
            try:
                payload = self._receiver.recv(_LONGEST_RECEIVED)
            except OSError:
                break
            count += 1
            if payload != _WAKE:
                heard.update(payload.decode(errors="replace").split("\n"))
        if count >= _QUEUE:
            heard.add(ANYTHING)
        return frozenset(heard) if count else None

    def _has_changed(self) -> bool:
        try:
            version = self._data_version()
        except StoreError:
            # Whoever waits will ask the store next, and hear what is wrong from it.
            version = self._version
        changed = version != self._version
        self._version = version
        self._looks.looked(changed)
        return changed


_doorbells: weakref.WeakValueDictionary[str, Doorbell] = weakref.WeakValueDictionary()
_mutex = threading.Lock()


def of(path: str) -> Doorbell:
    """The doorbell of the database at this (resolved) path; one in memory has its own."""
    if path == faults.MEMORY:
        return Doorbell(path)
    with _mutex:
        found = _doorbells.get(path)
        if found is None:
            found = _doorbells[path] = Doorbell(path)
        return found


def _may_look_into(folder: str) -> bool:
    """Whether it is there, and we may list it and reach what is in it."""
    effective = os.access in os.supports_effective_ids
    return os.access(folder, os.R_OK | os.X_OK, effective_ids=effective)


def _remove(address: str) -> None:
    """Remove the socket of one who listens no more."""
    try:
        os.unlink(address)  # noqa: PTH108 - called from the ringing end, for every dead listener
    except OSError:
        pass
