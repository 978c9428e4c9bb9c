"""Graphs: everything right of what it waits for, nothing on top of anything else."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest

from holdfast.web.drawing.graph import HEIGHT, WIDTH, lay_out


def check(keys: list[int], edges: list[tuple[int, int]]) -> None:
    layout = lay_out(keys, edges)
    places = {node.key: (node.x, node.y) for node in layout.nodes}
    assert sorted(places) == sorted(keys)
    for parent, child in edges:
        assert places[child][0] >= places[parent][0] + WIDTH
    boxes = sorted(places.values())
    for (x, y), (other_x, other_y) in pairwise(boxes):
        assert x != other_x or other_y - y >= HEIGHT
    for x, y in boxes:
        assert 0 <= x <= layout.width - WIDTH
        assert 0 <= y <= layout.height - HEIGHT


def test_a_chain_a_fork_and_a_lone_step() -> None:
    check([1, 2, 3, 4, 5], [(1, 2), (2, 3), (1, 4), (4, 3)])


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(seed: int) -> None:
    chance = random.Random(seed)
    keys = list(range(chance.randint(1, 40)))
    edges = [(a, b) for b in keys for a in range(b) if chance.random() < 0.15]
    check(keys, edges)


def test_nothing() -> None:
    nothing: list[int] = []
    layout = lay_out(nothing, [])
    assert (layout.nodes, layout.edges) == ([], [])


def test_rings_and_strangers_are_left_out() -> None:
    layout = lay_out([1, 2, 3], [(1, 2), (2, 1), (3, 3), (3, 9)])
    assert len(layout.nodes) == 3
    assert layout.edges == []


def test_a_long_edge_passes_between() -> None:
    layout = lay_out([1, 2, 3], [(1, 2), (2, 3), (1, 3)])
    assert len(layout.edges) == 3
    long = next(edge for edge in layout.edges if (edge.parent, edge.child) == (1, 3))
    assert long.path.count("C") == 2
    assert "H" in long.path


def test_a_long_edge_below_all_nodes_is_inside() -> None:
    layout = lay_out([1, 2, 3], [(1, 2), (2, 3), (1, 3)])
    long = next(edge for edge in layout.edges if (edge.parent, edge.child) == (1, 3))
    assert all(0 < y < layout.height for y in heights(long.path))


def heights(path: str) -> list[float]:
    """The y of each point of a path; what a line leads along has none."""
    curves = re.sub(r"H[\d.]+", "", path)
    return [float(y) for y in re.findall(r"-?[\d.]+", curves)[1::2]]


def test_what_waits_for_the_end_stands_right_of_everything() -> None:
    layout = lay_out([1, 2, 3, 4, 5], [(1, 2), (4, 5)], tail={4, 5})
    places = {node.key: node.x for node in layout.nodes}
    assert places[1] == places[3] < places[2] < places[4] < places[5]
    assert [node.x for node in lay_out([1], [], tail={1}).nodes] == [places[1]]
