"""Random walks: one program at a time, and nothing done for the parts that stay as they are."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from nkigym.tile_rewrites.component import Component, TileRewrite
from nkigym.tile_rewrites.enumeration import paused_collection
from nkigym.tile_rewrites.graph import Node, RewriteGraph


@dataclass(frozen=True, slots=True)
class Walked:
    """How many programs were visited, each certified; the longest schedule, and how many of them
    ended where nothing is left to do.
    """

    visited: int
    longest: list[TileRewrite]
    ends: int


def walk(space: RewriteGraph, visits: int, seed: int) -> Walked:
    """So many programs, one after the other; from the root again where nothing is left to do.

    Raises ValueError for a space of one program.
    """
    random = Random(seed)
    longest: list[TileRewrite] = []
    ends = 0
    with paused_collection():
        at = Walk(space, random)
        for _ in range(visits):
            if not at.opportunities:
                ends += 1
                at = Walk(space, random)
            at.step()
            longest = max(longest, at.schedule, key=len)
    return Walked(visits, longest, ends)


class Walk:
    """A program that goes step by step to others, each opportunity as likely as any other.

    `schedule` are the steps since the root.
    """

    def __init__(self, space: RewriteGraph, random: Random) -> None:
        self.space = space
        self.random = random
        self.schedule: list[TileRewrite] = []
        self._parts: list[Component] = list(space.root)
        self._sums = Sums([part.count for part in self._parts])

    @property
    def node(self) -> Node:
        """Where it is."""
        return tuple(self._parts)

    @property
    def opportunities(self) -> int:
        """How many steps can be taken here."""
        return self._sums.total

    def step(self) -> TileRewrite:
        """Takes one. Raises ValueError where there is none.

        Every step is certified: CertificateError where a value would change.
        """
        at, index = self._sums.find(self.random.randrange(self.opportunities))
        step = self._parts[at].step_at(index)
        for changed in self.space.take(self._parts, at, step):
            self._sums.put(changed, self._parts[changed].count)
        self.schedule.append(step)
        return step


class Sums:
    """Numbers, their sum, and where in it a position falls; changes cost a logarithm [Fenwick]."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = list(numbers)
        self.total = sum(numbers)
        self._tree = [0, *numbers]
        for at in range(1, len(self._tree)):
            above = at + (at & -at)
            if above < len(self._tree):
                self._tree[above] += self._tree[at]

    def put(self, at: int, number: int) -> None:
        """Another number in one place."""
        change = number - self.numbers[at]
        if not change:
            return
        self.numbers[at] = number
        self.total += change
        node = at + 1
        while node < len(self._tree):
            self._tree[node] += change
            node += node & -node

    def find(self, position: int) -> tuple[int, int]:
        """The place whose share of the sum contains a position, and how far into it that is."""
        at, bit = 0, 1 << len(self._tree).bit_length()
        while bit:
            if at + bit < len(self._tree) and self._tree[at + bit] <= position:
                at += bit
                position -= self._tree[at]
            bit >>= 1
        return at, position
