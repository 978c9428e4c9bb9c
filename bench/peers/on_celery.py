"""Celery: no-op tasks on Redis, which store their results.

python -m bench.peers.on_celery COUNT             put tasks into the queue
celery --app bench.peers.on_celery worker --pool prefork --concurrency 2
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from bench.peers.mark import mark

celery = import_module("celery")

app = celery.Celery("bench", broker=os.environ["BENCH_URL"], backend=os.environ["BENCH_URL"])
# Its default is 4 per process; at more than that a no-op task costs less (see `roster`).
app.conf.worker_prefetch_multiplier = int(os.environ.get("BENCH_PREFETCH", "4"))
app.conf.broker_connection_retry_on_startup = True

noop = app.task(mark, name="noop")


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        noop.delay(number)
