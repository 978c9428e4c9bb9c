"""One of many processes that fire schedules, until it is killed or told to stop.

    python -m tests.faults.programs.firer URL SCHEMA SHIFT

`SHIFT` is by how many seconds its own clock is wrong. Says "ready" once it has looked for the first
time; ends when its standard input does.
"""

from __future__ import annotations

import sys
import threading
import time

_real_time, _real_time_ns = time.time, time.time_ns


def _set_wrong(shift: float) -> None:
    """What this process takes for the time."""
    time.time = lambda: _real_time() + shift
    time.time_ns = lambda: _real_time_ns() + round(shift * 1_000_000_000)


def main(url: str, schema: str, shift: str) -> None:
    _set_wrong(float(shift))
    from holdfast.runtime.supervisor.duties.scheduler import Scheduler
    from holdfast.runtime.supervisor.outage import Outage
    from holdfast.store.open import open_store
    from holdfast.store.settings import parse_url

    # On SQLite the database's clock is the machine's, which is right.
    store = open_store(
        parse_url(url, schema=schema or None, clock=lambda: _real_time_ns() // 1_000)
    )
    outage = Outage(1.0)
    duty = Scheduler(store, outage, worker_id=str(shift), declared=[], poll=0.2)
    stop = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    said = False
    while not stop.is_set():
        wait = duty.tick()
        if not said:
            print("ready", flush=True)
            said = True
        stop.wait(min(wait, 0.2))
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
