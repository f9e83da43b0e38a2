"""Two swizzles of one tensor: orders between iterations that address bits exclude."""

from random import Random

from packages.tokenplan.tests import brute_force

from neuroncore.layout import Swizzle
from neuroncore.program import Affine
from tokenplan import Parallel, analyse
from tokenplan.kernel.model import PLAIN, Access, Buffer, Kernel, Loop, Mode, Op

SWIZZLES = (PLAIN, Swizzle.xor(1, 1, 2), Swizzle.xor(2, 1, 3), Swizzle.xor(1, 2, 4))


def random_pair(seed: int) -> Kernel:
    """Two accesses in two loops, moved by powers of two that often leave address bits alone."""
    random = Random(seed)
    trips = {"i": random.choice((2, 3, 4)), "k": random.choice((1, 2, 3, 4))}

    def touch(mode: Mode) -> Access:
        steps = random.sample((1, 2, 4, 8, 16, 32), 3)
        terms = tuple((n, s) for n, s in zip("ik", steps, strict=False) if random.random() < 0.8)
        shape, strides = ((2,), (steps[2],)) if random.random() < 0.5 else ((), ())
        start = Affine(random.choice((0, 1, 4, 64, 128)), terms)
        return Access("a", mode, start, shape, strides, 1, swizzle=random.choice(SWIZZLES))

    ops = tuple(Op(name, "nop", "vector", ("i", "k"), (touch(m),))
                for name, m in (("u", Mode.write), ("v", Mode.read)))  # fmt: skip
    inner = Loop("k", "k", trips["k"], 0, 1, ops)
    buffers = {"a": Buffer("a", "hbm", (512,), 1)}
    return Kernel(f"pair{seed}", "trn2", buffers, (Loop("i", "i", trips["i"], 0, 1, (inner,)),))


def test_address_bits_exclude_no_order_that_is_needed():
    excluded = 0
    for seed in range(400):
        kernel = random_pair(seed)
        needed = brute_force.nearest(kernel)
        exact, hasty = (analyse(kernel, budget=budget).edges for budget in (200_000, 1))
        found = {(e.source, e.sink, e.buffer, e.kind): e.distance for e in exact
                 if e.status != "removed"}  # fmt: skip
        assert found == needed, seed
        removed = {(e.source, e.sink, e.buffer, e.kind) for e in hasty if e.status == "removed"}
        assert not removed & needed.keys(), seed
        excluded += sum(e.rule == "isl" and e.status == "removed" for e in hasty)
    assert excluded > 20


def claimed(step: int) -> list[str]:
    """What is said of rows that two swizzles share, in a loop that is claimed to be parallel; they
    have more bytes than a search reads."""

    def end(mode: Mode, swizzle: Swizzle) -> Access:
        start = Affine(0, (("k", step),))
        return Access("a", mode, start, (2**13,), (128,), 4, swizzle=swizzle)

    ends = {"u": end(Mode.write, SWIZZLES[1]), "v": end(Mode.read, SWIZZLES[3])}
    ops = tuple(Op(name, "nop", "dma", ("k",), (each,)) for name, each in ends.items())
    body = (Loop("k", "k", 4, 0, 1, ops),)
    kernel = Kernel("rows", "trn2", {"a": Buffer("a", "hbm", (2**20,), 1)}, body)
    return [found.text for found in analyse(kernel, [Parallel("k")]).diagnostics if found.is_error]


def test_a_claim_over_too_many_bytes_is_proved_by_address_bits():
    assert claimed(4) == claimed(8) == []


def test_a_claim_that_nothing_decides_in_time_says_what_to_do():
    (said,) = claimed(12)
    assert said == (
        "iterations of loop k are claimed to be parallel, but u and v might share bytes of a, "
        "1 of k apart; the exact search ran out of its budget: give more with --budget, or leave "
        "the claim away"
    )
