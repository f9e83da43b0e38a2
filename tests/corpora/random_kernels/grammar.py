"""Random well-formed 0.1 kernels: loads, masks, index arithmetic, blocks, grids, helpers, lists."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

HEAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

"""
HELPER = """
def {name}(a, b):
    c = nl.{op}(a, b)
    return nl.multiply(c, {number})

"""
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
UNARY = ("exp", "tanh", "square", "abs", "sigmoid", "negative", "relu")
ROWS = (7, 8, 12, 30, 64, 100, 128, 200, 256, 300)
MOST_TILES = 5
INSTRUCTIONS = {"add": "np.add", "multiply": "np.multiply", "maximum": "np.maximum"}


@dataclass(frozen=True, slots=True)
class RandomKernel:
    """The text of a kernel, the shapes of its arguments, and its launch."""

    seed: int
    text: str
    shapes: tuple[tuple[int, int], ...]
    grid: tuple[int, ...] | None = None


@dataclass
class _Writer:
    """Writes one kernel; `tiles` are names of (P, F) tiles, `columns` of (P, 1) tiles."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    tiles: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    made: int = 0
    mask: str = ""
    helpers: list[str] = field(default_factory=list)

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, word: str = "t") -> str:
        self.made += 1
        return f"{word}{self.made}"

    def number(self) -> str:
        return self.rng.choice(["2.0", "0.5", "-1.5", "3", "scale", "1.0 / cols", "float(rows)"])

    def masked(self) -> str:
        return f", mask={self.mask}" if self.mask and self.rng.random() < 0.7 else ""

    def tile(self) -> str:
        return self.rng.choice(self.tiles)


def random_kernel(seed: int) -> RandomKernel:
    """The kernel of a seed."""
    rng = random.Random(seed)
    size, cols = rng.choice((4, 32, 64, 128)), rng.choice((1, 5, 16, 40, 64))
    rows = rng.choice([rows for rows in ROWS if rows <= MOST_TILES * size])
    count = rng.randint(1, 3)
    w = _Writer(rng)
    grid = _write(w, size, rows, cols, count)
    names = [f"x{i}" for i in range(count)]
    signature = ", ".join([*names, "scale=1.25"])
    helpers = "".join(w.helpers)
    body = "\n".join(w.lines)
    text = f"{HEAD}{helpers}\n@nki.jit\ndef kernel({signature}):\n{body}\n    return out\n"
    if grid is not None:
        size = "x0.shape[0] // 4" if rng.random() < 0.5 else str(grid)
        text += (
            f"\n\ndef launch({', '.join(names)}):\n    return kernel[{size}]({', '.join(names)})\n"
        )
    return RandomKernel(seed, text, ((rows, cols),) * count, None if grid is None else (grid,))


def _write(w: _Writer, size: int, rows: int, cols: int, count: int) -> int | None:
    rng = w.rng
    w.emit("rows, cols = x0.shape")
    w.emit("out = nl.ndarray((rows, cols), dtype=x0.dtype, buffer=nl.shared_hbm)")
    tiles = -(-rows // size)
    grid = None
    loop = rng.choice(["nl.affine_range", "nl.sequential_range", "nl.static_range", "range"])
    trip = _trip(rng, rows, size)
    if rows % 4 == 0 and rows // 4 <= 16 and rng.random() < 0.5:
        size, grid = 4, rows // 4
        w.emit("i = nl.program_id(0)")
    before = rng.random() < 0.5
    if before:
        _index(w, size)
    if grid is None:
        w.emit(f"for i in {loop}({trip}):")
        w.depth += 1
    if not before:
        _index(w, size)
    exact = grid is not None or rows % size == 0
    _body(w, size, cols, count, exact, tiles)
    return grid


def _trip(rng: random.Random, rows: int, size: int) -> str:
    if rows % size == 0:
        return rng.choice([f"rows // {size}", f"(rows + {size - 1}) // {size}"])
    return rng.choice(
        [
            f"(rows + {size - 1}) // {size}",
            f"-(-rows // {size})",
            f"int(np.ceil(rows / {size}))",
            f"rows // {size} + 1",
        ]
    )


def _index(w: _Writer, size: int) -> None:
    w.emit(
        w.rng.choice(
            [
                f"ip, jf = nl.mgrid[0:{size}, 0:cols]",
                f"ip, jf = nl.arange({size})[:, None], nl.arange(cols)[None, :]",
                f"ip = nl.arange({size})[:, None]; jf = nl.arange(cols)[None, :]",
            ]
        )
    )


def _body(w: _Writer, size: int, cols: int, count: int, exact: bool, tiles: int) -> None:
    rng = w.rng
    row = f"i * {size} + ip"
    if rng.random() < 0.3:
        w.emit(f"row = {row}")
        row = "row"
    if not exact or rng.random() < 0.3:
        w.mask = rng.choice(
            [
                f"({row} < rows)",
                f"(rows > {row})",
                f"({row} <= rows - 1)",
                f"(-{size} * i - ip + rows - 1 >= 0)",
                f"(({row} < rows) & (jf < cols))",
            ]
        )
        if rng.random() < 0.3:
            w.emit(f"inside = {w.mask}")
            w.mask = "inside"
    for k in range(count):
        _load(w, f"x{k}", row, size, exact)
    for _ in range(rng.randint(1, 5)):
        rng.choice(_STATEMENTS)(w, size, cols)
    value = w.tile()
    mask = f", mask={w.mask}" if w.mask else ""
    w.emit(f"nl.store(out[{row}, jf], value={value}{mask})")


def _load(w: _Writer, source: str, row: str, size: int, exact: bool) -> None:
    name = w.name()
    mask = f", mask={w.mask}" if w.mask else ""
    form = w.rng.random()
    if exact and form < 0.3:
        w.emit(f"{name} = nl.load({source}[i * {size}:(i + 1) * {size}, :])")
    elif exact and form < 0.5:
        w.emit(f"{name} = nl.load({source}[nl.ds(i * {size}, {size}), 0:cols])")
    elif form < 0.6:
        w.emit(f"{name} = nl.zeros(({size}, cols), dtype=nl.float32, buffer=nl.sbuf)")
        w.emit(f"{name}[ip, jf] = nl.load({source}[{row}, jf]{mask})")
    else:
        w.emit(f"{name} = nl.load({source}[{row}, jf]{mask})")
    w.tiles.append(name)


def _binary(w: _Writer, size: int, cols: int) -> None:
    name, a, b = w.name(), w.tile(), w.tile()
    op = w.rng.choice(BINARY)
    form = w.rng.randrange(4)
    if form == 0:
        w.emit(f"{name} = nl.{op}({a}, {b}{w.masked()})")
    elif form == 1:
        w.emit(f"{name} = {a} {w.rng.choice('+-*')} {b}")
    elif form == 2:
        op = w.rng.choice(list(INSTRUCTIONS))
        w.emit(f"{name} = nisa.tensor_tensor({a}, {b}, op={INSTRUCTIONS[op]}{w.masked()})")
    else:
        w.emit(f"{name} = nl.ndarray(({size}, cols), dtype=nl.float32, buffer=nl.sbuf)")
        w.emit(f"{name}[...] = nl.{op}({a}, {b})")
    w.tiles.append(name)


def _unary(w: _Writer, size: int, cols: int) -> None:
    name = w.name()
    w.emit(f"{name} = nl.{w.rng.choice(UNARY)}({w.tile()}{w.masked()})")
    w.tiles.append(name)


def _scalar(w: _Writer, size: int, cols: int) -> None:
    name, a = w.name(), w.tile()
    number = w.number()
    w.emit(
        w.rng.choice(
            [
                f"{name} = {a} * {number}",
                f"{name} = {number} - {a}",
                f"{name} = nl.add({a}, {number}{w.masked()})",
                f"{name} = nisa.tensor_scalar({a}, np.multiply, {number}, np.add, 0.5)",
                f"{name} = {a} / 4.0",
            ]
        )
    )
    w.tiles.append(name)


def _reduce(w: _Writer, size: int, cols: int) -> None:
    column, a = w.name("c"), w.tile()
    op, how = w.rng.choice([("max", "np.max"), ("sum", "np.add"), ("min", "np.min")])
    w.emit(
        w.rng.choice(
            [
                f"{column} = nl.{op}({a}, axis=1, keepdims=True)",
                f"{column} = nl.{op}({a}, axis=[1], keepdims=True{w.masked()})",
                f"{column} = nisa.tensor_reduce({how}, {a}, axis=[1], keepdims=True)",
            ]
        )
    )
    name = w.name()
    w.emit(f"{name} = {w.rng.choice([f'{a} - {column}', f'nl.add({a}, {column})'])}")
    w.tiles.append(name)


def _in_place(w: _Writer, size: int, cols: int) -> None:
    a = w.tile()
    w.emit(
        w.rng.choice(
            [
                f"{a}[...] = nl.multiply({a}, 2.0)",
                f"{a} += {w.tile()}",
                f"{a} = nl.add({a}, {w.tile()})",
                f"{a}[ip, jf] = nl.copy({w.tile()})",
                f"{a}[:, 0:1] = nl.copy({w.tile()}[:, cols - 1:cols])",
            ]
        )
    )


def _list(w: _Writer, size: int, cols: int) -> None:
    kept, name = w.name("kept"), w.name()
    w.emit(f"{kept} = []")
    for _ in range(2):
        made = w.name()
        w.emit(f"{made} = nl.{w.rng.choice(UNARY[:3])}({w.tile()})")
        w.emit(f"{kept}.append({made})")
    w.emit(f"{name} = nl.add({kept}[0], {kept}[1])")
    w.tiles.append(name)


def _loop(w: _Writer, size: int, cols: int) -> None:
    acc = w.name("acc")
    a = w.tile()
    w.emit(f"{acc} = nl.zeros((nl.par_dim({size}), cols), dtype=nl.float32, buffer=nl.sbuf)")
    w.emit(
        f"for k in nl.{w.rng.choice(['sequential_range', 'static_range'])}({w.rng.randint(1, 3)}):"
    )
    w.emit(
        "    "
        + w.rng.choice(
            [
                f"{acc}[...] = nl.add({acc}, {a})",
                f"{acc} += {a}",
                f"{acc}[ip, jf] = {acc}[ip, jf] + {a}[ip, jf] * 0.5",
            ]
        )
    )
    w.tiles.append(acc)


def _blocks(w: _Writer, size: int, cols: int) -> None:
    blocks, name, a = w.name("b"), w.name(), w.tile()
    count = w.rng.randint(1, 3)
    w.emit(f"{blocks} = nl.ndarray(({count}, nl.par_dim({size}), cols), dtype=nl.float32)")
    w.emit(f"for k in nl.affine_range({count}):")
    w.emit(f"    {blocks}[k] = nl.multiply({a}, 0.5)")
    w.emit(f"{name} = nl.zeros(({size}, cols), dtype=nl.float32)")
    w.emit(f"for k in nl.sequential_range({count}):")
    w.emit(f"    {name}[...] = nl.add({name}, {blocks}[k, :, :])")
    w.tiles.append(name)


def _helper(w: _Writer, size: int, cols: int) -> None:
    helper, name = w.name("helper"), w.name()
    w.helpers.append(HELPER.format(name=helper, op=w.rng.choice(BINARY), number="0.5"))
    w.emit(f"{name} = {helper}({w.tile()}, {w.tile()})")
    w.tiles.append(name)


def _condition(w: _Writer, size: int, cols: int) -> None:
    a = w.tile()
    w.emit(f"if {w.rng.choice(['cols > 8', 'scale > 1', 'rows % 2 == 0'])}:")
    w.emit(f"    {a} = nl.{w.rng.choice(UNARY[:4])}({a})")
    if w.rng.random() < 0.5:
        w.emit("else:")
        w.emit(f"    {a} = nl.multiply({a}, 0.25)")


_STATEMENTS: list[Callable[[_Writer, int, int], None]] = [
    _binary, _binary, _unary, _scalar, _reduce, _in_place, _list, _loop, _blocks, _helper,
    _condition,
]  # fmt: skip
