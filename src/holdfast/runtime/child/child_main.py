"""The beginning and the end of a process that has user code: a child's, and in part the template's.

    python -m holdfast.runtime.child.child_main MODULE:APP DIRECTORY PATH FORK

is a child that was spawned, and imports the application by itself. Its socket, its shared page, its
output pipe and its lifeline are the descriptors 3 to 6; FORK is the message that asked for it, in
hexadecimal. A child that was forked begins in `live`.

From its birth on a child is the leader of a process group of its own. Signals to it are the
supervisor's business: a terminal, a service manager or an operator may signal every process of a
worker, and what to do about it, the supervisor decides. So there is a handler that does nothing;
SIG_IGN would be inherited by what user code executes.

These processes end by `os._exit`. Before that the functions run that were registered with `atexit`,
so that libraries can send what they still have (spans, log records, metrics); but not indefinitely.
"""

from __future__ import annotations

import atexit
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from holdfast.runtime import orphan_guard, process_role
from holdfast.runtime.application import Application
from holdfast.runtime.child.load_app import Unloadable, load
from holdfast.runtime.child.stdio import StandardStreams, log_to_stderr
from holdfast.runtime.child.task_fields import is_child_of
from holdfast.runtime.wire.messages import EXIT_BROKEN, EXIT_ENDED, EXIT_LEFT, Fork, Kind

if TYPE_CHECKING:
    from holdfast.runtime.child.child import Child

_DESCRIPTORS = (3, 4, 5)
_LIFELINE = 6
_EXIT_PATIENCE = 5.0
_ALWAYS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_UNLESS_USED = (signal.SIGQUIT, signal.SIGUSR1)
"""These an application may use for its own purposes, such as `faulthandler`."""
SIGNALS = (*_ALWAYS, *_UNLESS_USED)
"""What the supervisor decides about."""


def live(
    fork: Fork,
    descriptors: Sequence[int],
    application: Application,
    streams: StandardStreams,
) -> NoReturn:
    """Be a child; never returns."""
    from holdfast.runtime.child.child import Birth

    status = EXIT_BROKEN
    try:
        try:
            os.setpgid(0, 0)
        except PermissionError:
            pass
        random.seed()
        _settle_signals()
        child = _kind(fork.kind)(Birth(fork, descriptors, application, streams))
        application.borrow(child.store)
        is_child_of(fork.worker)
        log_to_stderr()
        status = child.run()
        streams.flush()
        if status in (EXIT_LEFT, EXIT_ENDED):
            run_exit_functions(_EXIT_PATIENCE, status)
            streams.flush()
    except BaseException:  # noqa: BLE001 - nothing may return into the template's code
        traceback.print_exc()
        streams.flush()
    finally:
        os._exit(status)


def _kind(kind: Kind) -> type[Child]:
    match kind:
        case "process":
            from holdfast.runtime.child.process_child import ProcessChild

            return ProcessChild
        case "thread":
            from holdfast.runtime.child.thread_child import ThreadChild

            return ThreadChild
        case "async":
            from holdfast.runtime.child.async_child import AsyncChild

            return AsyncChild


def _settle_signals() -> None:
    ignore_signals()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    os.register_at_fork(after_in_child=_release_signals)


def ignored(number: int, frame: FrameType | None) -> None:
    """Do nothing."""


def ignore_signals(set_handler: Callable[[int, Any], Any] = signal.signal) -> None:
    """Do nothing about `SIGNALS` from now on."""
    for number in _ALWAYS:
        set_handler(number, ignored)
    for number in _UNLESS_USED:
        if signal.getsignal(number) is signal.SIG_DFL:
            set_handler(number, ignored)


def _release_signals() -> None:
    """In a process that a task forks, which is the task's own: it must be possible to end it."""
    if threading.current_thread() is not threading.main_thread():
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _UNLESS_USED:
        if signal.getsignal(number) is ignored:
            signal.signal(number, signal.SIG_DFL)


def run_exit_functions(patience: float, status: int) -> None:
    """Run them; a process that has not come to their end in time exits with this status."""
    last = threading.Timer(patience, os._exit, [status])
    last.daemon = True
    last.start()
    atexit._run_exitfuncs()
    last.cancel()


def main() -> None:
    """Be a child that was spawned."""
    target, place, path, message = sys.argv[1:]
    orphan_guard.hang_on(_LIFELINE)
    os.close(_LIFELINE)
    for descriptor in _DESCRIPTORS:
        os.set_inheritable(descriptor, False)
    fork = msgspec.msgpack.decode(bytes.fromhex(message), type=Fork)
    os.chdir(place)
    streams = StandardStreams()
    process_role.take("importing")
    try:
        application = load(target, path)
    except Unloadable as error:
        sys.stderr.write(f"{error}\n")
        streams.flush()
        os._exit(EXIT_BROKEN)
    process_role.take("child")
    live(fork, _DESCRIPTORS, application, streams)


if __name__ == "__main__":
    main()
