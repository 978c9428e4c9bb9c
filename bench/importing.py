"""What `import holdfast` costs, against the two libraries it needs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter

from bench.figure import Figure, Sizes, at_most
from bench.place import Places


def importing(places: Places, sizes: Sizes) -> Iterator[Figure]:
    """Seconds beyond those of an interpreter that imports nothing; the least of many."""
    del places
    statements = {"nothing": "pass", "libraries": "import msgspec, apsw", "ours": "import holdfast"}
    least = dict.fromkeys(statements, float("inf"))
    for _ in range(sizes.imports):
        for name, statement in statements.items():
            began = perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            least[name] = min(least[name], perf_counter() - began)
    ours = least["ours"] - least["nothing"]
    libraries = least["libraries"] - least["nothing"]
    yield at_most(
        "import holdfast, of import msgspec, apsw",
        "–",
        ours / libraries,
        2.0,
        detail=f"{ours * 1e3:.0f} ms against {libraries * 1e3:.0f} ms",
    )
