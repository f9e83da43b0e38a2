"""The checks of tile programs: against a function, against another program, by execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd, inf

import numpy as np

from neuroncore.targets import BANK_ELEMS, PARTITIONS
from nkigym.checker.findings import Finding, NotAllowedError
from nkigym.checker.functions import FUNCTIONS, Function, Inputs, Shape
from nkigym.checker.value_numbering import Numbers, atom_size, numbered, wrong_values
from nkigym.tiles.program import ALLOCATE, LOAD, STORE, Reference, Statement, TileProgram


def check_tiles(program: TileProgram, function: str = "matmul") -> list[Finding]:
    """Everything for which the program is not this function, by value numbers; nothing if it is.

    Every tile is defined before it is read, every part exists, every atom of the output is written
    exactly once, with the function's value, sums in the function's order.
    """
    if others := _other_parameters(program, function):
        return others
    reference = FUNCTIONS[function]
    made = numbered(program, reference.shapes([shape for _, shape in program.parameters]))
    return [
        *made.findings,
        *wrong_values(made, reference.values(program.parameters, made.size, made.number)),
    ]


def check_same(program: TileProgram, root: TileProgram) -> list[Finding]:
    """Everything for which the program does not give what `root` gives, by value numbers: the same
    value for each atom of each output, sums in the same order; nothing where it does.
    """
    if program.parameters != root.parameters:
        return [Finding(None, "it has other parameters")]
    if program.dtype != root.dtype:
        return [Finding(None, f"it computes in {program.dtype}, not {root.dtype}")]
    size, number = gcd(atom_size(program), atom_size(root)), Numbers()
    reference = numbered(root, None, size, number)
    if reference.findings:
        return reference.findings
    shapes = {s.output.name: s.output.shape for s in root.statements if s.operator == ALLOCATE}
    made = numbered(program, [shapes[name] for name in root.returns], size, number)
    expected = [reference.outputs[name] for name in root.returns]
    return [*made.findings, *wrong_values(made, expected)]


def check_root(program: TileProgram) -> list[Finding]:
    """Everything that is wrong with the statements of a program of any function."""
    return numbered(program).findings


def run_tiles(program: TileProgram, function: str = "matmul", seed: int = 0) -> list[Finding]:
    """The same question as check_tiles, answered by running it on integers whose sums round, all of
    the output compared to the bit.
    """
    return _other_parameters(program, function) or executed(program, FUNCTIONS[function], seed)


def _other_parameters(program: TileProgram, function: str) -> list[Finding]:
    count = len(program.parameters)
    return [] if count == 2 else [Finding(None, f"{function} takes 2 parameters, not {count}")]


# -- execution on NumPy arrays ---------------------------------------------------------------------


ROWS = {"data": (PARTITIONS, inf)}
MOST: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "nc_matmul": {"stationary": (PARTITIONS, PARTITIONS), "moving": (PARTITIONS, BANK_ELEMS)},
    "nc_transpose": {"data": (PARTITIONS, PARTITIONS)},
    "activation": ROWS,
    "tensor_scalar": {**ROWS, "operand0": (PARTITIONS, 1)},
    "tensor_tensor": {"data1": (PARTITIONS, inf), "data2": (PARTITIONS, inf)},
    "tensor_reduce": ROWS,
}
"""Extents of operands [NKI: tile limits of nc_matmul and nc_transpose; 128 partitions]."""

STRIP = 16
"""Rows of a product at once: 16 · 128 · 128 are 2¹⁸ multiplications."""


def executed(program: TileProgram, function: Function, seed: int = 0) -> list[Finding]:
    """Where the program differs from the function on integers, to the bit; nothing where equal."""
    try:
        inputs, expected = _case(program.parameters, function, seed)
    except NotAllowedError as wrong:
        return [Finding(None, str(wrong))]
    machine = _Machine(program, inputs)
    for line, statement in enumerate(program.statements):
        try:
            _TAKE.get(statement.operator, _Machine.call)(machine, statement)
        except NotAllowedError as wrong:
            return [Finding(line, str(wrong))]
    if len(program.returns) != len(expected):
        return [Finding(None, f"returns {len(program.returns)} outputs, not {len(expected)}")]
    found = (
        _difference(name, machine.outputs.get(name), array)
        for name, array in zip(program.returns, expected, strict=True)
    )
    return [Finding(None, f"{what} (seed {seed})") for what in found if what is not None]


def _difference(name: str, given: np.ndarray | None, expected: np.ndarray) -> str | None:
    """The difference of an output from the expected one."""
    if given is None or given.shape != expected.shape:
        return f"no {name} of shape {expected.shape}"
    differs = given != expected
    if not differs.any():
        return None
    row, column = np.argwhere(differs)[0]
    got, reference = given[row, column], expected[row, column]
    return f"{differs.sum()} elements differ, first {name}[{row}, {column}]: {got}, not {reference}"


@lru_cache(maxsize=8)
def _case(
    parameters: tuple[tuple[str, Shape], ...], function: Function, seed: int
) -> tuple[Inputs, Sequence[np.ndarray]]:
    """The inputs, read-only, and the outputs."""
    inputs = function.inputs(parameters, np.random.default_rng(seed))
    for array in inputs.values():
        array.flags.writeable = False
    return inputs, function.results([inputs[name] for name, _ in parameters])


@dataclass(slots=True)
class _Machine:
    program: TileProgram
    inputs: Inputs
    tiles: dict[str, np.ndarray] = field(default_factory=dict)
    outputs: dict[str, np.ndarray] = field(default_factory=dict)

    def allocate(self, statement: Statement) -> None:
        name = statement.output.name
        if name in self.outputs or name not in self.program.returns:
            raise NotAllowedError(f"{name} is there already, or is not returned")
        if name in self.tiles or name in self.inputs:
            raise NotAllowedError(f"{name} is a tile or a parameter")
        self.outputs[name] = np.full(statement.output.shape, np.nan, np.float32)

    def load(self, statement: Statement) -> None:
        source = statement.references[0]
        if source.name not in self.inputs:
            raise NotAllowedError(f"no parameter {source.name}")
        value = _part(self.inputs[source.name], source)
        match [given for name, given in statement.arguments if name != "src"]:
            case []:
                self._keep(statement, value.copy())
            case [int() as copies] if copies > 0:
                self._keep(statement, np.tile(value, (1, copies)))
            case _:
                raise NotAllowedError("a load has a number of copies, and nothing else")

    def store(self, statement: Statement) -> None:
        read, written = statement.references
        if written.name not in self.outputs:
            raise NotAllowedError(f"no tensor {written.name}")
        into, value = _part(self.outputs[written.name], written), self._tile(read)
        if into.shape != value.shape:
            raise NotAllowedError(f"{value.shape} does not fit into {into.shape}")
        if not np.isnan(into).all():
            raise NotAllowedError("an element is stored twice")
        into[...] = value

    def call(self, statement: Statement) -> None:
        given = {name: self._tile(value) for name, value in statement.operands.items()}
        for name, most in MOST.get(statement.operator, {}).items():
            if name not in given or any(
                n > m for n, m in zip(given[name].shape, most, strict=True)
            ):
                raise NotAllowedError(f"{name} is missing or larger than {most}")
        run = _RUN.get(statement.operator)
        if run is None:
            raise NotAllowedError(f"{statement.operator} is not an operator")
        try:
            value = run(**given, **statement.attributes)
        except (TypeError, KeyError, ValueError) as wrong:
            what = f"{statement.operator} does not take these operands: {wrong}"
            raise NotAllowedError(what) from None
        self._keep(statement, value)

    def _tile(self, reference: Reference) -> np.ndarray:
        if reference.name not in self.tiles:
            raise NotAllowedError(f"nothing has defined {reference.name}")
        return _part(self.tiles[reference.name], reference)

    def _keep(self, statement: Statement, value: np.ndarray) -> None:
        name = statement.output.name
        is_there = name in self.tiles or name in self.outputs or name in self.inputs
        if is_there or statement.output.shape != value.shape:
            raise NotAllowedError(f"{name} is there, or not {value.shape}")
        self.tiles[name] = value


_TAKE: dict[str, Callable[[_Machine, Statement], None]] = {
    ALLOCATE: _Machine.allocate,
    LOAD: _Machine.load,
    STORE: _Machine.store,
}


def _matmul(
    stationary: np.ndarray, moving: np.ndarray, accumulator: np.ndarray | None = None
) -> np.ndarray:
    if len(stationary) != len(moving):
        raise ValueError(f"contracts {len(stationary)} rows with {len(moving)}")
    value = _product(stationary, moving)
    if accumulator is None:
        return value
    if accumulator.shape != value.shape:
        raise ValueError(f"adds {value.shape} to {accumulator.shape}")
    return accumulator + value


def _transpose(data: np.ndarray) -> np.ndarray:
    return data.T.copy()


def _activation(
    data: np.ndarray, op: str = "copy", scale: float = 1.0, bias: float = 0.0
) -> np.ndarray:
    """In float64, rounded once."""
    return _UNARY[op](data.astype(np.float64) * scale + bias).astype(np.float32)


def _tensor_scalar(data: np.ndarray, operand0: np.ndarray, op: str = "multiply") -> np.ndarray:
    if operand0.shape != (len(data), 1):
        raise ValueError(f"{operand0.shape} is not a column of {data.shape}")
    return _BINARY[op](data, operand0)


def _tensor_tensor(data1: np.ndarray, data2: np.ndarray, op: str = "add") -> np.ndarray:
    if data1.shape != data2.shape:
        raise ValueError(f"works on {data1.shape} and {data2.shape} together")
    return _BINARY[op](data1, data2)


def _tensor_reduce(data: np.ndarray, op: str = "add") -> np.ndarray:
    """In float64, rounded once."""
    return _BINARY[op].reduce(data.astype(np.float64), axis=1, keepdims=True).astype(np.float32)


_UNARY: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "copy": np.array, "square": np.square, "exp": np.exp, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip

_BINARY: Mapping[str, np.ufunc] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum,
}  # fmt: skip

_RUN: Mapping[str, Callable[..., np.ndarray]] = {
    "nc_matmul": _matmul,
    "nc_transpose": _transpose,
    "activation": _activation,
    "tensor_scalar": _tensor_scalar,
    "tensor_tensor": _tensor_tensor,
    "tensor_reduce": _tensor_reduce,
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
