"""Runs a tile program on NumPy arrays, statement by statement, as a machine without mercy would.

The output begins as NaN, so that what is not stored shows; an element that is stored twice, a tile
that nothing defined, and a part that there is not are mistakes, also where nobody would notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from nkigym.checker.findings import Finding, NotAllowedError
from nkigym.checker.functions import Function, Inputs, Shape
from nkigym.tiles.program import ALLOCATE, LOAD, STORE, Reference, Statement, TileProgram

MOST = {"nc_matmul": {"stationary": (128, 128), "moving": (128, 512)}}
"""Extents of operands [NKI: nc_matmul, tile limits]."""

STRIP = 16
"""Rows of a product at once: 16 · 128 · 128 are 2¹⁸ multiplications."""


def executed(program: TileProgram, function: Function, seed: int = 0) -> list[Finding]:
    """Where the program differs from the function on integers, to the bit; nothing where equal."""
    inputs, wanted = _case(program.parameters, function, seed)
    machine = _Machine(program, inputs)
    for line, statement in enumerate(program.statements):
        try:
            _TAKE.get(statement.operator, _Machine.call)(machine, statement)
        except NotAllowedError as wrong:
            return [Finding(line, str(wrong))]
    if machine.output is None or machine.output.shape != wanted.shape:
        return [Finding(None, f"no output of shape {wanted.shape}")]
    differs = machine.output != wanted
    if not differs.any():
        return []
    row, column = np.argwhere(differs)[0]
    got, expected = machine.output[row, column], wanted[row, column]
    what = f"{differs.sum()} elements differ, first output[{row}, {column}]: {got}, not {expected}"
    return [Finding(None, f"{what} (seed {seed})")]


@lru_cache(maxsize=8)
def _case(
    parameters: tuple[tuple[str, Shape], ...], function: Function, seed: int
) -> tuple[Inputs, np.ndarray]:
    """Inputs, which nobody writes, and the output."""
    inputs = function.inputs(parameters, np.random.default_rng(seed))
    for array in inputs.values():
        array.flags.writeable = False
    return inputs, function.result([inputs[name] for name, _ in parameters])


@dataclass(slots=True)
class _Machine:
    program: TileProgram
    inputs: Inputs
    tiles: dict[str, np.ndarray] = field(default_factory=dict)
    output: np.ndarray | None = None

    def allocate(self, statement: Statement) -> None:
        if self.output is not None:
            raise NotAllowedError(f"{statement.output.name} is there already")
        self.output = np.full(statement.output.shape, np.nan, np.float32)

    def load(self, statement: Statement) -> None:
        source = statement.references[0]
        if source.name not in self.inputs:
            raise NotAllowedError(f"no parameter {source.name}")
        self._keep(statement, _part(self.inputs[source.name], source).copy())

    def store(self, statement: Statement) -> None:
        read, written = statement.references
        if self.output is None or written.name != self.program.returns:
            raise NotAllowedError(f"no tensor {written.name}")
        into, value = _part(self.output, written), self._tile(read)
        if into.shape != value.shape:
            raise NotAllowedError(f"{value.shape} does not fit into {into.shape}")
        if not np.isnan(into).all():
            raise NotAllowedError("an element is stored twice")
        into[...] = value

    def call(self, statement: Statement) -> None:
        given = {n: self._tile(v) for n, v in statement.arguments if isinstance(v, Reference)}
        for name, most in MOST.get(statement.operator, {}).items():
            if name not in given or any(
                n > m for n, m in zip(given[name].shape, most, strict=True)
            ):
                raise NotAllowedError(f"{name} is missing or larger than {most}")
        if statement.operator not in MOST or len(given["stationary"]) != len(given["moving"]):
            raise NotAllowedError(f"{statement.operator} does not take these operands")
        value = _product(given["stationary"], given["moving"])
        sums = given.get("accumulator")
        if sums is not None and sums.shape != value.shape:
            raise NotAllowedError(f"adds {value.shape} to {sums.shape}")
        self._keep(statement, value if sums is None else sums + value)

    def _tile(self, reference: Reference) -> np.ndarray:
        if reference.name not in self.tiles:
            raise NotAllowedError(f"nothing has defined {reference.name}")
        return _part(self.tiles[reference.name], reference)

    def _keep(self, statement: Statement, value: np.ndarray) -> None:
        if statement.output.name in self.tiles or statement.output.shape != value.shape:
            raise NotAllowedError(f"{statement.output.name} is there, or not {value.shape}")
        self.tiles[statement.output.name] = value


_TAKE: dict[str, Callable[[_Machine, Statement], None]] = {
    ALLOCATE: _Machine.allocate,
    LOAD: _Machine.load,
    STORE: _Machine.store,
}


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left.T @ right, strip by strip: so small that BLAS starts no threads, which take 30 times as
    long as the product where the machine is busy.
    """
    strips = [left[:, at : at + STRIP].T.copy() for at in range(0, left.shape[1], STRIP)]
    return np.concatenate([strip @ right for strip in strips])


def _part(array: np.ndarray, reference: Reference) -> np.ndarray:
    for (start, stop), extent in zip(reference.intervals, array.shape, strict=True):
        if not 0 <= start < stop <= extent:
            raise NotAllowedError(f"{reference.name} is {array.shape}: no part [{start}, {stop})")
    return array[tuple(slice(*interval) for interval in reference.intervals)]
