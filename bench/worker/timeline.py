"""What the runs of a backlog tell about the children that ran it: who idled while tasks waited.

Pure: times in, times out. All tasks were there before the first began, so something waits until the
last one has begun. A child idles between the end of one of its runs and the beginning of the next,
and after its last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bench.peers.mark import Mark


def idle_ms(runs: Sequence[Mark], children: int) -> list[float]:
    """How long children idled while tasks waited, each time.

    A child that never ran anything idled from the first begin on.
    """
    first = min(run.began_ns for run in runs)
    last = max(run.began_ns for run in runs)
    gaps = [(first, last)] * (children - len({run.pid for run in runs}))
    for pid in {run.pid for run in runs}:
        mine = sorted((run for run in runs if run.pid == pid), key=lambda run: run.began_ns)
        gaps += [(before.at_ns, after.began_ns) for before, after in pairwise(mine)]
        gaps.append((mine[-1].at_ns, last))
    return [(min(end, last) - start) / 1e6 for start, end in gaps if start < last]
