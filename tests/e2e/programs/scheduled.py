"""Tasks that schedules send."""

from __future__ import annotations

from holdfast import Holdfast, current_task
from tests.support.ledger import note

app = Holdfast()


@app.schedule("* * * * * *", name="every-second", overlap="allow")
@app.task("stamp")
def stamp(name: str = "declared") -> None:
    tick = current_task().tick
    note(name, None if tick is None else tick.timestamp())
