"""Random affine kernels: nests up to three deep, boxes that nearly meet, scoped buffers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import prod

from neuroncore.layout import Swizzle
from neuroncore.program import Affine
from tokenplan.kernel.model import PLAIN, Access, Buffer, Kernel, Loop, Mode, Node, Op

MOST_INSTANCES = 400
_MODES = (Mode.read,) * 4 + (Mode.write,) * 3 + (Mode.accumulate,) * 2


def random_kernel(seed: int) -> Kernel:
    """The kernel of this seed: the same on every machine."""
    return _Maker(random.Random(seed)).kernel(f"random{seed}")


@dataclass
class _Maker:
    rng: random.Random
    buffers: dict[str, Buffer] = field(default_factory=dict)
    trips: dict[str, int] = field(default_factory=dict)
    ops: int = 0

    def kernel(self, name: str) -> Kernel:
        for n in range(self.rng.randint(1, 3)):
            shape = (self.rng.choice((4, 6, 16)), self.rng.choice((4, 8, 12)))
            self.buffers[f"h{n}"] = Buffer(f"h{n}", "hbm", shape, self.rng.choice((1, 2, 4)), (),
                                           self.rng.random() < 0.5)  # fmt: skip
        body = self.body((), list(self.buffers), 1)
        return Kernel(name, "trn2", self.buffers, body)

    def body(self, loops: tuple[str, ...], held: list[str], runs: int) -> tuple[Node, ...]:
        """Two or three statements; `held` are the buffers in reach, `runs` iterations around."""
        rng, nodes = self.rng, []
        if loops and rng.random() < 0.5:
            held = [*held, self.scoped(loops)]
        for _ in range(rng.randint(1 if loops else 2, 3)):
            if len(loops) < 3 and len(self.trips) < 4 and rng.random() < 0.55:
                nodes.append(self.loop(loops, held, runs))
            elif self.ops < 7:
                nodes.append(self.op(loops, held))
        return tuple(nodes)

    def scoped(self, loops: tuple[str, ...]) -> str:
        name = f"t{len(self.buffers)}"
        depth = self.rng.randint(1, len(loops))
        self.buffers[name] = Buffer(name, "sbuf", (2, 8), 2, loops[:depth])
        return name

    def loop(self, loops: tuple[str, ...], held: list[str], runs: int) -> Loop:
        name = f"i{len(self.trips)}"
        most = max(1, min(6, MOST_INSTANCES // (7 * max(1, runs))))
        trips = self.trips[name] = min(most, self.rng.choice((0, 1, 2, 2, 3, 3, 4, 5, 6)))
        start, step = self.rng.choice(((0, 1), (0, 2), (3, 1), (2, 4)))
        body = self.body((*loops, name), held, runs * trips)
        return Loop(name, name, trips, start, step, body)

    def op(self, loops: tuple[str, ...], held: list[str]) -> Op:
        self.ops += 1
        accesses = tuple(self.access(loops, held) for _ in range(self.rng.randint(1, 3)))
        return Op(f"op{self.ops}", "nop", "vector", loops, accesses)

    def access(self, loops: tuple[str, ...], held: list[str]) -> Access:
        """A tile, one whose rows overlap, a row, a single element, or all the buffer (opaque)."""
        rng, buffer = self.rng, self.buffers[self.rng.choice(held)]
        mode, row = rng.choice(_MODES), buffer.shape[-1] * buffer.itemsize
        if rng.random() < 0.04:
            return Access(buffer.id, mode, Affine(), (), (), buffer.num_bytes, "", "gather")
        if rng.random() < 0.05:
            return self.swizzled(buffer, mode, loops)
        width = rng.choice((1, 2, 4, row // 2, row))
        strides = (1, 2, 3, width, width + 1, row // 2, row, row + 1, -row, -width)
        box = [(rng.randint(1, 3), rng.choice(strides)) for _ in range(rng.choice((0, 1, 1, 2)))]
        moves = (1, 2, 4, width, -width, 2 * width, row // 2, row, -row, 2 * row)
        terms = tuple((loop, rng.choice(moves)) for loop in loops if rng.random() < 0.75)
        return self.fitted(buffer, mode, Affine(0, terms), box, width)

    def fitted(
        self, buffer: Buffer, mode: Mode, offset: Affine, box: list[tuple[int, int]], width: int
    ) -> Access:
        """The access somewhere inside its buffer; one byte of its start where it is too big."""
        low, high = offset.bounds({n: (0, max(0, t - 1)) for n, t in self.trips.items()})
        low += sum(min(0, (n - 1) * s) for n, s in box)
        high += sum(max(0, (n - 1) * s) for n, s in box) + width
        spare = buffer.num_bytes - (high - low)
        if spare < 0:
            return Access(buffer.id, mode, Affine(self.rng.randrange(4)), (), (), 1)
        at = self.rng.choice((0, spare, self.rng.randint(0, spare), spare // 2))
        shape, strides = tuple(n for n, _ in box), tuple(s for _, s in box)
        return Access(buffer.id, mode, offset + (at - low), shape, strides, width)

    def swizzled(self, buffer: Buffer, mode: Mode, loops: tuple[str, ...]) -> Access:
        """Two bytes per iteration in a buffer whose low address bits are flipped by higher ones."""
        if prod(buffer.shape) * buffer.itemsize < 32:
            return Access(buffer.id, mode, Affine(), (), (), 1)
        terms = tuple((loop, 4) for loop in loops[-1:])
        swizzle = self.rng.choice((Swizzle.xor(1, 1, 2), Swizzle.xor(2, 1, 2), PLAIN))
        return Access(buffer.id, mode, Affine(0, terms), (), (), 2, swizzle=swizzle)
