"""Every program that steps reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nkigym.space.space import Node, Space


@dataclass(frozen=True, slots=True)
class Found:
    """The programs with the number of steps that lead to each, and how many steps were taken."""

    depths: Mapping[Node, int]
    transitions: int


def exhaust(space: Space) -> Found:
    """Every program of the space, breadth first; every step of every one is taken."""
    depths = {space.root: 0}
    todo = [space.root]
    transitions = 0
    for node in todo:
        depth = depths[node] + 1
        for child in space.children(node):
            transitions += 1
            if child not in depths:
                depths[child] = depth
                todo.append(child)
    return Found(depths, transitions)
