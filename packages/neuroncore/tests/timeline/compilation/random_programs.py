"""Random programs of what toolchains rewrite: each statement kind is one that a transformation has
an opinion on, with variants that it must leave alone.

A failing case is its seed, target and version. All tiles are defined before they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random

import numpy as np

from neuroncore.program import Program, parse_program

ROWS, TRIPS = 128, 3
SPECIAL = np.array([-0.0, -0.0, 0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-45], np.float32)


def random_program(seed: int, target: str, version: str) -> Program:
    """The program of a seed."""
    return parse_program("\n".join(_Writer(Random(seed), target, version).lines()) + "\n")


def random_arguments(program: Program, seed: int) -> list[np.ndarray]:
    """Values for its parameters, -0.0, infinities, NaN and subnormal numbers among them; indices
    are in bounds, other integers large.
    """
    random = np.random.default_rng(seed)
    return [_values(random, p.name, p.shape) for p in program.parameters]


def signs(values: np.ndarray) -> np.ndarray:
    """Which numbers are negative, -0.0 too."""
    return np.signbit(values) & ~np.isnan(values)


def _values(random: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    match name:
        case "rows":
            return random.integers(0, ROWS, shape).astype(np.int32)
        case "n":
            return random.integers(-(2**30), 2**30, shape).astype(np.int32)
        case "chosen":
            return random.integers(0, 2, shape).astype(np.uint8)
    numbers = random.standard_normal(shape).astype(np.float32)
    return np.where(random.random(shape) < 0.1, random.choice(SPECIAL, shape), numbers)


class _Writer:
    def __init__(self, random: Random, target: str, version: str) -> None:
        self.random, self.target, self.version = random, target, version
        self.columns = random.choice((32, 128, 256))
        self.made = 0
        self.is_looped = random.random() < 0.7
        self.head: list[str] = []
        """Allocations ahead of the loop."""
        self.body: list[str] = []
        self.indent = "    "
        self.tiles: list[str] = []
        """Tiles of float32 or bfloat16, all of which is defined."""

    def lines(self) -> Iterator[str]:
        f, last = self.columns, "    "
        yield f'program("{self.target}", "{self.version}")'
        yield (
            f"def kernel(x: float32[128, {f}], w: float32[4, {f}], m: float32[{f}, 128], "
            f"n: int32[128, {f}], rows: int32[128, {TRIPS}], chosen: uint8[128, {f}]):"
        )
        self.statements()
        yield f"{last}out = buffer(float32[128, {f}], shared_hbm)"
        yield f"{last}transposed = buffer(float32[{f}, 128], shared_hbm)"
        yield f"{last}whole = buffer(int32[128, {f}], shared_hbm)"
        yield f"{last}dma_copy(dst=transposed[:, :], src=m[:, :])"
        yield f"{last}dma_copy(dst=whole[:, :], src=n[:, :])"
        yield from self.head
        yield from self.body
        yield f"{last}return out, transposed, whole"

    def statements(self) -> None:
        total = self.tile("float32", outside=True)
        self.add(f"dma_copy(dst={total}[:, :], src=x[:, :])")
        ballast = self.ballast()
        if self.is_looped:
            self.add(f"for i in range({TRIPS}):")
            self.indent += "    "
        self.tiles.append(total)
        outer = list(self.tiles)
        for _ in range(self.random.randint(3, 9)):
            self.random.choice(self.kinds())()
        last = self.random.choice(self.tiles)
        self.add(
            f"tensor_tensor(dst={total}[:, :], data1={total}[:, :], data2={last}[:, :], op=add)"
        )
        self.indent, self.tiles = "    ", outer
        for name in ballast:
            half = f"[:, 0:{self.columns}]"
            self.add(
                f"tensor_tensor(dst={total}[:, :], data1={total}[:, :], data2={name}{half}, op=add)"
            )
        self.add(f"dma_copy(dst=out[:, :], src={total}[:, :])")

    def kinds(self) -> list[Callable[[], None]]:
        """What writes a statement, or a few; some more often than others."""
        return [
            self.result, self.copied_result, self.chain, self.broadcast, self.load,
            self.transposing_load, self.transposing_store, self.part, self.padded_load,
            *[self.product] * 3, *[self.narrow_loop] * 2, self.gather, self.predicated,
            self.integers, self.accumulating_load, self.halves, self.reduction,
            *[self.reused_address] * 2,
        ]  # fmt: skip

    def ballast(self) -> list[str]:
        """Tiles that leave little room in SBUF or PSUM, sometimes."""
        made = []
        if self.random.random() < 0.3:
            columns = 45_056 - self.columns * self.random.randint(6, 60)
            made.append(self.tile("float32", f"128, {columns}", outside=True))
        if self.random.random() < 0.3:
            columns = 512 * self.random.randint(4, 7)
            made.append(self.tile("float32", f"128, {columns}", "psum", outside=True))
        for name in made:
            self.add(f"memset(dst={name}[:, :], value=1.0, engine=vector)")
        return made

    # -- what a statement is made of ---------------------------------------------------------------

    def add(self, line: str) -> None:
        self.body.append(self.indent + line)

    def tile(
        self, dtype: str = "", shape: str = "", space: str = "sbuf", outside: bool | None = None
    ) -> str:
        """A new tile, allocated here or, sometimes, ahead of the loop."""
        self.made += 1
        name = f"t{self.made}"
        dtype = dtype or self.random.choice(("float32", "float32", "float32", "bfloat16"))
        line = f"{name} = buffer({dtype}[{shape or f'128, {self.columns}'}], {space})"
        if self.random.random() < 0.2 if outside is None else outside:
            self.head.append("    " + line)
        else:
            self.add(line)
        return name

    def any(self) -> str:
        return self.random.choice(self.tiles)

    def maybe(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def written(self, instruction: str, dtype: str = "") -> str:
        """A new tile that an instruction fills."""
        name = self.tile(dtype)
        self.add(instruction.format(dst=f"{name}[:, :]", a=f"{self.any()}[:, :]"))
        return name

    def computed(self, dtype: str = "") -> str:
        return self.written(
            self.random.choice((
                "tensor_scalar(dst={dst}, data={a}, operand0=1.5, op0=multiply)",
                "tensor_tensor(dst={dst}, data1={a}, data2={a}, op=multiply)",
                "activation(dst={dst}, data={a}, scale=1.0, op=exp)",
                "tensor_copy(dst={dst}, src={a})",
            )),
            dtype,
        )  # fmt: skip

    # -- kinds -------------------------------------------------------------------------------------

    def result(self) -> None:
        self.tiles.append(self.computed())

    def copied_result(self) -> None:
        """The copy of a result, next or behind something that may need or change its place."""
        name = self.computed()
        place = self.any() if self.maybe() else ""
        for _ in range(self.random.choice((0, 0, 1, 2))):
            self.result()
        place = place or self.tile()
        self.add(f"tensor_copy(dst={place}[:, :], src={name}[:, :])")
        self.tiles += [place, name] if self.maybe(0.3) else [place]

    def chain(self) -> None:
        names = [self.computed(), self.tile(), self.tile()]
        for src, dst in pairwise(names):
            self.add(f"tensor_copy(dst={dst}[:, :], src={src}[:, :])")
        self.tiles.append(names[-1])

    def broadcast(self) -> None:
        row, at = self.tile("float32", f"1, {self.columns}"), self.random.randrange(4)
        self.add(f"dma_copy(dst={row}[:, :], src=w[{at}:{at + 1}, :])")
        name = self.tile("float32")
        self.add(f"dma_copy(dst={name}[:, :], src={row}.ap([[0, 128], [1, {self.columns}]]))")
        if self.maybe(0.3):
            self.add(f"dma_copy(dst=out[:, :], src={name}[:, :])")
        if self.maybe(0.3):
            self.add(f"dma_copy(dst={name}[:, :], src=x[:, :])")
        self.tiles.append(name)

    def load(self) -> None:
        self.add(f"dma_copy(dst={self.any()}[:, :], src=x[:, :])")

    def accumulating_load(self) -> None:
        name = self.written("memset(dst={dst}, value=2.0)", "float32")
        self.add(f"dma_copy(dst={name}[:, :], src=x[:, :], dst_rmw_op=add)")
        self.tiles.append(name)

    def halves(self) -> None:
        """A tile that two loads fill."""
        name, half = self.tile(), self.columns // 2
        for first, behind in ((0, half), (half, self.columns)):
            self.add(f"dma_copy(dst={name}[:, {first}:{behind}], src=x[:, {first}:{behind}])")
        self.tiles.append(name)

    def transposing_load(self) -> None:
        name = self.tile()
        self.add(f"dma_copy(dst={name}[:, :], src=m.ap([[1, 128], [128, {self.columns}]]))")
        self.tiles.append(name)

    def transposing_store(self) -> None:
        place = f"transposed.ap([[1, 128], [128, {self.columns}]])"
        self.add(f"dma_copy(dst={place}, src={self.any()}[:, :])")

    def part(self) -> None:
        """Half of a tile, on its way through another one."""
        half = self.columns // 2
        name, first = self.tile("float32", f"128, {half}"), self.random.choice((0, half))
        self.add(
            f"tensor_scalar(dst={name}[:, :], data={self.any()}[:, {first}:{first + half}], "
            "operand0=1.5, op0=add)"
        )
        self.add(f"tensor_copy(dst={self.any()}[:, 0:{half}], src={name}[:, :])")

    def padded_load(self) -> None:
        name = self.written("memset(dst={dst}, value=2.0)")
        first = self.random.choice((0, 1, 5))
        self.add(f"dma_copy(dst={name}[:, {first}:12], src=x[:, {first}:12])")
        self.tiles.append(name)

    def product(self) -> None:
        """Products that are added to a cleared tile, to all of it or to a part, once or often."""
        f, half, rows = self.columns, self.columns // 2, min(128, self.columns)
        left = self.written("tensor_copy(dst={dst}, src={a})", "bfloat16")
        name = self.tile("float32", f"{rows}, {f}", "psum")
        filled = self.random.choice((f, f, f, half))
        value = self.random.choice(("0.0", "0.0", "0.0", "1.0"))
        self.add(f"memset(dst={name}[:, 0:{filled}], value={value})")
        if filled < f:
            self.add(f"memset(dst={name}[:, {half}:{f}], value=0.0)")
        steps = f"{half}*k : {half}*k + {half}"
        columns = self.random.choice((f"0:{f}", f"0:{f}", f"0:{half}", f"{half}:{f}", steps))
        inside = ""
        if columns == steps or self.maybe():
            self.add("for k in range(2):")
            inside = "    "
        self.add(
            f"{inside}nc_matmul(dst={name}[:, {columns}], stationary={left}[:, 0:{rows}], "
            f"moving={left}[:, 0:{f if columns == f'0:{f}' else half}])"
        )
        result = self.written("memset(dst={dst}, value=0.0)")
        engine = self.random.choice(("", "", ", engine=vector"))
        self.add(f"tensor_copy(dst={result}[0:{rows}, :], src={name}[:, :]{engine})")
        self.tiles.append(result)

    def narrow_loop(self) -> None:
        """A loop over columns, in a loop, that writes elements once, or twice in some order."""
        result = self.written("memset(dst={dst}, value=0.0)")
        a, half = self.any(), self.columns // 2
        second = self.random.choice(
            (None, "c + 1 : c + 2", "c : c + 1", f"c + {half} : c + {half} + 1")
        )
        self.add("for g in range(2):")
        self.add(f"    for c in range({half}):")
        if self.maybe():
            own = self.tile("float32", "128, 3", outside=False)
            self.body[-1] = "        " + self.body[-1]
            two = f"data1={a}[:, c : c + 3], data2={self.any()}[:, 0:3]"
            self.add(f"        tensor_tensor(dst={own}[:, :], {two}, op=add)")
            self.add(f"        tensor_reduce(dst={result}[:, c : c + 1], data={own}[:, :], op=add)")
        else:
            self.add(f"        tensor_copy(dst={result}[:, c : c + 1], src={a}[:, c : c + 1])")
        if second:
            self.add(f"        tensor_copy(dst={result}[:, {second}], src={a}[:, c + 2 : c + 3])")
        self.tiles.append(result)

    def gather(self) -> None:
        """Rows that an index names which is loaded for each iteration, or once for all."""
        index = self.tile("int32", "128, 1")
        at = "i : i + 1" if self.is_looped and self.maybe() else "0:1"
        self.add(f"dma_copy(dst={index}[:, :], src=rows[:, {at}])")
        name, f = self.tile("float32"), self.columns
        self.add(
            f"dma_copy(dst={name}[:, :], "
            f"src=x.ap([[0, 128], [1, {f}]], vector_offset={index}[:, :], dim=0))"
        )
        self.tiles.append(name)

    def predicated(self) -> None:
        name = self.computed("float32")
        mask = self.tile("uint8")
        self.add(f"dma_copy(dst={mask}[:, :], src=chosen[:, :])")
        other, f = self.computed("float32"), self.columns
        self.add(
            f"tensor_copy_predicated(dst={name}[:, 0:{f}], src={other}[:, 0:{f}], "
            f"predicate={mask}[:, 0:{f}])"
        )
        self.tiles.append(name)

    def integers(self) -> None:
        """Whole numbers of 31 bits through PSUM and, in float32, through a tile."""
        first, second = self.tile("int32"), self.tile("int32")
        between = self.tile("int32", space="psum") if self.maybe() else self.tile("float32")
        self.add(f"dma_copy(dst={first}[:, :], src=n[:, :])")
        self.add(f"tensor_copy(dst={between}[:, :], src={first}[:, :], engine=vector)")
        self.add(f"tensor_copy(dst={second}[:, :], src={between}[:, :])")
        self.add(f"dma_copy(dst=whole[:, :], src={second}[:, :])")

    def reused_address(self) -> None:
        """Tiles that share bytes, one after the other."""
        f = self.columns
        for first in self.random.sample((0, 0, 4 * f, 2 * f), 2):
            self.made += 1
            name, line = f"t{self.made}", f"buffer(float32[128, {f}], sbuf, address=(0, {first}))"
            self.add(f"{name} = {line}")
            made = self.random.choice((
                "memset(dst={dst}, value=2.0)",
                "dma_copy(dst={dst}, src=x[:, :])",
                "tensor_copy(dst={dst}, src={a})",
                "activation(dst={dst}, data={a}, scale=1.0, op=exp)",
            ))  # fmt: skip
            self.add(made.format(dst=f"{name}[:, :]", a=f"{self.any()}[:, :]"))
            copy = self.tile("float32")
            self.add(f"tensor_copy(dst={copy}[:, :], src={name}[:, :])")
            self.tiles.append(copy)

    def reduction(self) -> None:
        name = self.tile("float32", "128, 1")
        self.add(f"tensor_reduce(dst={name}[:, :], data={self.any()}[:, :], op=maximum)")
        self.tiles.append(
            self.written(
                "tensor_scalar(dst={dst}, data={a}, operand0=" + name + "[:, :], op0=subtract)"
            )
        )
