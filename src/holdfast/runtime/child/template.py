"""The template: the process that imports the application, and makes children of itself.

    python -m holdfast.runtime.child.template MODULE:APP SOCKET LIFELINE [PATH]

LIFELINE is the pipe that children hang on (`orphan_guard`), PATH the module search path of the
process that embeds the worker, if one does.

Owns user code's first import and every child's birth and death. While it has one thread,
a child is a fork: quick, and sharing memory. Threads do not survive a fork, nor do the locks
they hold, so an application that starts one at import gets children that import it again.

It runs no task. It reaps children, kills what is left of a dead child's process group, and
dies with the supervisor, taking every child along: by the kernel's signal, and by the end of
the socket. If it dies alone, its children go on, and the supervisor makes another.

User code may replace what the standard library offers. A child that is forked by gevent's `os.fork`
(after its `monkey.patch_all()`) is also reaped by gevent, behind our back; and its `poll` would run
its event loop, and whatever the application has put there, inside the template. So what is called
of the operating system is taken from before the application is imported.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import NoReturn

import msgspec

from holdfast.runtime import orphan_guard, process_role
from holdfast.runtime.application import Application, manifest
from holdfast.runtime.child.child_main import (
    SIGNALS,
    ignore_signals,
    ignored,
    live,
    run_exit_functions,
)
from holdfast.runtime.child.load_app import Unloadable, load
from holdfast.runtime.child.stdio import StandardStreams
from holdfast.runtime.wire.framing import Reader, send
from holdfast.runtime.wire.messages import (
    EXIT_BROKEN,
    Broken,
    Died,
    Fork,
    Forked,
    Message,
)

_fork = os.fork
_posix_spawn = os.posix_spawn
_waitpid = os.waitpid
_waitid = getattr(os, "waitid", None)
_poll = select.poll
_signal = signal.signal

_CHUNK = 64 * 1024
_MOST_DESCRIPTORS = 64
_FIRST_INHERITED = 3
_HIGH = 10
_LAST_PATIENCE = 2.0
_HELD_BACK = (*SIGNALS, signal.SIGCHLD)


class Template:
    """One application, and its living children."""

    def __init__(self, target: str, sock: socket.socket, lifeline: int, path: str = "") -> None:
        self._target = target
        self._lifeline = lifeline
        self._path = path
        self._sock = sock
        self._parent = os.getppid()
        self._place = str(Path.cwd())
        self._reader = Reader(Fork)
        self._descriptors: deque[int] = deque()
        self._children: dict[int, int] = {}
        self._is_loaded = False
        self._wake_reading, self._wake_writing = os.pipe()
        os.set_blocking(self._wake_reading, False)
        os.set_blocking(self._wake_writing, False)
        self._streams = StandardStreams()

    def run(self) -> NoReturn:
        """Import the application, then make children until the supervisor is gone."""
        orphan_guard.die_with(self._parent)
        try:
            os.setsid()
        except PermissionError:
            pass
        self._settle_signals()
        try:
            application = load(self._target, self._path)
        except Unloadable as error:
            self._say(Broken(str(error)))
            self._end(2)
        process_role.take("child")
        self._is_loaded = True
        threads = thread_count()
        self._say(manifest(application, self._target, threads))
        # Again: a module may have set its own when it was imported.
        self._settle_signals()
        if threads == 1:
            # Nothing of ours can hang from here on, so there is time to take along what
            # children have started themselves.
            orphan_guard.die_with(self._parent, signal.SIGTERM)
        # What children need, once for all of them; not before the manifest is sent: the supervisor
        # has the store to open meanwhile.
        for kind in {task.executor for task in application.tasks}:
            import_module(f"holdfast.runtime.child.{kind}_child")
        gc.collect()
        gc.freeze()
        self._serve(application)
        self._end()

    def _settle_signals(self) -> None:
        ignore_signals(_signal)
        _signal(signal.SIGCHLD, ignored)
        _signal(signal.SIGTERM, self._on_sigterm)
        signal.set_wakeup_fd(self._wake_writing, warn_on_full_buffer=False)

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        # A SIGTERM to everybody (a service manager's way to stop) is for the supervisor to
        # interpret; the kernel's own signal that it is dead is not.
        if os.getppid() != self._parent:
            self._end()

    def _serve(self, application: Application) -> None:
        poll = _poll()
        poll.register(self._sock, select.POLLIN)
        poll.register(self._wake_reading, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self._wake_reading:
                    _drain(self._wake_reading)
                    self._reap()
                elif not self._hear(application):
                    return

    def _hear(self, application: Application) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._sock, _CHUNK, _MOST_DESCRIPTORS)
        except ConnectionError:
            return False
        if not data:
            return False
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self._descriptors += descriptors
        for fork in self._reader.feed(data):
            given = [self._descriptors.popleft() for _ in range(fork.descriptors)]
            self._make_child(fork, given, application)
            for descriptor in given:
                os.close(descriptor)
        return True

    def _make_child(self, fork: Fork, descriptors: Sequence[int], application: Application) -> None:
        try:
            pid = self._make(fork, descriptors, application)
        except OSError as error:
            # No memory, or too many processes: the supervisor tries again, a little later.
            sys.stderr.write(f"no child could be made: {error}\n")
            self._say(Died(fork.child, 0, EXIT_BROKEN, None))
            return
        self._children[pid] = fork.child
        self._say(Forked(fork.child, pid))

    def _make(self, fork: Fork, descriptors: Sequence[int], application: Application) -> int:
        self._streams.flush()
        if thread_count() > 1:
            return self._spawn(fork, descriptors)
        signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
        try:
            pid = _fork()
        except OSError:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
            raise
        if pid == 0:
            self._sock.close()
            os.close(self._wake_reading)
            os.close(self._wake_writing)
            orphan_guard.hang_on(self._lifeline)
            os.close(self._lifeline)
            if "gevent.hub" in sys.modules:
                # What gevent's own `fork` would have done.
                sys.modules["gevent.hub"].reinit()
            live(fork, descriptors, application, self._streams)
        try:
            # The child does the same; whoever comes first, it is done before we go on.
            os.setpgid(pid, pid)
        except (PermissionError, ProcessLookupError):
            pass
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD_BACK)
        return pid

    def _spawn(self, fork: Fork, descriptors: Sequence[int]) -> int:
        import fcntl
        from subprocess import _args_from_interpreter_flags  # type: ignore[attr-defined]

        # Out of the way of the numbers that the child will find them under.
        given = (*descriptors, self._lifeline)
        high = [fcntl.fcntl(d, fcntl.F_DUPFD_CLOEXEC, _HIGH) for d in given]
        try:
            return _posix_spawn(
                sys.executable,
                [
                    sys.executable,
                    *_args_from_interpreter_flags(),
                    "-m",
                    "holdfast.runtime.child.child_main",
                    self._target,
                    self._place,
                    self._path,
                    msgspec.msgpack.encode(fork).hex(),
                ],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, source, _FIRST_INHERITED + place)
                    for place, source in enumerate(high)
                ],
                setpgroup=0,
                setsigmask=(),
                setsigdef=_HELD_BACK,
            )
        finally:
            for descriptor in high:
                os.close(descriptor)

    def _reap(self) -> None:
        for pid, number in list(self._children.items()):
            status = _reap_one(pid)
            if status is None:
                continue
            del self._children[pid]
            code = os.waitstatus_to_exitcode(status)
            self._say(Died(number, pid, code if code >= 0 else None, -code if code < 0 else None))

    def _say(self, message: Message) -> None:
        try:
            send(self._sock, message)
        except OSError:
            self._end()

    def _end(self, status: int = 0) -> NoReturn:
        for pid in self._children:
            orphan_guard.kill_child(pid)
        self._streams.flush()
        self._await_children(monotonic() + _LAST_PATIENCE)
        if self._is_loaded:
            run_exit_functions(_LAST_PATIENCE, status)
            self._streams.flush()
        os._exit(status)

    def _await_children(self, deadline: float) -> None:
        """Wait for children that were killed: whoever waits for us must find nothing left.

        Not indefinitely: the kernel does not end a process that is stuck in a call of its own.
        """
        poll = _poll()
        poll.register(self._wake_reading, select.POLLIN)
        while True:
            _drain(self._wake_reading)
            self._children = {pid: n for pid, n in self._children.items() if _reap_one(pid) is None}
            left = deadline - monotonic()
            if not self._children or left <= 0:
                return
            poll.poll(left * 1000)


def thread_count() -> int:
    """All threads of this process, those that C code has started included."""
    tasks = Path("/proc/self/task")
    try:
        return sum(1 for _ in tasks.iterdir())
    except OSError:
        return threading.active_count()


def _reap_one(pid: int) -> int | None:
    """Reap a child and kill what is left of its group; its status, or None if it lives."""
    if _waitid is not None:
        if _waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        # Before its number is free for others.
        orphan_guard.kill_group(pid)
        return _waitpid(pid, 0)[1]
    ended, status = _waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    orphan_guard.kill_group(pid)
    return status


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


def main() -> NoReturn:
    """Be the template of `MODULE:APP`, over the socket with the given number."""
    target, descriptor, lifeline, *path = sys.argv[1:]
    os.set_inheritable(int(descriptor), False)
    os.set_inheritable(int(lifeline), False)
    process_role.take("importing")
    Template(target, socket.socket(fileno=int(descriptor)), int(lifeline), *path).run()


if __name__ == "__main__":
    main()
