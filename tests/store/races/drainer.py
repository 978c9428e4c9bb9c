"""One of many processes that drain a queue: claims, starts, completes, until nothing is left.

    python -m tests.store.races.drainer URL SCHEMA

Says "ready", waits for a line, and then prints the ids of the tasks it has run, one each line.
"""

from __future__ import annotations

import sys

from holdfast.core.records import Answer
from holdfast.store.open import open_store
from holdfast.store.settings import parse_url
from holdfast.store.verbs import claims, finish
from tests.support.verbs import HOST, KNOWN, LEASE_US, PROCESS, QUEUE, new_token

BATCH = 50


def main(url: str, schema: str) -> None:
    store = open_store(parse_url(url, schema=schema or None))
    print("ready", flush=True)
    sys.stdin.readline()
    run: list[str] = []
    while True:
        token = new_token()
        claimed = store.run(
            claims.claim(
                claims.Request(
                    token=token,
                    worker_id=token.hex(),
                    queue=QUEUE,
                    known=[KNOWN],
                    wanted=BATCH,
                    lease_us=LEASE_US,
                )
            )
        )
        if not claimed.tasks:
            break
        begins = [claims.Begin(task.key, token, 1, PROCESS) for task in claimed.tasks]
        started = store.run(claims.start(begins, hostname=HOST))
        done = [finish.Completion(task.key, token, "null", 1) for task in claimed.tasks]
        ended = store.run(finish.complete(done))
        for task in claimed.tasks:
            assert started[task.key].answer is Answer.LANDED, task
            assert ended[task.key].answer is Answer.LANDED, task
            run.append(task.id.hex())
    store.close()
    # Only now: whoever has not read a full pipe yet would stop us in the middle.
    print("\n".join(run))


if __name__ == "__main__":
    main(*sys.argv[1:])
