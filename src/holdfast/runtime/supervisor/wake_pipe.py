"""A pipe that wakes a thread from another, or from a signal handler.

Nothing else may be used in a signal handler: whatever takes a lock may find it held by the very
code that was interrupted.
"""

from __future__ import annotations

import os
import select


class WakePipe:
    """Anybody wakes; one thread waits."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._poll = select.poll()
        self._poll.register(self._reading, select.POLLIN)

    def fileno(self) -> int:
        """What becomes readable when somebody wakes, for whoever waits for other things too."""
        return self._reading

    def wake(self) -> None:
        """End a wait, or the next one."""
        try:
            os.write(self._writing, b"!")
        except BlockingIOError:
            # It is full: the wait will end.
            pass

    def wait(self, seconds: float) -> None:
        """Wait until somebody wakes, or so long; the next wait begins anew."""
        self._poll.poll(seconds * 1000)
        self.clear()

    def clear(self) -> None:
        """Forget who has woken it."""
        try:
            while os.read(self._reading, 4096):
                pass
        except BlockingIOError:
            pass

    def __del__(self) -> None:
        # Not before: whoever can still wake it would write into whatever file has the number then.
        os.close(self._reading)
        os.close(self._writing)
