"""A supervisor for tests: real templates and real children, driven over the wire by hand.

    with Nursery("tests.runtime.apps.plain:app") as nursery:
        kid = nursery.fork("process")
        assert kid.do("add", 1, 2).result == "3"

Owns the processes it starts: whatever a test does, none of them outlives the block.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeVar

from holdfast.core.identity import new_id
from holdfast.core.outcome import (
    AbortAsked,
    Failed,
    Reported,
    RetryAsked,
    Returned,
    SnoozeAsked,
    Why,
)
from holdfast.core.payload.codec import to_json
from holdfast.core.result import TaskError
from holdfast.runtime.orphan_guard import Lifeline
from holdfast.runtime.supervisor.relay.server import RelayServer
from holdfast.runtime.wire import framing, shared_page
from holdfast.runtime.wire import messages as wire
from holdfast.runtime.wire.framing import Reader, Splitter
from holdfast.runtime.wire.messages import Fork, FromTemplate, Job, Kind, Message, ToSupervisor
from holdfast.runtime.wire.shared_page import SharedPage

M = TypeVar("M")

ROOT = Path(__file__).parents[2]
PATIENCE = 20.0
_slots = count(1)


def job(name: str, *args: Any, **fields: Any) -> Job:
    """A job of this task, with made-up identities."""
    given: dict[str, Any] = {
        "slot": next(_slots),
        "id": new_id(),
        "name": name,
        "version": 1,
        "queue": "default",
        "args": to_json(args),
        "kwargs": "{}",
        "attempt": 1,
        "retry_count": 0,
        "task_options": None,
        "parent_id": None,
        "root_id": None,
        "workflow_id": None,
        "trace_context": None,
        "key": 1,
        "token": os.urandom(16),
    }
    return Job(**{**given, **fields})


class Ear:
    """Messages from one socket, in order, waited for with a deadline."""

    def __init__(self, sock: socket.socket, expected: Any) -> None:
        self._sock = sock
        self._reader = Reader(expected)
        self._heard: list[Any] = []
        self.ended = False
        self.divert: Callable[[Any], bool] = lambda _: False
        """Takes what is not to be waited for here."""

    def wait(
        self, wanted: Callable[[Any], bool], seconds: float, meanwhile: Callable[[], None]
    ) -> Any:
        """The first message that is wanted; the others stay for later."""
        deadline = monotonic() + seconds
        looked = 0
        while True:
            while looked < len(self._heard):
                if wanted(self._heard[looked]):
                    return self._heard.pop(looked)
                looked += 1
            meanwhile()
            left = deadline - monotonic()
            assert left > 0, f"not heard within {seconds:g} s; heard {self._heard!r:.500}"
            assert not self.ended, f"the other side is gone; heard {self._heard!r:.500}"
            self.listen(min(left, 0.05))

    def listen(self, seconds: float) -> None:
        """Take in what there is."""
        if self.ended or not select.select([self._sock], [], [], seconds)[0]:
            return
        try:
            data = self._sock.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data:
            self.ended = True
        else:
            self._heard += (m for m in self._reader.feed(data) if not self.divert(m))

    def all(self, kind: type[M]) -> list[M]:
        """What has been heard of one kind, and leave it."""
        return [message for message in self._heard if isinstance(message, kind)]


@dataclass(frozen=True)
class Ran:
    """What a child reports of one run, with what the kinds of outcome have taken together."""

    report: wire.RunReport

    @property
    def kind(self) -> type[Reported]:
        return type(self.report.outcome)

    @property
    def result(self) -> str:
        assert isinstance(self.report.outcome, Returned), self.report
        return self.report.outcome.result

    @property
    def error(self) -> TaskError:
        assert isinstance(self.report.outcome, Failed | RetryAsked | AbortAsked), self.report
        return self.report.outcome.error

    @property
    def listed(self) -> bool:
        assert isinstance(self.report.outcome, Failed), self.report
        return self.report.outcome.listed

    @property
    def delay_us(self) -> int | None:
        assert isinstance(self.report.outcome, SnoozeAsked | RetryAsked), self.report
        return self.report.outcome.delay_us


class Kid:
    """One child."""

    def __init__(self, nursery: Nursery, number: int, kind: Kind, lanes: int) -> None:
        self.number = number
        self.kind: Kind = kind
        self._nursery = nursery
        self.sock, theirs = socket.socketpair()
        self._output, child_output = os.pipe()
        os.set_blocking(self._output, False)
        memory = shared_page.create(lanes)
        self.page = SharedPage(memory, lanes)
        nonce = framing.new_nonce()
        self._splitter = Splitter(nonce)
        self._outputs: dict[int, bytes] = {}
        self._ear = Ear(self.sock, ToSupervisor)
        fork = Fork(number, kind, lanes, f"{kind}-{number}", nonce, 3)
        socket.send_fds(
            nursery.sock, [framing.frame(fork)], [theirs.fileno(), memory, child_output]
        )
        theirs.close()
        os.close(memory)
        os.close(child_output)
        self.pid = nursery.hear(wire.Forked, lambda m: m.child == number).pid

    def say(self, *messages: Message) -> None:
        """Like a child of the pool: to one who is dead in vain, and without complaint."""
        with suppress(OSError):
            self.sock.sendall(b"".join(map(framing.frame, messages)))

    def holds(self, key: object, token: object) -> bool:
        return True

    def serve(self, server: RelayServer) -> None:
        """Let the child's code use a store, whenever this test listens to the child."""

        def divert(message: Any) -> bool:
            if isinstance(message, wire.Ask):
                server.asked(self, message)
            elif isinstance(message, wire.Listen):
                server.listens(self, message)
            return isinstance(message, wire.Ask | wire.Listen)

        self._ear.divert = divert

    def hear(
        self,
        kind: type[M],
        wanted: Callable[[M], bool] = lambda _: True,
        *,
        seconds: float = PATIENCE,
    ) -> M:
        """Wait for a message of this kind."""
        found = self._ear.wait(
            lambda m: isinstance(m, kind) and wanted(m), seconds, self._read_output
        )
        assert isinstance(found, kind)
        return found

    def heard(self, kind: type[M]) -> list[M]:
        """Messages of this kind that have come and nobody has waited for."""
        self._ear.listen(0)
        return self._ear.all(kind)

    def outcomes(self, number: int, *, seconds: float = PATIENCE) -> dict[int, Ran]:
        """Wait for so many outcomes; by slot."""
        found: dict[int, Ran] = {}
        while len(found) < number:
            done = self.hear(wire.Done, seconds=seconds)
            found.update({report.slot: Ran(report) for report in done.reports})
        return found

    def do(self, name: str, *args: Any, seconds: float = PATIENCE, **fields: Any) -> Ran:
        """Run one task and wait for its outcome."""
        order = job(name, *args, **fields)
        return self.do_all([order], seconds=seconds)[0]

    def do_all(self, jobs: Sequence[Job], *, seconds: float = PATIENCE) -> list[Ran]:
        """Run these jobs and wait for their outcomes, in the order of the jobs."""
        self.say(wire.Run(list(jobs)))
        found: dict[int, Ran] = {}
        while not all(order.slot in found for order in jobs):
            found.update(self.outcomes(1, seconds=seconds))
        return [found[order.slot] for order in jobs]

    def begin(self, name: str, *args: Any, **fields: Any) -> Job:
        """Hand over one task, and wait until its code has begun."""
        order = job(name, *args, **fields)
        self.say(wire.Run([order]))
        self.until_begun(order)
        return order

    def until_begun(self, *orders: Job) -> None:
        wanted = {order.slot for order in orders}
        self.until(lambda: wanted <= {begun.slot for begun in self.page.begun()})

    def until(self, condition: Callable[[], object], *, seconds: float = PATIENCE) -> None:
        """Wait for a condition, while the child's output is being read."""
        deadline = monotonic() + seconds
        while not condition():
            assert monotonic() < deadline, f"not within {seconds:g} s"
            self._ear.listen(0.002)
            self._read_output()

    def end(self, order: Job, why: Why = "timeout") -> None:
        """End a task the way the supervisor does in a process child."""
        self.page.ask_to_end(order.slot, why)
        os.kill(self.pid, signal.SIGTERM)

    def died(self, *, seconds: float = PATIENCE) -> wire.Died:
        """Wait for the news of its death."""
        return self._nursery.hear(wire.Died, lambda m: m.child == self.number, seconds=seconds)

    def output(self, order: Job | int) -> bytes:
        """What has been printed under a slot so far, by pipe or by message."""
        slot = order if isinstance(order, int) else order.slot
        self._read_output()
        said = b"".join(m.data for m in self.heard(wire.Said) if m.slot == slot)
        return self._outputs.get(slot, b"") + said

    def _read_output(self) -> None:
        while True:
            try:
                data = os.read(self._output, 1 << 20)
            except BlockingIOError:
                return
            if not data:
                return
            for slot, piece in self._splitter.feed(data):
                self._outputs[slot] = self._outputs.get(slot, b"") + piece

    def close(self) -> None:
        self.sock.close()
        os.close(self._output)
        self.page.close()


