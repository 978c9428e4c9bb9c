"""The supervisor's end of the template: starting it, hearing what the application is.

Owns that process. It is the first thing a worker does, because importing the application is
what a start waits for longest; so this module imports next to nothing, and what the start
needs of Holdfast is imported while the template does its part.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.core.errors import ConfigError
from holdfast.runtime.orphan_guard import Lifeline

if TYPE_CHECKING:
    from holdfast.runtime.wire.messages import Fork, Manifest

_REAPED = 2.0


class AppBroken(ConfigError):
    """The application cannot be imported; the message is what its author should read."""


class TemplateProcess:
    """The process that children are forked from."""

    def __init__(
        self, target: str, path: Sequence[str] = (), lifeline: Lifeline | None = None
    ) -> None:
        self._target = target
        self._path = path
        self.lifeline = lifeline or Lifeline()
        """What all children hang on, also those of a template that came before."""
        ours, theirs = socket.socketpair()
        self.sock = ours
        with theirs:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "holdfast.runtime.child.template",
                    target,
                    str(theirs.fileno()),
                    str(self.lifeline.reading),
                    *([os.pathsep.join(path)] if path else []),
                ],
                pass_fds=[theirs.fileno(), self.lifeline.reading],
                stdin=subprocess.DEVNULL,
                # Ctrl-C goes to everybody at the terminal, and is for the supervisor to obey.
                start_new_session=True,
            )
        from holdfast.runtime.wire.framing import Reader
        from holdfast.runtime.wire.messages import FromTemplate

        self.reader = Reader(FromTemplate)

    def again(self) -> TemplateProcess:
        """Another one of the same application."""
        return TemplateProcess(self._target, self._path, self.lifeline)

    def manifest(self, patience: float = 300.0) -> Manifest:
        """Wait until the application is imported; what it is."""
        from holdfast.runtime.wire.messages import Broken, Manifest

        self.sock.settimeout(patience)
        while True:
            try:
                data = self.sock.recv(256 * 1024)
            except TimeoutError:
                raise AppBroken(
                    f"the application was not imported in {patience:g} s: "
                    "does a module wait for something while it is imported?",
                ) from None
            if not data:
                raise AppBroken(
                    f"the process that imported the application has ended ({self.reap()}): "
                    "does the module, or a library, end the process?",
                )
            for message in self.reader.feed(data):
                if isinstance(message, Broken):
                    raise AppBroken(message.text)
                if isinstance(message, Manifest):
                    return message

    def fork(self, message: Fork, descriptors: list[int]) -> None:
        """Ask for a child; it gets the descriptors."""
        from holdfast.runtime.wire.framing import frame

        self.sock.setblocking(True)
        try:
            data = frame(message)
            sent = socket.send_fds(self.sock, [data], descriptors)
            self.sock.sendall(data[sent:])
        finally:
            self.sock.setblocking(False)

    def reap(self) -> str:
        """Reap one that has ended, or has closed its socket; how it ended, in words."""
        self.end(_REAPED)
        status = self.process.returncode
        if status < 0:
            return f"killed by {signal.Signals(-status).name}"
        return f"exit status {status}"

    def end(self, patience: float = 5.0) -> bool:
        """Let it go: it ends when its socket does, after its children; False if it was killed."""
        self.sock.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True
