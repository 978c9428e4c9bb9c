"""A schedule whose runs are longer than the time between its ticks."""

from __future__ import annotations

import time

from holdfast import Holdfast
from tests.support.ledger import note

app = Holdfast()


@app.schedule("* * * * * *", overlap="wait")
@app.task("long")
def long() -> None:
    note("begun", "long")
    time.sleep(1.3)
    note("ended", "long")
