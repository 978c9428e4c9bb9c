"""One task for a unique key, whoever sends it and however many do at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast.core.status import TaskStatus
from tests.support.site import Site
from tests.support.sites import MakeSite

PROCESSES, SENDS = 8, 13
SENDER = f"""
import json, sys
from holdfast import Holdfast, Unique
app = Holdfast()
app.control.queues.list()
send = app.options(unique=Unique("k", **json.loads(sys.argv[1]))).send
print("ready", flush=True)
sys.stdin.readline()
sent = [send("any", 1) for _ in range({SENDS})]
print(json.dumps([[str(handle.id), handle.created] for handle in sent]), flush=True)
"""


@pytest.mark.parametrize(
    "unique",
    [
        {},
        pytest.param({"period": 86_400}, marks=pytest.mark.slow),
        pytest.param({"until": "deleted"}, marks=pytest.mark.slow),
    ],
)
def test_a_hundred_sends_from_eight_processes(make_site: MakeSite, unique: object) -> None:
    site: Site = make_site("tests.e2e.programs.outcomes")
    for handle in site.app.control.tasks.list().tasks:
        site.app.control.tasks.cancel(handle.id)
        site.app.control.tasks.delete(handle.id)
    senders = [
        subprocess.Popen(
            [sys.executable, "-c", SENDER, json.dumps(unique)],
            env={**os.environ, **site.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    try:
        for sender in senders:
            assert sender.stdout is not None
            assert sender.stdout.readline() == "ready\n"
        for sender in senders:
            assert sender.stdin is not None
            sender.stdin.write("go\n")
            sender.stdin.flush()
        found = []
        for sender in senders:
            answer, _ = sender.communicate(timeout=60)
            found += json.loads(answer)
    finally:
        for sender in senders:
            sender.kill()
            sender.communicate()
    assert len(found) == PROCESSES * SENDS
    assert len({id for id, _ in found}) == 1
    assert sum(created for _, created in found) == 1
    assert site.app.control.tasks.count() == {TaskStatus.PENDING: 1}
