"""A graph of steps, laid out in columns from left to right.

Every node stands right of all it waits for. An edge that passes columns goes through places kept
free for it, so that no line crosses a node; within a column the order follows the neighbours'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Generic, TypeVar

__all__ = ["GraphEdge", "GraphLayout", "GraphNode", "lay_out"]

K = TypeVar("K", bound=Hashable)

WIDTH: Final = 188
HEIGHT: Final = 48
_ACROSS: Final = 264
_DOWN: Final = 70
_THIN: Final = 24
_EDGE: Final = 8
_SWEEPS: Final = 6


@dataclass(frozen=True, slots=True)
class GraphNode(Generic[K]):
    """Where a node stands: its upper left corner."""

    key: K
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class GraphEdge(Generic[K]):
    """A line from one node to another."""

    parent: K
    child: K
    path: str
    x: float
    """Where it ends: the middle of the child's left side."""
    y: float


@dataclass(frozen=True, slots=True)
class GraphLayout(Generic[K]):
    """All of it."""

    width: float
    height: float
    nodes: Sequence[GraphNode[K]]
    edges: Sequence[GraphEdge[K]]


class _Stop(Generic[K]):
    """A node, or a place that an edge passes."""

    __slots__ = ("above", "below", "key", "rank", "y")

    def __init__(self, key: K | None, rank: int) -> None:
        self.key = key
        self.rank = rank
        self.y = 0.0
        self.above: list[_Stop[K]] = []
        self.below: list[_Stop[K]] = []

    @property
    def room(self) -> float:
        return _THIN if self.key is None else _DOWN


def lay_out(
    keys: Sequence[K], edges: Iterable[tuple[K, K]], *, tail: Collection[K] = ()
) -> GraphLayout[K]:
    """Place nodes and draw edges; edges that close a ring, or lead nowhere, are left out. What is
    in the `tail` stands right of everything else."""
    known = set(keys)
    wanted = list(dict.fromkeys((a, b) for a, b in edges if a in known and b in known and a != b))
    ranks, wanted = _ranked(keys, wanted)
    behind = max((ranks[key] + 1 for key in keys if key not in tail), default=0)
    for key in tail:
        ranks[key] += behind
    stops = {key: _Stop(key, ranks[key]) for key in keys}
    columns: defaultdict[int, list[_Stop[K]]] = defaultdict(list)
    for key in keys:
        columns[ranks[key]].append(stops[key])
    ways: list[tuple[K, K, list[_Stop[K]]]] = []
    for parent, child in wanted:
        way = [stops[parent]]
        for rank in range(ranks[parent] + 1, ranks[child]):
            passed: _Stop[K] = _Stop(None, rank)
            columns[rank].append(passed)
            way.append(passed)
        way.append(stops[child])
        for first, second in pairwise(way):
            first.below.append(second)
            second.above.append(first)
        ways.append((parent, child, way))
    _order(columns)
    height = _stack(columns)
    return GraphLayout(
        (max(columns) if columns else 0) * _ACROSS + WIDTH + 2 * _EDGE,
        height,
        [GraphNode(key, stops[key].rank * _ACROSS + _EDGE, stops[key].y) for key in keys],
        [_edge(parent, child, way) for parent, child, way in ways],
    )


def _ranked(keys: Sequence[K], edges: list[tuple[K, K]]) -> tuple[dict[K, int], list[tuple[K, K]]]:
    """How many columns each node stands to the right, and the edges that are kept."""
    children: defaultdict[K, list[K]] = defaultdict(list)
    open_above: dict[K, int] = dict.fromkeys(keys, 0)
    for parent, child in edges:
        children[parent].append(child)
        open_above[child] += 1
    ranks: dict[K, int] = dict.fromkeys(keys, 0)
    ready = [key for key in keys if not open_above[key]]
    placed: set[K] = set()
    while ready:
        key = ready.pop(0)
        placed.add(key)
        for child in children[key]:
            ranks[child] = max(ranks[child], ranks[key] + 1)
            open_above[child] -= 1
            if not open_above[child]:
                ready.append(child)
    return ranks, [edge for edge in edges if edge[0] in placed and edge[1] in placed]


def _order(columns: defaultdict[int, list[_Stop[K]]]) -> None:
    """Each column in the order of what it hangs on, back and forth."""
    for sweep in range(_SWEEPS):
        backwards = bool(sweep % 2)
        for rank in sorted(columns, reverse=backwards):
            column = columns[rank]
            beside = columns.get(rank + 1 if backwards else rank - 1, [])
            place = {stop: at for at, stop in enumerate(beside)}
            wanted: dict[_Stop[K], float] = {}
            for at, stop in enumerate(column):
                near = stop.below if backwards else stop.above
                found = [place[other] for other in near if other in place]
                wanted[stop] = sum(found) / len(found) if found else at
            column.sort(key=wanted.__getitem__)


def _stack(columns: defaultdict[int, list[_Stop[K]]]) -> float:
    """Every column one below the other, in the middle of the highest."""
    heights = {rank: sum(stop.room for stop in column) for rank, column in columns.items()}
    most = max(heights.values(), default=0.0)
    for rank, column in columns.items():
        y = (most - heights[rank]) / 2 + _EDGE
        for stop in column:
            stop.y = y
            y += stop.room
    ends = [
        stop.y + (_THIN if stop.key is None else HEIGHT)
        for column in columns.values()
        for stop in column
    ]
    return max(ends, default=0.0) + _EDGE


def _edge(parent: K, child: K, way: Sequence[_Stop[K]]) -> GraphEdge[K]:
    parts: list[str] = []
    for first, second in pairwise(way):
        x1, y1 = first.rank * _ACROSS + _EDGE + WIDTH, _middle(first)
        x2, y2 = second.rank * _ACROSS + _EDGE, _middle(second)
        if second.key is not None:
            x2 -= 6
        bend = (x2 - x1) / 2
        if not parts:
            parts.append(f"M{x1:g} {y1:g}")
        parts.append(f"C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}")
        if second.key is None:
            parts.append(f"H{x2 + WIDTH:g}")
    last = way[-1]
    return GraphEdge(parent, child, "".join(parts), last.rank * _ACROSS + _EDGE, _middle(last))


def _middle(stop: _Stop[K]) -> float:
    return stop.y + (HEIGHT if stop.key is not None else _THIN) / 2
