"""For every limit of every record two calls one step apart: inside and outside.

A step is one element more or less in one dimension or number, or one operand or attribute that is
another. It is looked for around the limit's own counterexample and around the record's first
example; limits that neither shows are in PAIRS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from neuroncore.enums import DgeMode, Engine, OobMode
from neuroncore.instructions import Call, Instruction, check
from neuroncore.instructions._example_operands import gathering, make_operand, moving
from neuroncore.isa.examples import example_call
from neuroncore.options import Options

Changes = Mapping[str, Any]

_ROWS_ONLY = {"options": Options(column_tiling="error")}
_BF16_ROWS = {"dst": "bfloat16[128, 16] sbuf"}


def _rows(dtype: str, width: int, rows: int, index: str) -> Any:
    return gathering(f"{dtype}[64, {width}] hbm", index, rows)


def _of_sizes(*shapes: tuple[str, str]) -> dict[str, Any]:
    return {name: f"float32[{shape}]" + (" psum" if name == "dst" else " sbuf")
            for name, shape in shapes}  # fmt: skip


def _planes(rows: int, columns: int) -> Any:
    """A gather of three dimensions, by an index tile of so many rows and columns."""
    pattern = [[128, rows * columns], [128, 1], [1, 128]]

    def make(core: Any) -> Any:
        index = make_operand(core, f"uint32[{rows}, {columns}] sbuf")
        return make_operand(core, "bfloat16[64, 128] hbm").ap(pattern, vector_offset=index)

    return make


def _gen4_columns(dtype: str, count: int) -> dict[str, Any]:
    return {
        "stationary": f"{dtype}[4, 3] sbuf", "moving": f"{dtype}[4, {count}] sbuf",
        "dst": f"{dtype}[3, {count}] psum", "target": "trn3",
    }  # fmt: skip


def _mx_columns(dtype: str, count: int) -> dict[str, Any]:
    return {
        "dst": f"{dtype}[2, {count}] psum", "moving": f"float8_e4m3fn_x4[32, {count}] sbuf",
        "moving_scale": f"uint8[4, {count}] sbuf",
    }  # fmt: skip


_SKIPPING: dict[str, Any] = {
    "oob_mode": OobMode.skip, "dst": "float32[4, 3] sbuf",
    "src": moving("float32[8, 4] hbm", "int32[1, 1] sbuf", 3),
}  # fmt: skip
_HWDGE: dict[str, Any] = {"dge_mode": DgeMode.hwdge}
_E4M3FN: dict[str, Any] = {
    "stationary": "float8_e4m3fn[4, 3] sbuf",
    "moving": "float8_e4m3fn[4, 5] sbuf",
}
_ADDED: dict[str, Any] = {
    "dst": "float32[4, 8] sbuf", "src1": "float32[4, 8] sbuf",
    "src0": gathering("float32[64, 8] hbm", "int32[4, 1] sbuf", 4),
}  # fmt: skip
_PE_TILE: dict[str, Any] = {"tile_position": (0, 0), "tile_size": (32, 128)}
_GEN2_TILE: dict[str, Any] = {"tile_position": (0, 0), "tile_size": (64, 128), "target": "trn1"}
_FOUR_GROUPS: dict[str, Any] = {
    "stationary": "float8_e4m3fn_x4[64, 2] sbuf", "moving": "float8_e4m3fn_x4[64, 3] sbuf",
    "stationary_scale": "uint8[36, 2] sbuf", "moving_scale": "uint8[36, 3] sbuf",
}  # fmt: skip

PAIRS: dict[tuple[str, int], tuple[Changes, Changes]] = {
    ("dma_compute", 4): (
        {"src0": "float32[4, 8] hbm"},
        {"src0": moving("float32[64, 8] hbm", "int32[1, 1] sbuf", 4)},
    ),
    ("dma_compute", 5): (_ADDED, _ADDED | {"src1": "bfloat16[4, 8] sbuf"}),
    ("dma_copy", 6): ({"target": "trn3", "priority": 1}, {"target": "trn2", "priority": 1}),
    ("dma_copy", 11): ({"target": "trn3", "priority": 3}, {"target": "trn3", "priority": 4}),
    ("dma_transpose", 10): (
        _BF16_ROWS | {"src": _rows("bfloat16", 128, 16, "uint32[16, 1] sbuf")},
        {"dst": "float32[128, 16] sbuf", "src": _rows("float32", 128, 16, "uint32[16, 1] sbuf")},
    ),
    ("dma_transpose", 12): (
        {"dst": "bfloat16[8, 16] sbuf", "src": _rows("bfloat16", 8, 16, "uint32[16, 1] sbuf")},
        {"dst": "bfloat16[8, 15] sbuf", "src": _rows("bfloat16", 8, 15, "uint32[15, 1] sbuf")},
    ),
    ("dma_transpose", 13): (
        {"dst": "bfloat16[8, 32] sbuf", "src": _rows("bfloat16", 8, 32, "uint32[32, 1] sbuf")},
        {"dst": "bfloat16[8, 32] sbuf", "src": _rows("bfloat16", 8, 32, "uint32[16, 2] sbuf")},
    ),
    ("dma_transpose", 14): (
        _BF16_ROWS | {"src": _rows("bfloat16", 128, 16, "uint32[16, 1] sbuf")},
        _BF16_ROWS | {"src": _rows("bfloat16", 128, 16, "int32[16, 1] sbuf")},
    ),
    ("dma_transpose", 16): (_SKIPPING | {"version": (0, 5)}, _SKIPPING | {"version": (0, 4)}),
    ("dma_transpose", 17): ({"target": "trn3", "priority": 1}, {"target": "trn2", "priority": 1}),
    ("dma_transpose", 18): ({"target": "trn3", "priority": 3}, {"target": "trn3", "priority": 4}),
    ("dma_transpose", 20): (
        _HWDGE | {"src": "bfloat16[16, 64] hbm", "dst": "bfloat16[64, 16] sbuf"},
        _HWDGE | {"src": "bfloat16[15, 64] hbm", "dst": "bfloat16[64, 15] sbuf"},
    ),
    ("dma_transpose", 21): (
        _HWDGE | {"src": "bfloat16[8, 2, 64] hbm", "dst": "bfloat16[64, 2, 8] sbuf"},
        _HWDGE | {"src": "bfloat16[8, 3, 64] hbm", "dst": "bfloat16[64, 3, 8] sbuf"},
    ),
    ("dma_transpose", 22): (
        _BF16_ROWS | {"src": _rows("bfloat16", 128, 16, "uint32[16, 1] sbuf"), "version": (0, 3)},
        {"dst": "bfloat16[128, 32] sbuf", "src": _rows("bfloat16", 128, 32, "uint32[16, 2] sbuf"),
         "version": (0, 3)},
    ),
    ("dma_transpose", 23): (
        {"dst": "bfloat16[128, 1, 128] sbuf", "src": _planes(128, 1), "version": (0, 2)},
        {"dst": "bfloat16[128, 1, 256] sbuf", "src": _planes(128, 2), "version": (0, 2)},
    ),
    ("local_gather", 4): (
        {"num_valid_indices": 16, "dst": "float32[16, 16, 2] sbuf"},
        {"num_valid_indices": 17, "dst": "float32[16, 17, 2] sbuf"},
    ),
    ("nc_match_replace8", 3): (
        {"data": "float32[1, 16384] sbuf", "dst": "float32[1, 16384] sbuf"},
        {"data": "float32[1, 16385] sbuf", "dst": "float32[1, 16385] sbuf"},
    ),
    ("nc_matmul", 1): (
        _of_sizes(("moving", "4, 512"), ("dst", "3, 512")),
        _of_sizes(("moving", "4, 513"), ("dst", "3, 513")),
    ),
    ("nc_matmul", 2): (
        _of_sizes(("stationary", "4, 128"), ("dst", "128, 5")),
        {"stationary": "float32[4, 129] sbuf"},
    ),
    ("nc_matmul", 4): (
        _of_sizes(("moving", "4, 512"), ("dst", "3, 512")),
        _of_sizes(("moving", "4, 513"), ("dst", "3, 513")),
    ),
    ("nc_matmul", 7): (
        {"stationary": "float8_e4m3[4, 3] sbuf", "moving": "float8_e4m3[4, 5] sbuf"},
        {"stationary": "float8_e4m3fn[4, 3] sbuf", "moving": "float8_e4m3[4, 5] sbuf"},
    ),
    ("nc_matmul", 12): (
        _ROWS_ONLY | {"tile_position": (0, 0), "tile_size": (128, 128)},
        _ROWS_ONLY | {"tile_position": (0, 0), "tile_size": (128, 64)},
    ),
    ("nc_matmul", 10): (
        {"tile_position": (32, 0), "tile_size": (32, 128)},
        {"tile_position": (16, 0), "tile_size": (32, 128)},
    ),
    ("nc_matmul", 13): (_E4M3FN | {"target": "trn3"}, _E4M3FN | {"target": "trn2"}),
    ("nc_matmul", 14): (
        _E4M3FN | {"target": "trn3", "version": (0, 4)},
        _E4M3FN | {"target": "trn3", "version": (0, 3)},
    ),
    ("nc_matmul", 16): (
        _PE_TILE | _of_sizes(("stationary", "32, 3"), ("moving", "32, 5")),
        _PE_TILE | _of_sizes(("stationary", "33, 3"), ("moving", "33, 5")),
    ),
    ("nc_matmul", 17): (_gen4_columns("float32", 4096), _gen4_columns("float32", 4097)),
    ("nc_matmul", 18): (
        _gen4_columns("bfloat16", 4096) | {"version": (0, 4)},
        _gen4_columns("bfloat16", 4097) | {"version": (0, 4)},
    ),
    ("nc_matmul", 19): (_gen4_columns("bfloat16", 8192), _gen4_columns("bfloat16", 8193)),
    ("nc_matmul", 20): (
        {"dst": "bfloat16[3, 5] psum", "target": "trn3"},
        {"dst": "float16[3, 5] psum", "target": "trn3"},
    ),
    ("nc_matmul", 22): (_PE_TILE | {"target": "trn2"}, _PE_TILE | {"target": "trn1"}),
    ("nc_matmul", 23): (
        _GEN2_TILE | _of_sizes(("stationary", "64, 3"), ("moving", "64, 5")),
        _GEN2_TILE | _of_sizes(("stationary", "65, 3"), ("moving", "65, 5")),
    ),
    ("nc_matmul_mx", 4): (
        _mx_columns("float32", 512) | {"version": (0, 4)},
        _mx_columns("float32", 513) | {"version": (0, 4)},
    ),
    ("nc_matmul_mx", 14): (
        _mx_columns("bfloat16", 1024) | {"version": (0, 4)},
        _mx_columns("bfloat16", 1025) | {"version": (0, 4)},
    ),
    ("nc_matmul_mx", 15): (_mx_columns("float32", 4096), _mx_columns("float32", 4097)),
    ("nc_matmul_mx", 16): (_mx_columns("bfloat16", 8192), _mx_columns("bfloat16", 8193)),
    ("nc_matmul_mx", 9): ({}, {"stationary_scale": "uint8[4, 2] sbuf @1"}),
    ("nc_matmul_mx", 11): ({}, {"moving_scale": "uint8[4, 3] sbuf @1"}),
    ("nc_matmul_mx", 13): (
        _FOUR_GROUPS | {"tile_position": (0, 0), "tile_size": (64, 128)},
        _FOUR_GROUPS | {"tile_position": (0, 0), "tile_size": (32, 128)},
    ),
    ("nc_transpose", 4): (
        {"data": "float32[4, 32] sbuf", "dst": "float32[32, 4] sbuf", "engine": Engine.vector},
        {"data": "float32[4, 33] sbuf", "dst": "float32[33, 4] sbuf", "engine": Engine.vector},
    ),
    ("quantize_mx", 5): ({}, {"dst_scale": "uint8[4, 2] sbuf @1"}),
    ("nonzero_with_count", 2): (
        {"index_offset": 2**31 - 4}, {"index_offset": 2**31 - 3},
    ),
    ("rand_set_state", 4): (
        {"src_seeds": "uint32[4, 24] sbuf", "engine": Engine.vector, "target": "trn3"},
        {"src_seeds": "uint32[4, 24] psum", "engine": Engine.vector, "target": "trn3"},
    ),
    ("range_select", 8): ({"range_start": 2**24 - 4}, {"range_start": 2**24 - 3}),
    ("tensor_copy_dynamic_dst", 3): ({}, {"dst": "float32[2, 2] sbuf"}),
    ("tensor_copy_dynamic_src", 0): ({}, {"dst": "float32[3, 2] sbuf"}),
    ("tensor_copy_dynamic_src", 1): ({}, {"dst": "float32[2, 3] sbuf"}),
    ("tensor_copy_dynamic_src", 3): ({}, {"src": "float32[2, 2] sbuf"}),
}  # fmt: skip
"""(record, number of the limit): inside, outside."""

_SHAPE = re.compile(r"\[([^\]]*)\]")


def call_of(record: Instruction, changes: Changes) -> Call:
    return example_call(record, record.examples[0], **changes).call


def pair_of(record: Instruction, number: int) -> tuple[Changes, Changes] | None:
    """Changes of the first example that lie just inside and just outside of a limit."""
    if (record.name, number) in PAIRS:
        return PAIRS[record.name, number]
    breaks = record.limits[number].breaks
    for inside in _steps(record, breaks):
        if _is_inside(record, inside):
            return inside, breaks
    for outside in _steps(record, _as_text(record, breaks)):
        if _is_outside(record, number, outside):
            return {}, outside
    if not _is_a_size(record, breaks):
        for left_out in breaks:
            inside = {name: value for name, value in breaks.items() if name != left_out}
            if _is_inside(record, inside):
                return inside, breaks
    return None


def _steps(record: Instruction, changes: Changes) -> Iterator[Changes]:
    """The same changes with one dimension or number one more or less."""
    for name, value in changes.items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield from ({**changes, name: value + step} for step in (-1, 1))
        if not isinstance(value, str) or name not in record.operands:
            continue
        found = _SHAPE.search(value)
        sizes = [int(n) for n in found[1].split(",")] if found else []
        for at, step in product(range(len(sizes)), (-1, 1)):
            if found and sizes[at] + step >= 1:
                shape = ", ".join(str(n + step * (i == at)) for i, n in enumerate(sizes))
                text = f"{value[: found.start(1)]}{shape}{value[found.end(1) :]}"
                yield {**changes, name: text}


def _is_inside(record: Instruction, changes: Changes) -> bool:
    return not check(call_of(record, changes))


def _is_outside(record: Instruction, number: int, changes: Changes) -> bool:
    return bool(list(record.limits[number].check(call_of(record, changes))))


def _as_text(record: Instruction, names: Changes) -> Changes:
    """The tiles of the first example that have one of these names, as text."""
    tiles = {n: spec for n, spec in call_of(record, {}).tiles.items() if n in names}
    return {
        name: f"{spec.dtype}[{', '.join(map(str, spec.shape))}] {spec.space.name}"
        for name, spec in tiles.items()
        if spec.indirect is None
    }


def _is_a_size(record: Instruction, breaks: Changes) -> bool:
    """Whether numbers alone make the counterexample one: ranks, dtypes and memories stay."""
    given, mine = call_of(record, {}).tiles, call_of(record, breaks).tiles

    def alike(name: str) -> bool:
        if name not in given or name not in mine:
            return type(breaks[name]) is int
        one, other = given[name], mine[name]
        return (one.rank, one.dtype, one.space) == (other.rank, other.dtype, other.space)

    return all(map(alike, breaks))
