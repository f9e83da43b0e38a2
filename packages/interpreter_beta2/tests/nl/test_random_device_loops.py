"""Random kernels with device loops: 0.7, which traces bodies, against 0.6, which runs them."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
from packages.interpreter_beta2.tests.conftest import speaker

from neuroncore.checks import watching
from neuroncore.instructions import KernelWarning

ROWS, COLUMNS = 4, 8
KERNELS = 60


class Body:
    """A random body: statements that use the tensors and loop variables in reach."""

    def __init__(self, draw: random.Random, depth: int) -> None:
        names = [
            "add_row",
            "local",
            "matmul",
            "store",
            "fill",
            "register",
            "register",
            "function",
            "host",
        ]
        if depth:
            names += ["loop", "loop", "until", "unrolled"]
        self.statements = [
            (draw.choice(names), draw.randrange(1000)) for _ in range(draw.randint(1, 4))
        ]
        self.inner = [Body(draw, depth - 1) for _ in self.statements] if depth else []

    def emit(self, lang, state, variables):
        for number, (name, seed) in enumerate(self.statements):
            inner = self.inner[number] if self.inner else None
            getattr(self, name)(lang, state, variables, random.Random(seed), inner)

    def at(self, variables, draw):
        return draw.choice(variables) if variables else None

    def rows(self, lang, tensor, variables, draw):
        offset = self.at(variables, draw)
        pattern = [[COLUMNS, 1], [1, COLUMNS]]
        return tensor.ap(pattern, scalar_offset=offset) if offset is not None else tensor[0:1]

    def add_row(self, lang, state, variables, draw, inner):
        row = lang.nl.ndarray((1, COLUMNS), lang.nl.float32)
        lang.nisa.dma_copy(row, self.rows(lang, state["x"], variables, draw))
        lang.nisa.tensor_tensor(state["total"], state["total"], row, lang.nl.add)

    def local(self, lang, state, variables, draw, inner):
        """A tensor of the body that is written in parts, then read as a whole."""
        tile = lang.nl.ndarray((1, COLUMNS), lang.nl.float32)
        half = draw.randint(1, COLUMNS - 1)
        lang.nisa.memset(tile[:, 0:half], float(draw.randrange(5)))
        if draw.random() < 0.7:
            lang.nisa.tensor_copy(tile[:, half:COLUMNS], state["total"][:, half:COLUMNS])
        lang.nisa.tensor_tensor(state["total"], tile, state["total"], lang.nl.subtract)

    def matmul(self, lang, state, variables, draw, inner):
        psum = lang.nl.ndarray((1, COLUMNS), lang.nl.float32, buffer=lang.nl.psum)
        for _ in range(draw.randint(1, 2)):
            lang.nisa.nc_matmul(psum, state["one"], state["total"])
        lang.nisa.tensor_copy(state["total"], psum)

    def store(self, lang, state, variables, draw, inner):
        lang.nisa.dma_copy(self.rows(lang, state["out"], variables, draw), state["total"])

    def fill(self, lang, state, variables, draw, inner):
        tile = lang.nl.full((1, COLUMNS), draw.randrange(4), lang.nl.float32)
        lang.nisa.tensor_tensor(state["total"], state["total"], tile, lang.nl.add)

    def register(self, lang, state, variables, draw, inner):
        """A register that persists from turn to turn is stored and loaded again."""
        cell = lang.nl.ndarray((1, 1), lang.nl.int32)
        lang.nisa.register_store(cell, state["register"])
        lang.nisa.tensor_scalar(cell, cell, lang.nl.add, float(draw.randrange(3)))
        lang.nisa.register_load(state["register"], cell)
        if draw.random() < 0.3:
            number = lang.nisa.register_alloc(draw.randrange(4))
            lang.nisa.register_move(state["register"], number)
        counted = lang.nl.ndarray((1, COLUMNS), lang.nl.int32)
        lang.nisa.iota(counted, [[1, COLUMNS]], offset=state["register"])
        row = lang.nl.ndarray((1, COLUMNS), lang.nl.float32)
        lang.nisa.tensor_copy(row, counted)
        lang.nisa.tensor_tensor(state["total"], state["total"], row, lang.nl.add)

    def function(self, lang, state, variables, draw, inner):
        made = lang.nl.add(state["total"], lang.nl.ones((1, COLUMNS), lang.nl.float32))
        lang.nisa.tensor_copy(state["total"], lang.nl.multiply(made, 0.5))

    def host(self, lang, state, variables, draw, inner):
        memory = lang.nl.zeros((1, COLUMNS), lang.nl.float32, buffer=lang.nl.private_hbm)
        lang.nisa.dma_copy(memory[:, 0:2], state["total"][:, 0:2])
        lang.nisa.dma_copy(self.rows(lang, state["out"], variables, draw), memory)

    def unrolled(self, lang, state, variables, draw, inner):
        for _ in range(2):
            inner.emit(lang, state, variables)

    def loop(self, lang, state, variables, draw, inner):
        start, stop, step = draw.randint(0, 1), draw.randint(0, ROWS), draw.randint(1, 2)
        low = draw.choice([start, *variables])
        bounded = lang.nisa.register_alloc(stop)
        lang.nisa.register_load(bounded, lang.nl.full((1, 1), stop, lang.nl.int32))
        high = draw.choice([stop, bounded])
        lang.nl.fori_loop(low, high, lambda i: inner.emit(lang, state, [*variables, i]), step)

    def until(self, lang, state, variables, draw, inner):
        left = lang.nl.full((1, 1), draw.randint(0, 2), lang.nl.int32)

        def body(register):
            inner.emit(lang, state, variables)
            lang.nisa.tensor_scalar(left, left, lang.nl.subtract, 1.0)
            following = lang.nisa.register_alloc()
            lang.nisa.register_load(following, left)
            return following

        first = lang.nisa.register_alloc()
        lang.nisa.register_load(first, left)
        lang.nl.while_loop(first, body)


def kernel_of(lang, body):
    nl, nisa = lang.nl, lang.nisa

    @lang.nki.jit
    def kernel(x):
        out = nl.zeros((ROWS, COLUMNS), nl.float32, buffer=nl.shared_hbm)
        one = nl.full((1, 1), 1.0, nl.float32)
        total = nl.zeros((1, COLUMNS), nl.float32)
        state = {"x": x, "out": out, "one": one, "total": total}
        state["register"] = nisa.register_alloc(2)
        body.emit(lang, state, [])
        cell, count = nl.ndarray((1, 1), nl.int32), nl.ndarray((1, 1), nl.float32)
        nisa.register_store(cell, state["register"])
        nisa.tensor_copy(count, cell)
        nisa.tensor_scalar(total, total, nl.add, count)
        nisa.dma_copy(out[0:1], total)
        return out

    return kernel


def outcome(version, body, x):
    """The result, and what `memory` finds, as (message, instruction)."""
    lang = speaker(version, dynamic_turns=1 << 12)
    with watching("memory") as report, warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWarning)
        result = kernel_of(lang, body)(x)
    unwatched = kernel_of(lang, body)(x)
    assert result.tobytes() == unwatched.tobytes()
    return result, sorted({(f.message, f.instruction) for f in report})


@pytest.mark.parametrize("seed", range(KERNELS))
def test_traced_bodies_give_what_bodies_give_that_run_every_turn(seed):
    body = Body(random.Random(f"device loops {seed}"), depth=3)
    x = np.random.default_rng(seed).integers(-3, 4, (ROWS, COLUMNS)).astype(np.float32)

    by_turn, findings = outcome("0.6", body, x)
    traced, traced_findings = outcome("0.7", body, x)

    assert traced.tobytes() == by_turn.tobytes()
    assert traced_findings == findings
