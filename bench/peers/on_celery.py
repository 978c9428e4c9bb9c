"""Celery: tasks on Redis, which store their results.

python -m bench.peers.on_celery COUNT             put tasks into the queue (see `asked`)
celery --app bench.peers.on_celery worker --pool prefork --concurrency 2
"""

from __future__ import annotations

import os
from importlib import import_module

from bench.peers.asked import answer
from bench.peers.mark import mark

celery = import_module("celery")

app = celery.Celery("bench", broker=os.environ["BENCH_URL"], backend=os.environ["BENCH_URL"])
app.conf.broker_connection_retry_on_startup = True

noop = app.task(mark, name="noop")


if __name__ == "__main__":
    answer(noop.delay, lambda sent: sent.get(timeout=30))
