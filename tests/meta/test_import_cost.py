"""`import holdfast` costs at most twice what its two libraries cost."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

import pytest

RATIO = 2.0
ROUNDS = 15


def cost(statement: str) -> float:
    began = time.perf_counter()
    # No site-packages hooks and no coverage: only the statement.
    subprocess.run([sys.executable, "-c", statement], check=True, env={**os.environ})
    return time.perf_counter() - began


@pytest.mark.alone
def test_importing_is_cheap() -> None:
    bare: list[float] = []
    libraries: list[float] = []
    ours: list[float] = []
    for _ in range(ROUNDS):
        bare.append(cost("pass"))
        libraries.append(cost("import msgspec, apsw"))
        ours.append(cost("import holdfast"))
    # The least of many is what the import costs; the rest is what else the machine did.
    start = min(bare)
    ratio = (min(ours) - start) / (min(libraries) - start)
    print(f"import holdfast / import msgspec, apsw = {ratio:.2f} ({statistics.median(ours):.3f} s)")
    assert ratio <= RATIO
