"""What a kernel's orders are, by looking at every byte of every instance; no proof, no sets."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from neuroncore.program import Affine
from tokenplan.kernel.model import Access, Buffer, Kernel, Loop, Mode, Node, Op, shared_loops

Key = tuple[str, str, str, str]


@dataclass
class Instance:
    """One execution of one op."""

    op: Op
    at: dict[str, int]
    touched: dict[tuple[str, tuple[int, ...]], dict[Mode, set[int]]] = field(default_factory=dict)


def instances(kernel: Kernel) -> list[Instance]:
    """Every execution, in the order of one run."""
    return list(_run(kernel, kernel.body, {}))


def _run(kernel: Kernel, body: tuple[Node, ...], at: dict[str, int]) -> Iterator[Instance]:
    for node in body:
        if isinstance(node, Loop):
            for n in range(node.trips):
                yield from _run(kernel, node.body, at | {node.id: n})
        else:
            found = Instance(node, dict(at))
            for access in node.accesses:
                scope = tuple(at[name] for name in kernel.buffers[access.buffer].scope)
                by_mode = found.touched.setdefault((access.buffer, scope), {})
                by_mode.setdefault(access.mode, set()).update(bytes_of(access, at))
            yield found


def bytes_of(access: Access, at: dict[str, int]) -> set[int]:
    start = access.offset.constant + sum(c * at[name] for name, c in access.offset.terms)
    found = set()
    for index in product(*map(range, access.shape)):
        first = start + sum(i * s for i, s in zip(index, access.strides, strict=True))
        found.update(range(first, first + access.width))
    return set(map(access.swizzle, found)) if access.swizzle else found


def conflicts(kernel: Kernel) -> Iterator[tuple[Key, tuple[int, ...], Instance, Instance]]:
    """Every pair of executions that touch a byte in ways that do not commute."""
    run = instances(kernel)
    for n, later in enumerate(run):
        for earlier in run[:n]:
            for place, modes in earlier.touched.items():
                for a, bytes_a in modes.items():
                    for b, bytes_b in later.touched.get(place, {}).items():
                        if (a is b and a is not Mode.write) or not bytes_a & bytes_b:
                            continue
                        shared = shared_loops(earlier.op, later.op)
                        distance = tuple(later.at[n] - earlier.at[n] for n in shared)
                        key = (earlier.op.id, later.op.id, place[0], _kind(a, b))
                        yield key, distance, earlier, later


def _kind(a: Mode, b: Mode) -> str:
    if Mode.accumulate in (a, b):
        return "accumulate"
    return {(Mode.write, Mode.read): "RAW", (Mode.read, Mode.write): "WAR"}.get((a, b), "WAW")


def nearest(kernel: Kernel) -> dict[Key, tuple[int, ...]]:
    """The least distance of each order that is needed."""
    found: dict[Key, tuple[int, ...]] = {}
    for key, distance, _, _ in conflicts(kernel):
        found[key] = min(distance, found.get(key, distance))
    return found


def closure(kernel: Kernel, edges: list[tuple[str, str, tuple[int, ...]]]) -> list[int]:
    """Per execution, a bit for each that these edges put before it."""
    run = instances(kernel)
    into: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for source, sink, distance in edges:
        into.setdefault(sink, []).append((source, distance))
    before: list[int] = []
    for n, later in enumerate(run):
        bits = 0
        for source, distance in into.get(later.op.id, ()):
            for m in range(n):
                earlier = run[m]
                if earlier.op.id == source and not bits >> m & 1:
                    shared = shared_loops(earlier.op, later.op)
                    difference = tuple(later.at[x] - earlier.at[x] for x in shared)
                    if difference >= distance:
                        bits |= before[m] | 1 << m
        before.append(bits)
    return before


def random_kernel(seed: int) -> Kernel:
    """A nest of loops with accesses that often nearly meet."""
    rng = random.Random(seed)
    buffers: dict[str, Buffer] = {}
    for n in range(rng.randint(1, 2)):
        buffers[f"b{n}"] = Buffer(f"b{n}", "hbm", (rng.choice([6, 8, 16]), 8), 1)
    counter = [0]

    def body(loops: tuple[str, ...], trips: dict[str, int], depth: int) -> tuple[Node, ...]:
        nodes: list[Node] = []
        local = None
        if loops and rng.random() < 0.4:
            local = f"s{len(buffers)}"
            buffers[local] = Buffer(local, "sbuf", (2, 8), 1, loops)
        for _ in range(rng.randint(1, 3)):
            if depth < 3 and rng.random() < 0.45 and counter[0] < 5:
                name = f"l{len(trips)}_{counter[0]}_{rng.randint(0, 999)}"
                count = rng.choice([0, 1, 2, 2, 3, 3, 4, 5]) if depth < 2 else rng.choice([1, 2, 3])
                inner = body((*loops, name), trips | {name: count}, depth + 1)
                nodes.append(Loop(name, name, count, 0, 1, inner))
            else:
                counter[0] += 1
                names = ["b0", *(["b1"] if "b1" in buffers else []), *([local] if local else [])]
                accesses = tuple(
                    access(rng.choice(names), loops, trips) for _ in range(rng.randint(1, 2))
                )
                nodes.append(Op(f"op{counter[0]}", "x", "vector", loops, accesses))
        return tuple(nodes)

    def access(name: str, loops: tuple[str, ...], trips: dict[str, int]) -> Access:
        buffer = buffers[name]
        mode = rng.choice([Mode.read, Mode.read, Mode.write, Mode.write, Mode.accumulate])
        shape, strides = (), ()
        width = rng.choice([1, 2, 4, 8])
        if rng.random() < 0.5:
            shape, strides = (rng.randint(2, 3),), (rng.choice([8, 8, 4, 2, 3]),)
        terms = [
            (n, rng.choice([-8, -4, -1, 1, 2, 4, 8, 8, 16])) for n in loops if rng.random() < 0.7
        ]
        offset = Affine(0, tuple(sorted(terms)))
        low, high = offset.bounds({n: (0, max(0, trips[n] - 1)) for n in loops})
        reach = high - low + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + width
        if reach > buffer.num_bytes:
            return Access(name, mode, Affine(rng.randrange(0, 8)), (), (), 2)
        offset += rng.randint(0, buffer.num_bytes - reach) // rng.choice([1, 4]) - low
        return Access(name, mode, offset, shape, strides, width)

    return Kernel(f"random{seed}", "trn2", buffers, body((), {}, 0))
