"""taskiq: tasks on Redis, which store their results; its worker uses uvloop by itself.

python -m bench.peers.on_taskiq COUNT             put tasks into the queue (see `asked`)
taskiq worker --workers 2 bench.peers.on_taskiq:broker
"""

from __future__ import annotations

import asyncio
import os
from importlib import import_module

from bench.peers.asked import answer
from bench.peers.mark import mark_async

taskiq_redis = import_module("taskiq_redis")
_address = os.environ["BENCH_URL"]

broker = taskiq_redis.ListQueueBroker(_address).with_result_backend(
    taskiq_redis.RedisAsyncResultBackend(_address)
)

noop = broker.task("noop")(mark_async)


def _answer() -> None:
    with asyncio.Runner() as runner:
        runner.run(broker.startup())
        answer(
            lambda number: runner.run(noop.kiq(number)),
            # Its own way to wait: it looks again after so many seconds.
            lambda sent: runner.run(sent.wait_result(check_interval=0.001, timeout=30)),
        )
        runner.run(broker.shutdown())


if __name__ == "__main__":
    _answer()
