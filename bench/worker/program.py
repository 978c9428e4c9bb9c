"""The application that the measured workers run; its database comes from HOLDFAST_URL."""

from __future__ import annotations

from bench.peers.mark import mark, mark_doing
from bench.peers.work import work_of
from holdfast import Holdfast

app = Holdfast()

_short = work_of("BENCH_SHORT")
_long = work_of("BENCH_LONG")


@app.task("bench.mark")
def noop(number: int) -> int:
    return mark(number)


@app.task("bench.mark-text")
def text(number: int, content: str) -> str:
    mark(number)
    return content


@app.task("bench.short")
def short(number: int) -> int:
    return mark_doing(number, _short)


@app.task("bench.long")
def long(number: int) -> int:
    return mark_doing(number, _long)
