"""Random programs of loops whose tiles are written before, read inside and used after them.

Every statement picks its lane, its tiles and its access (a whole tile, a piece, a piece that moves
with a loop) by a seeded generator, so a failing case is its seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from neuroncore.program import Program, parse_program

TILES = ("a", "b", "c", "d")
COLUMNS = 128
PLACES = (0, 512, 768, 4096)
"""Byte addresses of the tiles where they are fixed: a, b and c share bytes."""
TRIPS = (2, 7, 40, 80, 96)
FUNCTIONS = ("exp", "tanh", "copy", "relu")
CALLS = (
    "add", "copy", "copy out of psum", "function", "clear", "multiply", "weights", "load", "store",
)  # fmt: skip


TRANSFERS = {
    "transposed load": "dma_transpose(dst={tile}[:, :], src=x[:, 0:128])",
    "accumulated store": "dma_copy(dst=out[:, {columns}], src={piece}, dst_rmw_op=add)",
    "gather": "dma_copy(dst={written}, "
    "src=x.ap([[0, 128], [1, {width}]], vector_offset=rows[:, :], dim=0))",
    "copy on chip": "dma_copy(dst={written}, src={piece})",
    "sum of tiles": "dma_compute(dst={written}, src0={piece}, src1={other}, scales=(1.0, 1.0), "
    "reduce_op=add)",
    "number on sync": "scalar_load(dst=number[:, :], src=rows[0:1, :])",
    "load by sync": "dma_copy(dst={written}, src=x[:, 0:{width}], dge_mode=hwdge, engine=sync)",
    "load by scalar": "dma_copy(dst={written}, src=x[:, 0:{width}], dge_mode=hwdge, engine=scalar)",
}
"""The other kinds of DMA, and a load of a number, which runs on the sync engine;
engines trigger DMAs from the third generation on."""


def random_program(seed: int, target: str, every_transfer: bool = False) -> Program:
    """The program of a seed; every generation gets the same statements.

    With `every_transfer` it also has TRANSFERS.
    """
    transfers = [
        kind for kind in TRANSFERS if every_transfer and not (" by " in kind and target == "trn1")
    ]
    return parse_program("\n".join(_Writer(Random(seed), target, transfers).lines()) + "\n")


class _Writer:
    def __init__(self, random: Random, target: str, transfers: Sequence[str] = ()) -> None:
        self.random, self.target = random, target
        self.calls = (*CALLS, *transfers)
        self.transfers = transfers
        self.depth = 0
        self.addressed = random.random() < 0.3
        self.width = random.choice((32, COLUMNS))
        """Columns of an access: a piece of a tile, or all of it."""
        self.made = 0
        self.kinds: list[str] = list(self.calls)
        self.steady = random.sample(TILES, 2)
        """Tiles that no loop writes."""

    def lines(self) -> Iterator[str]:
        yield f'program("{self.target}", "0.6")'
        yield "def kernel(x: float32[128, 8192]):"
        for line in self.body():
            yield "    " + line
        yield "    return out"

    def body(self) -> Iterator[str]:
        yield "out = buffer(float32[128, 8192], shared_hbm)"
        yield "w = buffer(bfloat16[128, 128], sbuf)"
        yield "p = buffer(float32[128, 128], psum)"
        for name, place in zip(TILES, PLACES, strict=True):
            fixed = f", address=(0, {place})" if self.addressed else ""
            yield f"{name} = buffer(float32[128, {COLUMNS}], sbuf{fixed})"
        if self.transfers:
            yield "rows = buffer(int32[128, 1], sbuf)"
            yield "number = buffer(int32[1, 1], hbm)"
            yield "memset(dst=rows[:, :], value=5, engine=vector)"
        for name in (*TILES, "w", "p"):
            yield self.filled(name)
        for _ in range(self.random.randint(1, 4)):
            self.kinds = self.random.sample(self.calls, self.random.randint(1, 4))
            yield from self.loop()
            self.kinds = list(self.calls)
            for _ in range(self.random.randint(0, 5)):
                yield self.call()
        yield "dma_copy(dst=out[:, 0:128], src=a[:, :])"

    def loop(self) -> Iterator[str]:
        variable = "ijk"[self.depth]
        trips = self.random.choice(TRIPS[: 2 if self.depth else None])
        yield f"for {variable} in range({trips}):"
        self.depth += 1
        for _ in range(self.random.randint(1, 3)):
            choice = self.random.random()
            if choice < 0.15 and self.depth < 3:
                lines = list(self.loop())
            elif choice < 0.3:
                lines = self.own()
            else:
                lines = [self.call()]
            yield from ("    " + line for line in lines)
        self.depth -= 1

    def own(self) -> list[str]:
        """A tile of the loop's body, filled and used."""
        self.made += 1
        name = f"t{self.made}"
        operands = f"data1={name}[:, 0:{self.width}], data2={self.piece()}"
        return [
            f"{name} = buffer(float32[128, {COLUMNS}], sbuf)",
            self.filled(name),
            f"tensor_tensor(dst={self.written()}, {operands}, op=add)",
        ]

    def filled(self, name: str) -> str:
        engine = self.random.choice(("vector", "gpsimd"))
        if name == "p":
            engine = "vector"
        if name in ("w", "p") or self.random.random() < 0.4:
            return f"memset(dst={name}[:, :], value=1.0, engine={engine})"
        return f"dma_copy(dst={name}[:, :], src=x[:, 0:{COLUMNS}])"

    def call(self) -> str:
        pick, read, write = self.random.choice, self.piece, self.written
        kind = pick(self.kinds)
        if kind in TRANSFERS:
            written, columns = write(), self.columns(256)
            return TRANSFERS[kind].format(
                tile=written[0], written=written, piece=read(), other=read(), columns=columns,
                width=self.width,
            )  # fmt: skip
        match kind:
            case "add":
                engine = pick(("vector", "gpsimd"))
                operands = f"dst={write()}, data1={read()}, data2={read()}"
                return f"tensor_tensor({operands}, op=add, engine={engine})"
            case "copy":
                return f"tensor_copy(dst={write()}, src={read()}, engine={pick(self.engines())})"
            case "copy out of psum":
                engine = pick(self.engines()[:2])
                return f"tensor_copy(dst={write()}, src=p[:, 0:{self.width}], engine={engine})"
            case "function":
                return f"activation(dst={write()}, data={read()}, scale=1.0, op={pick(FUNCTIONS)})"
            case "clear":
                return f"memset(dst={write()}, value=0.0, engine={pick(('vector', 'gpsimd'))})"
            case "multiply":
                half = pick(("0:32", "32:64"))
                return f"nc_matmul(dst=p[:, {half}], stationary=w[:, :], moving=w[:, 0:32])"
            case "weights":
                return f"tensor_copy(dst=w[:, 0:{self.width}], src={read()}, engine=vector)"
            case "load":
                return f"dma_copy(dst={write()}, src=x[:, 0:{self.width}]{self.mode()})"
            case _:
                return f"dma_copy(dst=out[:, {self.columns(256)}], src={read()}{self.mode()})"

    def engines(self) -> tuple[str, ...]:
        """Copying instructions; the first two reach PSUM."""
        second = "vector" if self.target == "trn1" else "scalar"
        return "vector", second, "gpsimd", "unknown"

    def mode(self) -> str:
        modes = ("", ", dge_mode=swdge") if self.target == "trn1" else (
            "", ", dge_mode=swdge", ", dge_mode=hwdge")  # fmt: skip
        return modes[self.random.randrange(3) % len(modes)]

    def piece(self) -> str:
        """Columns of a tile."""
        return f"{self.random.choice(TILES)}[:, {self.columns(COLUMNS)}]"

    def written(self) -> str:
        """The same of a tile that may be written here."""
        names = [name for name in TILES if not (self.depth and name in self.steady)]
        return f"{self.random.choice(names)}[:, {self.columns(COLUMNS)}]"

    def columns(self, room: int) -> str:
        """At a fixed place or, in a loop, moving with it."""
        width = self.width
        if self.depth and room > width and self.random.random() < 0.3:
            return f"i : i + {width}"
        at = self.random.choice([at for at in (0, 32, 64) if at + width <= room])
        return f"{at} : {at + width}"
