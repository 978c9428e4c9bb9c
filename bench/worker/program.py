"""The application that the measured workers run; its database comes from HOLDFAST_URL."""

from __future__ import annotations

from bench.peers.mark import mark
from holdfast import Holdfast

app = Holdfast()


@app.task("bench.mark")
def noop(number: int) -> int:
    return mark(number)
