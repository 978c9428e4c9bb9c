"""Tasks that come in great number, of lengths that the sender chooses."""

from __future__ import annotations

import os
import time

from holdfast import Holdfast
from tests.support.ledger import gate, is_open, note

app = Holdfast()


@app.task("nap")
def nap(name: int, seconds: float) -> None:
    note("begun", name)
    time.sleep(seconds)
    note("ended", name)


@app.task("other-nap")
def other_nap(name: str, seconds: float) -> None:
    note("begun", name)
    time.sleep(seconds)
    note("ended", name)


@app.task("once", at_most_once=True)
def once(name: str) -> None:
    note("begun", name)
    time.sleep(0.02)
    note("ended", name)


@app.task("dies")
def dies(name: str) -> None:
    note("begun", name)
    if not is_open(name):
        os._exit(3)


@app.task("gated")
def gated(name: str) -> None:
    gate(name)
    note("ended", name)
