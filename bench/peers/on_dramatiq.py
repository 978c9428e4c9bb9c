"""Dramatiq: actors on Redis, which store their results.

python -m bench.peers.on_dramatiq COUNT           put messages into the queue (see `asked`)
dramatiq --processes 2 bench.peers.on_dramatiq
"""

from __future__ import annotations

import os
from importlib import import_module

from bench.peers.asked import answer
from bench.peers.mark import mark

dramatiq = import_module("dramatiq")
_redis = import_module("dramatiq.brokers.redis")
_results = import_module("dramatiq.results")
_backends = import_module("dramatiq.results.backends")

broker = _redis.RedisBroker(url=os.environ["BENCH_URL"])
broker.add_middleware(_results.Results(backend=_backends.RedisBackend(url=os.environ["BENCH_URL"])))
dramatiq.set_broker(broker)

noop = dramatiq.actor(mark, actor_name="noop", store_results=True)


if __name__ == "__main__":
    answer(noop.send, lambda sent: sent.get_result(block=True, timeout=30_000))
