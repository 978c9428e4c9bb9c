"""Huey: no-op tasks in an SQLite file, which store their results.

python -m bench.peers.on_huey COUNT               put tasks into the queue
huey_consumer bench.peers.on_huey.huey -k process -w 2
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from bench.peers.mark import mark

huey = import_module("huey").SqliteHuey(filename=os.environ["BENCH_URL"])

noop = huey.task(name="noop")(mark)


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        noop(number)
