"""Programs of many instructions and no loop, one for each way in which they can share memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from neuroncore.program import Program, parse_program

INSTRUCTIONS = 10_000
TILE = "buffer(float32[128, 512], sbuf)"


def straight_programs() -> dict[str, Callable[[int], Program]]:
    """Name → what makes the program of about so many instructions."""
    return {name: lambda n, body=body: _program(body, n) for name, body in BODIES.items()}


def _program(body: Callable[[int], Iterator[str]], instructions: int) -> Program:
    rows = 128 * (instructions // 4) + 256
    head = (
        'program("trn2", "0.6")',
        f"def straight(a: float32[{rows}, 512], o: float32[{rows}, 512]):",
    )
    lines = [*head, *(f"    {line}" for line in body(instructions)), "    return o", ""]
    return parse_program("\n".join(lines))


def _scale(dst: str, src: str) -> str:
    return f"tensor_scalar(dst={dst}, data={src}, op0=multiply, operand0=2.0)"


def _load(dst: str, row: int) -> str:
    return f"dma_copy(dst={dst}, src=a[{128 * row} : {128 * row + 128}, :])"


def _store(row: int, src: str) -> str:
    return f"dma_copy(dst=o[{128 * row} : {128 * row + 128}, :], src={src})"


def _passes(instructions: int, tile: Callable[[int], str]) -> Iterator[str]:
    """Load, scale twice in place, store: of row after row, each through its tile."""
    for n in range(instructions // 4):
        t = f"{tile(n)}[:, :]"
        yield from (_load(t, n), _scale(t, t), _scale(t, t), _store(n, t))


def rows_through_tiles(instructions: int) -> Iterator[str]:
    tiles = instructions // 160 + 1
    yield from (f"t{n} = {TILE}" for n in range(tiles))
    yield from _passes(instructions, lambda n: f"t{n // 40}")


def tile_for_each_row(instructions: int) -> Iterator[str]:
    yield from (f"t{n} = buffer(float32[128, 4], sbuf)" for n in range(instructions // 4))
    for n in range(instructions // 4):
        t, columns = f"t{n}[:, :]", f"{4 * n % 512} : {4 * n % 512 + 4}"
        yield f"dma_copy(dst={t}, src=a[0:128, {columns}])"
        yield from (_scale(t, t), _scale(t, t))
        yield f"dma_copy(dst=o[{128 * n} : {128 * n + 128}, {columns}], src={t})"


def ring_of_slots(instructions: int) -> Iterator[str]:
    yield from (f"t{n} = {TILE}" for n in range(8))
    yield from _passes(instructions, lambda n: f"t{n % 8}")


def ring_in_one_tensor(instructions: int) -> Iterator[str]:
    yield "t = buffer(float32[128, 4096], sbuf)"
    for n in range(instructions // 4):
        slot = f"t[:, {n % 8 * 512} : {n % 8 * 512 + 512}]"
        yield from (_load(slot, n), _scale(slot, slot), _scale(slot, slot), _store(n, slot))


def one_tile_in_place(instructions: int) -> Iterator[str]:
    yield from (f"t = {TILE}", _load("t[:, :]", 0))
    yield from (_scale("t[:, :]", "t[:, :]") for _ in range(instructions - 1))


def readers_and_stores(instructions: int) -> Iterator[str]:
    yield from (f"t = {TILE}", f"s = {TILE}", _load("t[:, :]", 0))
    for n in range(instructions // 2):
        c = n * 8 % 512
        yield _scale(f"s[:, {c} : {c + 8}]", "t[:, 0:8]")
        yield f"dma_copy(dst=o[{16 * n} : {16 * n + 16}, 0:8], src=s[0:16, {c} : {c + 8}])"


def columns(instructions: int) -> Iterator[str]:
    """Every instruction takes one slice of columns of one tile to one of the other."""
    yield from (f"t = {TILE}", f"s = {TILE}", _load("t[:, :]", 0), _load("s[:, :]", 1))
    for n in range(instructions // 2 - 1):
        c, d = n * 8 % 512, n * 24 % 512
        yield _scale(f"s[:, {c} : {c + 8}]", f"t[:, {d} : {d + 8}]")
        yield _scale(f"t[:, {d} : {d + 8}]", f"s[:, {c} : {c + 8}]")


def columns_and_whole_tile(instructions: int) -> Iterator[str]:
    """Every other instruction takes all columns, the rest change four of them."""
    yield from (f"t = {TILE}", f"s = {TILE}", _load("t[:, :]", 0))
    for n in range(instructions // 2):
        c = n * 4 % 512
        yield _scale(f"t[:, {c} : {c + 4}]", f"t[:, {c} : {c + 4}]")
        yield _scale("s[:, :]", "t[:, :]")


def every_second_column(instructions: int) -> Iterator[str]:
    """Even columns and odd ones of one tile: their bytes interleave and never meet."""
    yield from (f"t = {TILE}", _load("t[:, :]", 0))
    for n in range(instructions - 1):
        c = f"t[:, {n % 2} : 512 : 2]"
        yield _scale(c, c)


def blocks(instructions: int) -> Iterator[str]:
    """Blocks of 32 partitions and 32 columns, from block to block."""
    yield from (f"t = {TILE}", f"s = {TILE}", _load("t[:, :]", 0), _load("s[:, :]", 1))
    for n in range(instructions - 2):
        one, other = ("t", "s") if n % 2 else ("s", "t")
        p, c, q, d = n * 32 % 128, n * 32 % 512, n * 96 % 128, n * 160 % 512
        yield _scale(
            f"{one}[{p} : {p + 32}, {c} : {c + 32}]", f"{other}[{q} : {q + 32}, {d} : {d + 32}]"
        )


def windows(instructions: int) -> Iterator[str]:
    """Windows of one tile that overlap in part, each to where the next ones begin."""
    yield from (f"t = {TILE}", _load("t[:, :]", 0))
    for n in range(instructions - 1):
        c, d, wide = n * 37 % 449, n * 101 % 449, 8 + n * 13 % 56
        yield _scale(f"t[:, {c} : {c + wide}]", f"t[:, {d} : {d + wide}]")


def stepped_windows(instructions: int) -> Iterator[str]:
    """Windows that take every column, every second or every third, of 32 partitions of a tile."""
    yield from (f"t = {TILE}", _load("t[:, :]", 0))
    for n in range(instructions - 1):
        wide, step, other, p = 3 + n * 13 % 61, 1 + n % 3, 1 + n // 3 % 3, 32 * (n * 7 // 3 % 4)
        c, d = n * 37 % 320, n * 101 % 320
        ends = (f"{c} : {c + (wide - 1) * step + 1} : {step}",
                f"{d} : {d + (wide - 1) * other + 1} : {other}")  # fmt: skip
        yield _scale(*(f"t[{p} : {p + 32}, {end}]" for end in ends))


def sums(instructions: int) -> Iterator[str]:
    """Chains of eight matmuls that add up in one of four PSUM banks, then copied out."""
    yield from ("x = buffer(bfloat16[128, 128], sbuf)", "y = buffer(bfloat16[128, 512], sbuf)")
    yield from (f"p{n} = buffer(float32[128, 512], psum)" for n in range(4))
    yield from (f"t = {TILE}", "memset(dst=x[:, :], value=1.0)", "memset(dst=y[:, :], value=1.0)")
    for n in range(instructions // 10):
        bank = f"p{n % 4}[:, :]"
        yield f"nc_matmul(dst={bank}, stationary=x[:, :], moving=y[:, :], accumulate=False)"
        for _ in range(7):
            yield f"nc_matmul(dst={bank}, stationary=x[:, :], moving=y[:, :], accumulate=True)"
        yield f"tensor_copy(dst=t[:, :], src={bank})"
        yield _store(n, "t[:, :]")


BODIES: dict[str, Callable[[int], Iterator[str]]] = {
    "rows through 63 tiles": rows_through_tiles,
    "a tile for each of 2,500 rows": tile_for_each_row,
    "ring of eight tiles": ring_of_slots,
    "ring in one tensor": ring_in_one_tensor,
    "one tile, in place": one_tile_in_place,
    "readers of a tile, stores": readers_and_stores,
    "columns": columns,
    "columns and all of the tile": columns_and_whole_tile,
    "every second column": every_second_column,
    "blocks": blocks,
    "overlapping windows": windows,
    "windows with steps": stepped_windows,
    "sums in PSUM": sums,
}
