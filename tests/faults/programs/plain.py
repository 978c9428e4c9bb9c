"""Tasks that do nothing but end."""

from __future__ import annotations

from holdfast import Holdfast

app = Holdfast()


@app.task("good")
def good(number: int) -> int:
    return number
