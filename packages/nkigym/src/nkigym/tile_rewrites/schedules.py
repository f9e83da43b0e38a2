"""All reuse as one entry of a schedule, and the way down to where nothing is left to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nkigym.tile_rewrites.component import TileRewrite
from nkigym.tile_rewrites.graph import Node, RewriteGraph
from nkigym.tile_rewrites.kinds import REUSE
from nkigym.tile_rewrites.loads import Loads

REUSE_ALL = "reuse all"


class SharedLoads(NamedTuple):
    """Every group of loads of one slice, each shared by its first member.

    Groups are disjoint, and inside a group the end does not depend on the order, so one entry
    represents any order of its single rewrites.
    """

    kind: str
    groups: tuple[tuple[int, ...], ...]

    def singles(self) -> Iterator[TileRewrite]:
        """The same, step by step."""
        for first, *others in self.groups:
            for other in others:
                yield TileRewrite(REUSE, first, other)


Entry = SharedLoads | TileRewrite


def share_all_loads(space: RewriteGraph, node: Node) -> tuple[Node, SharedLoads]:
    """The program in which no slice is loaded twice."""
    parts = list(node)
    groups: list[tuple[int, ...]] = []
    for at, part in enumerate(node):
        if isinstance(part, Loads):
            shared = [group for group in part.groups.values() if len(group) > 1]
            if shared:
                groups += shared
                space.put(parts, at, *part.shared())
    return tuple(parts), SharedLoads(REUSE_ALL, tuple(groups))


def replay(space: RewriteGraph, entries: Iterable[Entry]) -> Node:
    """The program after a schedule. Raises KeyError where a step of it is none."""
    node = space.root
    for entry in entries:
        for step in entry.singles() if isinstance(entry, SharedLoads) else (entry,):
            node = space.after(node, step)
    return node


def descend(space: RewriteGraph) -> tuple[Node, list[Entry]]:
    """Share everything, then merge what comes first in the list, until nothing is left to do.

    Gives the program and the schedule that leads to it.
    """
    parts = list(space.root)
    entries: list[Entry] = []
    waiting = set(range(len(parts)))
    while waiting:
        node, batch = share_all_loads(space, tuple(parts))
        if batch.groups:
            entries.append(batch)
            parts = list(node)
            waiting = set(range(len(parts)))
        at = min(waiting)
        if parts[at].count:
            step = parts[at].step_at(0)
            waiting.update(space.take(parts, at, step))
            entries.append(step)
        else:
            waiting.remove(at)
    return tuple(parts), entries
