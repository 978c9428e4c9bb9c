"""Where the code of a running task is right now, as text.

Owns the reading of other threads' frames and of suspended coroutines. Runs in the thread
that hears the supervisor, so it works while the task's own thread computes or waits; not
while C code holds the GIL, and then the supervisor gives up waiting.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from holdfast.core.outcome import Why

_OURS = str(Path(__file__).parents[1])
_LONGEST = 200

TIME_LIMITS: Final[frozenset[Why]] = frozenset({"timeout", "silence"})
"""The reasons to end code for which somebody will ask where it was."""


def of_thread(ident: int) -> str:
    """The stack of a thread, from the task's function on."""
    frame = sys._current_frames().get(ident)
    return "its thread has ended\n" if frame is None else _shown(frame)


def of_frame(frame: FrameType | None) -> str | None:
    """The stack of the code that a signal has interrupted."""
    return None if frame is None else _shown(frame)


def of_coroutine(coroutine: Any) -> str:
    """The stack of a coroutine that waits: what it awaits, and what that awaits."""
    lines: list[traceback.FrameSummary] = []
    link = coroutine
    while link is not None and len(lines) < _LONGEST:
        frame = getattr(link, "cr_frame", None) or getattr(link, "gi_frame", None)
        frame = frame or getattr(link, "ag_frame", None)
        if frame is None:
            break
        lines += traceback.extract_stack(frame, limit=1)
        link = (
            getattr(link, "cr_await", None)
            or getattr(link, "gi_yieldfrom", None)
            or getattr(link, "ag_await", None)
        )
    return _formatted(lines) or "it has not begun\n"


def _shown(frame: FrameType) -> str:
    return _formatted(traceback.extract_stack(frame, limit=_LONGEST))


def _formatted(lines: Iterable[traceback.FrameSummary]) -> str:
    """Without the frames of the child's own loop, which come first."""
    kept = list(lines)
    for place, line in enumerate(kept):
        # The last of ours before the user's own: everything up to it is our machinery.
        if not line.filename.startswith(_OURS) and not _is_machinery(line.filename):
            kept = kept[place:]
            break
    return "".join(traceback.format_list(kept))


def _is_machinery(filename: str) -> bool:
    return filename.startswith("<frozen ") or "/asyncio/" in filename or "/threading.py" in filename
