"""Huey: tasks on Redis or in an SQLite file, as the address says, which store their results.

python -m bench.peers.on_huey COUNT               put tasks into the queue (see `asked`)
huey_consumer bench.peers.on_huey.huey -k process -w 2
"""

from __future__ import annotations

import os
from importlib import import_module

from bench.peers.asked import answer
from bench.peers.mark import mark

_huey = import_module("huey")
_address = os.environ["BENCH_URL"]

huey = (
    _huey.RedisHuey("bench", url=_address)
    if _address.startswith("redis:")
    else _huey.SqliteHuey(filename=_address)
)

noop = huey.task(name="noop")(mark)


if __name__ == "__main__":
    answer(noop, lambda sent: sent.get(blocking=True, timeout=30))
