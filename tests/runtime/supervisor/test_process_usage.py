"""What the processes of a worker use, as the system tells."""

from __future__ import annotations

import os
import subprocess
import sys
from time import process_time

from holdfast.runtime.supervisor.process_usage import UsageMeter, cpu_seconds, megabytes


def test_a_process_that_works_and_one_that_does_not_exist() -> None:
    meter = UsageMeter()
    until = process_time() + 0.05
    while process_time() < until:
        pass
    mine, none = meter.look([("me", os.getpid()), ("nobody", 2**22 + 1)])
    assert (mine.name, mine.pid) == ("me", os.getpid())
    assert mine.memory_mb > 5
    assert mine.cpu_percent is not None
    assert mine.cpu_percent > 0
    assert (none.memory_mb, none.cpu_percent) == (0.0, None)
    assert megabytes(None) == 0.0


def test_what_was_used_before_is_not_counted_again() -> None:
    meter = UsageMeter()
    with subprocess.Popen(
        [sys.executable, "-c", "sum(range(10**6)); print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as idle:
        assert idle.stdout is not None
        idle.stdout.readline()
        try:
            (first,) = meter.look([("idle", idle.pid)])
            (then,) = meter.look([("idle", idle.pid)])
            spent = cpu_seconds(idle.pid)
        finally:
            idle.kill()
    assert first.cpu_percent is not None
    assert first.cpu_percent > 0
    assert then.cpu_percent == 0
    assert spent is not None
    assert spent > 0
