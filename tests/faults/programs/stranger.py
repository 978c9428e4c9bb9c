"""An application that knows none of the others' tasks."""

from __future__ import annotations

from holdfast import Holdfast

app = Holdfast()


@app.task("something-else")
def something_else() -> None:
    return None
