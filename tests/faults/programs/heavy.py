"""An application that costs much to import: 300 MB, and a thread that it starts at once."""

from __future__ import annotations

import threading
import time

from holdfast import Holdfast

ballast = bytearray(b"x") * 300_000_000

ticks = 0


def _tick() -> None:
    global ticks  # noqa: PLW0602 - read by the task
    while True:
        globals()["ticks"] += 1
        time.sleep(0.01)


threading.Thread(target=_tick, daemon=True).start()

app = Holdfast()


@app.task("weigh")
def weigh() -> int:
    return len(ballast)


@app.task("ticks")
def count_ticks() -> bool:
    before, deadline = ticks, time.monotonic() + 20
    while ticks == before and time.monotonic() < deadline:
        time.sleep(0.01)
    return ticks > before
