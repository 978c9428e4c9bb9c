"""A bell: wakes a thread from another, or from a signal handler.

A pipe, because nothing else may be used in a signal handler: whatever takes a lock may find it
held by the very code that was interrupted.
"""

from __future__ import annotations

import os
import select


class WakePipe:
    """Rung from anywhere; one thread waits."""

    def __init__(self) -> None:
        self._ear, self._rope = os.pipe()
        os.set_blocking(self._ear, False)
        os.set_blocking(self._rope, False)
        self._poll = select.poll()
        self._poll.register(self._ear, select.POLLIN)

    def fileno(self) -> int:
        """What becomes readable when it rings, for whoever waits for other things too."""
        return self._ear

    def ring(self) -> None:
        """End a wait, or the next one."""
        try:
            os.write(self._rope, b"!")
        except BlockingIOError:
            # It rings already.
            pass

    def wait(self, seconds: float) -> None:
        """Wait until it rings, or so long; it is quiet again afterwards."""
        self._poll.poll(seconds * 1000)
        self.hush()

    def hush(self) -> None:
        """Stop ringing."""
        try:
            while os.read(self._ear, 4096):
                pass
        except BlockingIOError:
            pass

    def __del__(self) -> None:
        # Not before: whoever can still ring would write into whatever file has the number then.
        os.close(self._ear)
        os.close(self._rope)