class Nursery:
    """A template and its children."""

    def __init__(self, target: str, *, directory: Path = ROOT, **environment: str) -> None:
        self._target = target
        self.sock, theirs = socket.socketpair()
        self._numbers = count(1)
        self._kids: list[Kid] = []
        self._ear = Ear(self.sock, FromTemplate)
        self.lifeline = Lifeline()
        with theirs:
            self.template = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "holdfast.runtime.child.template",
                    target,
                    str(theirs.fileno()),
                    str(self.lifeline.reading),
                ],
                pass_fds=[theirs.fileno(), self.lifeline.reading],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=directory,
                env={**_environment(), **environment},
            )
        assert self.template.stderr is not None
        os.set_blocking(self.template.stderr.fileno(), False)

    def manifest(self) -> wire.Manifest:
        """Wait until the application is imported."""
        found = self._ear.wait(
            lambda m: isinstance(m, wire.Manifest | wire.Broken), PATIENCE, self._nothing
        )
        assert isinstance(found, wire.Manifest), found
        return found

    def broken(self) -> wire.Broken:
        """Wait until the application could not be imported."""
        return self.hear(wire.Broken)

    def hear(
        self,
        kind: type[M],
        wanted: Callable[[M], bool] = lambda _: True,
        *,
        seconds: float = PATIENCE,
    ) -> M:
        found = self._ear.wait(
            lambda m: isinstance(m, kind) and wanted(m), seconds, self._read_outputs
        )
        assert isinstance(found, kind)
        return found

    def fork(self, kind: Kind = "process", lanes: int = 1, *, greeted: bool = True) -> Kid:
        """A child, ready for tasks."""
        kid = Kid(self, next(self._numbers), kind, lanes)
        self._kids.append(kid)
        if greeted:
            kid.hear(wire.Hello)
        return kid

    def say(self, message: Message) -> None:
        self.sock.sendall(framing.frame(message))

    def _nothing(self) -> None:
        pass

    def _read_outputs(self) -> None:
        for kid in self._kids:
            kid._read_output()

    def close(self) -> None:
        for kid in self._kids:
            kid.close()
        self.sock.close()
        try:
            self.template.wait(5)
        except subprocess.TimeoutExpired:
            self.template.kill()
            self.template.wait()
        self.lifeline.cut()
        assert self.template.stderr is not None
        self.template.stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _environment() -> dict[str, str]:
    # Its presence would make C's stdout unbuffered, and hide what a user would see.
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@contextmanager
def one_child(target: str, kind: Kind = "process", lanes: int = 1) -> Iterator[Kid]:
    """A single child of an application."""
    with Nursery(target) as nursery:
        nursery.manifest()
        yield nursery.fork(kind, lanes)
