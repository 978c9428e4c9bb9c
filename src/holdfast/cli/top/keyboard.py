"""The terminal, lent to the monitor: keys one by one, another screen, and all of it given back.

Invariant: whatever ends the monitor (a key, an exception, SIGTERM, SIGHUP, Ctrl-Z), the terminal is
left as it was found: its modes, its screen, its cursor. Only SIGKILL leaves it behind; then `reset`
helps.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

_ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_KEY: Final = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])?|.", re.DOTALL)
_MOST_AHEAD: Final = 8
_NAMES: Final = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b[H": "g",
    "\x1b[F": "G",
    "\x1b[Z": "back",
    "\x1b": "escape",
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    " ": "space",
}


class Ended(Exception):
    """A signal has asked the monitor to end."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


class Keyboard:
    """Keys as they are pressed; only inside `lent`."""

    def __init__(self) -> None:
        self._in = sys.stdin.fileno()
        self._modes: list[Any] | None = None
        self._is_to_suspend = False
        self._ahead: deque[str] = deque()
        self.is_alone = True
        """The last key came by itself: it was not typed ahead, nor pasted."""
        self.was_away = False
        """The monitor was suspended, and its picture is gone."""

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Have the terminal while the block runs."""
        before = {
            number: signal.signal(number, self._end)
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        }
        before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._ask_to_suspend)
        try:
            self._take()
            yield
        finally:
            self._give_back()
            for number, handler in before.items():
                signal.signal(number, handler)

    def key(self, patience: float) -> str | None:
        """The next key, by its letter or its name; None: none was pressed for so long."""
        if self._is_to_suspend:
            self._suspend()
        if self._ahead:
            return self._ahead.popleft()
        ready, _, _ = select.select([self._in], [], [], patience)
        if not ready:
            return None
        data = os.read(self._in, 4096)
        if not data:
            # The terminal is gone.
            raise Ended(signal.SIGHUP)
        keys = [_NAMES.get(key, key) for key in _keys(data)]
        if len(keys) > _MOST_AHEAD:
            # A text that was pasted may hold any key.
            return None
        self.is_alone = len(keys) == 1
        self._ahead.extend(keys)
        return self._ahead.popleft()

    def _take(self) -> None:
        self._modes = termios.tcgetattr(self._in)
        tty.setcbreak(self._in)
        _write(_ENTER)

    def _give_back(self) -> None:
        if self._modes is not None:
            modes, self._modes = self._modes, None
            try:
                _write(_LEAVE)
                termios.tcsetattr(self._in, termios.TCSADRAIN, modes)
            except (OSError, termios.error):
                # The terminal is gone: there is nothing to give back.
                pass

    def _end(self, number: int, frame: FrameType | None) -> None:
        raise Ended(number)

    def _ask_to_suspend(self, number: int, frame: FrameType | None) -> None:
        # Not here: it may have interrupted a write to the terminal.
        self._is_to_suspend = True

    def _suspend(self) -> None:
        self._is_to_suspend = False
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        # Here it goes on, in the foreground again.
        self._take()
        self.was_away = True


def _keys(data: bytes) -> list[str]:
    return [found.group() for found in _KEY.finditer(data.decode("utf-8", "replace"))]


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
