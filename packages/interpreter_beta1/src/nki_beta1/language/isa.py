"""nisa: every instruction of the machine under its 0.1 signature, giving its result."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from neuroncore.enums import (
    DgeMode,
    Engine,
    MatmulPerfMode,
    MemorySpace,
    NcVersion,
    OobMode,
    ReduceCmd,
)
from neuroncore.errors import ShapeError, SignatureError
from neuroncore.instructions import INSTRUCTIONS, Instruction
from neuroncore.machine.launch import running
from neuroncore.memory import View
from neuroncore.spec import as_dtype
from neuroncore.surface import instruction_names, signature
from nki_beta1.access.access import Access
from nki_beta1.call import elementwise
from nki_beta1.call.apply import (
    apply,
    cut,
    not_rectangular,
    on_chip_shape,
    parts_of,
    reduce_axes,
)
from nki_beta1.call.iota import affine_pattern
from nki_beta1.call.masked_operands import copy_by_dma, masked_matmul
from nki_beta1.execution.core import core_of
from nki_beta1.execution.emission import emit, run
from nki_beta1.execution.operands import mismatch
from nki_beta1.execution.plans import usage
from nki_beta1.index.mask import Mask, Region, region_of
from nki_beta1.language.constants import Limits
from nki_beta1.language.signatures import Body, function_of
from nki_beta1.language.transfers import in_dtype
from nki_dtypes import float32


def _plain(record: Instruction) -> Body:
    """An instruction whose 0.1 parameters are the record's, with dtype= and mask= added."""
    inputs = [f for f in record.operands if f != record.outputs[0]]
    over = next(f for f in inputs if record.operands[f].tile)  # whose axes a mask is about

    def body(given: dict[str, Any]) -> Any:
        return apply(
            record.name,
            {f: _number(given.get(f)) for f in inputs},
            {f: v for f, v in given.items() if f in record.attrs},
            over=over,
            dtype=given.get("dtype"),
            mask=given.get("mask"),
        )

    return body


def _into(record: Instruction) -> Body:
    """An instruction that names its destination in 0.1 already."""
    output = record.outputs[0]

    def body(given: dict[str, Any]) -> None:
        core_of(record.name).flush()
        _tile(record, given, output)
        region = region_of(given.get("mask"), given[output].shape)
        if region is not None and region.inside is not None:
            raise not_rectangular(record.name, region)
        if region is not None and region.is_empty:
            return
        operands = {f: _number(given.get(f)) for f in record.operands}
        if region is not None:
            operands = parts_of(record, operands, region, output)
        operands = {f: cut(v, None) for f, v in operands.items()}
        run(record.name, operands, {f: v for f, v in given.items() if f in record.attrs})

    return body


def _tile(record: Instruction, given: dict[str, Any], field: str) -> Any:
    """An operand that is used before the instruction checks it; raises unless it is a tile."""
    value = given[field]
    if not isinstance(value, (View, Access)):
        raise mismatch(record, field, value)
    return value


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, (bool, np.bool_)) else value


def _nc_transpose(given: dict[str, Any]) -> Any:
    transposed = apply("nc_transpose", {"data": given["data"]}, {"engine": given["engine"]},
                   over="data", mask=given["mask"])  # fmt: skip
    return transposed if given["dtype"] is None else in_dtype(transposed, given["dtype"])


def _nc_matmul(given: dict[str, Any]) -> Any:
    """stationaryᵀ · moving in float32, in PSUM; `+=` of it accumulates there."""
    inputs = {f: _in_sbuf(given.pop(f)) for f in ("stationary", "moving")}
    mask = given.pop("mask")
    mode = given["perf_mode"]
    given["perf_mode"] = _PERF_MODES.get(mode, mode) if isinstance(mode, str | None) else mode
    return masked_matmul(inputs, given | {"accumulate": False}, mask)


# 0.1 has no enumeration of modes; the vendor's own kernels write the name (double_row_matmul).
_PERF_MODES = {None: MatmulPerfMode.none, "double_row_gen3": MatmulPerfMode.double_row}


def _in_sbuf(value: Any) -> Any:
    """An operand of TensorE, copied from PSUM where the options allow it."""
    if not isinstance(value, View) or value.spec.space is not MemorySpace.psum:
        return value
    if core_of("nc_matmul").options.matmul_reads_psum == "reject":
        return value
    return elementwise.to_sbuf(value)


def _activation(given: dict[str, Any]) -> Any:
    """A function of every element, with a sum per row where requested."""
    reduces = given["reduce_res"] is not None or given["reduce_cmd"] is not ReduceCmd.idle
    if given["mask"] is not None and reduces:
        region = region_of(given["mask"], given["data"].shape)
        if region is not None and region.inside is not None:
            raise not_rectangular("activation", region)  # every element counts in the row's sum
    return _PLAIN_ACTIVATION(given)


_PLAIN_ACTIVATION = _plain(INSTRUCTIONS["activation"])


def _memset(given: dict[str, Any]) -> Any:
    """A new SBUF tile of `shape` with one value everywhere."""
    core = core_of("memset")
    record = INSTRUCTIONS["memset"]
    if isinstance(given["value"], (View, Access)):
        raise SignatureError(
            "value is a tile",
            expected="a number",
            got=repr(given["value"]),
            hint="tile.broadcast_to(shape) repeats a tile of one element",
            operand="value",
            instruction="memset",
        )
    shape = on_chip_shape(_sizes(given["shape"]))
    used = usage(core, record, {"engine": given["engine"]})
    return emit(core, used, {"value": given["value"]},
                (shape, as_dtype(given["dtype"]), MemorySpace.sbuf),
                region_of(given["mask"], shape))  # fmt: skip


def _sizes(shape: Any) -> tuple[int, ...]:
    """A shape of positive ints; its limits are checked by the allocation."""
    sizes = shape if isinstance(shape, (tuple, list)) else ()
    if sizes and all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes):
        return tuple(map(int, sizes))
    raise ShapeError(
        "a shape is a tuple of positive ints",
        got=repr(shape).partition("\n")[0][:80],
        operand="shape",
        position=0,
        instruction="memset",
    )


def _dma_copy(given: dict[str, Any]) -> None:
    """Copy between HBM and SBUF; a mask selects elements of both."""
    core = core_of("dma_copy")
    core.flush()
    dst, src = (_tile(INSTRUCTIONS["dma_copy"], given, field) for field in ("dst", "src"))
    region = region_of(given["mask"], dst.shape)
    if region is not None and region.is_empty:
        return
    if region is not None and tuple(src.shape) != tuple(dst.shape):
        raise ShapeError(
            "a mask on operands of different shapes",
            got=f"dst {dst.shape}, src {src.shape}",
            operand="mask",
            instruction="dma_copy",
        )
    target = dst.of(region) if isinstance(dst, Access) else cut(dst, region)
    attrs = {k: given[k] for k in ("dst_rmw_op", "oob_mode", "dge_mode")}
    copy_by_dma(target, cut(src, region), region, "dma_copy", attrs)


def _iota(given: dict[str, Any]) -> Any:
    """A tile with the values of an affine index expression."""
    expr = given["expr"]
    pattern = affine_pattern(expr, "expr", "iota")
    record, core = INSTRUCTIONS["iota"], core_of("iota")
    shape = on_chip_shape(expr.shape)
    return _patterned(record, core, {}, pattern, {}, shape, as_dtype(given["dtype"]), given["mask"])


def _affine_select(given: dict[str, Any]) -> Any:
    """on_true_tile where an affine predicate holds, else on_false_value.

    The machine selects in SBUF; from PSUM, where kernels of 0.1 have scores, a copy goes first.
    """
    predicate = given["pred"]
    if not isinstance(predicate, Mask) or predicate.comparison is None:
        raise SignatureError(
            "pred is not a single comparison of index expressions",
            expected="such as (i_p >= i_f); combine conditions by selecting twice",
            got=repr(predicate).partition("\n")[0][:80],
            operand="pred",
            instruction="affine_select",
        )
    difference, op = predicate.comparison
    record, core = INSTRUCTIONS["affine_select"], core_of("affine_select")
    tile = elementwise.to_sbuf(_tile(record, given, "on_true_tile"))
    if len(difference.shape) != len(tile.shape):
        raise ShapeError(
            f"pred has {len(difference.shape)} index axes, on_true_tile {len(tile.shape)}",
            operand="pred",
            instruction="affine_select",
        )
    pattern = affine_pattern(difference, "pred", "affine_select", tile.shape)
    core.flush()
    kind = elementwise.dtype_of(tile) if given["dtype"] is None else as_dtype(given["dtype"])
    inputs = {"on_true_tile": cut(tile, None), "on_false_value": given["on_false_value"]}
    return _patterned(
        record, core, inputs, pattern, {"cmp_op": op}, tile.shape, kind, given["mask"]
    )


def _patterned(
    record: Instruction, core: Any, inputs: dict[str, Any], pattern: dict[str, Any],
    more: dict[str, Any], shape: tuple[int, ...], kind: Any, mask: Any,
) -> Any:  # fmt: skip
    """Emit an instruction with a pattern; under a mask, the part of it in the mask's rectangle."""
    region = region_of(mask, shape)
    result = (shape, kind, MemorySpace.sbuf)
    if region is not None and region.is_empty:
        return emit(core, usage(core, record, pattern | more), {}, result, region)
    if region is not None:
        pattern = _part(pattern, region)
        inputs = {f: cut(v, region) for f, v in inputs.items()}
    return emit(core, usage(core, record, pattern | more), inputs, result, region)


def _part(pattern: dict[str, Any], region: Region) -> dict[str, Any]:
    """The pattern over a rectangle: it starts at the rectangle's corner and has its extents."""
    rows, *free = region.rect
    offset = pattern["offset"] + rows.start * pattern["channel_multiplier"]
    offset += sum(p.start * step for p, (step, _) in zip(free, pattern["pattern"], strict=True))
    steps = [step for step, _ in pattern["pattern"]]
    counts = [[step, p.stop - p.start] for step, p in zip(steps, free, strict=True)]
    return pattern | {"pattern": counts, "offset": offset}


def _tensor_reduce(given: dict[str, Any]) -> Any:
    """A reduction; over several free axes with others between them as `nl.max` has it."""
    data, axis = given["data"], given["axis"]
    if not isinstance(data, (View, Access)) or not _has_gaps(axis, len(data.shape)):
        return _PLAIN_TENSOR_REDUCE(given)
    words = {k: given[k] for k in ("dtype", "mask", "keepdims", "negate")}
    return reduce_axes(given["op"], data, axis, **words, name="tensor_reduce")


def _has_gaps(axis: Any, rank: int) -> bool:
    """Whether these are free axes of a tile of this rank that are not its last ones."""
    axes = axis if isinstance(axis, _LISTS) else (axis,)
    if not all(type(a) is int and -rank < a < rank and a for a in axes):
        return False
    free = sorted(a % rank for a in axes)
    return bool(free) and free != list(range(rank - len(free), rank))


_LISTS = (tuple, list)
_PLAIN_TENSOR_REDUCE = _plain(INSTRUCTIONS["tensor_reduce"])


def _lanes_in_float32(name: str, body: Body, lanes: dict[str, str | None]) -> Body:
    """`body`, with a float32 copy of (P, 1) tiles that the machine takes in float32 only.

    The machine's rule is that of 0.2 and later; kernels of 0.1 pass bfloat16 rows, for which its
    compiler put in the copy. `lanes`: operand → its operation (bitwise ones see the bits as is).
    """
    record = INSTRUCTIONS[name]

    def is_bitwise(given: dict[str, Any], op: str | None) -> bool:
        return op is not None and getattr(record.attrs[op].convert(given[op]), "is_bitvec", False)

    def wider(given: dict[str, Any]) -> Any:
        for operand, op in lanes.items():
            value = given.get(operand)
            if not isinstance(value, (View, Access)) or is_bitwise(given, op):
                continue
            if elementwise.dtype_of(value) is not float32:
                given = given | {operand: elementwise.copy(value, dtype=float32)}
        return body(given)

    wider.__doc__ = body.__doc__
    return wider


def _tensor_tensor(given: dict[str, Any]) -> Any:
    """op(data1, data2), free axes of extent 1 repeated; the machine takes equal shapes only."""
    data1, data2 = given["data1"], given["data2"]
    if isinstance(data1, (View, Access)) and isinstance(data2, (View, Access)):
        one, other = data1.shape, data2.shape
        if one != other and one[0] == other[0]:
            given = given | _repeated(data1, data2)
    return _PLAIN_TENSOR_TENSOR(given)


def _repeated(data1: Any, data2: Any) -> dict[str, Any]:
    """Both operands in one shape; a column (P, 1) fits tiles of every rank."""
    one, other = data1.shape, data2.shape
    if len(one) == len(other):
        shape, tiles = elementwise.common_shape(data1, data2), {"data1": data1, "data2": data2}
        return {name: elementwise.repeat(tile, shape) for name, tile in tiles.items()}
    if prod(other[1:]) == 1:
        return {"data2": _repeated_column(data2, one)}
    return {"data1": _repeated_column(data1, other)} if prod(one[1:]) == 1 else {}


def _repeated_column(tile: Any, shape: tuple[int, ...]) -> Any:
    view = cut(tile, None)
    view.initialize()
    column = view.array.reshape(view.shape[0], *[1] * (len(shape) - 1))
    return view.derive(np.broadcast_to(column, shape), view.spec.start)


_PLAIN_TENSOR_TENSOR = _plain(INSTRUCTIONS["tensor_tensor"])

_SPECIAL: dict[str, Body] = {
    "activation": _lanes_in_float32("activation", _activation, {"scale": None}),
    "affine_select": _affine_select,
    "dma_copy": _dma_copy,
    "iota": _iota,
    "memset": _memset,
    "nc_matmul": _nc_matmul,
    "nc_transpose": _nc_transpose,
    "tensor_reduce": _tensor_reduce,
    "tensor_tensor": _tensor_tensor,
    "tensor_scalar": _lanes_in_float32(
        "tensor_scalar",
        _plain(INSTRUCTIONS["tensor_scalar"]),
        {"operand0": "op0", "operand1": "op1"},
    ),
}


def get_nc_version() -> NcVersion:
    """The generation that the kernel runs on."""
    return NcVersion[running("nisa.get_nc_version").core.target.nc_version]


def isa_functions() -> dict[str, Callable[..., Any]]:
    """Every instruction that both 0.1 and the machine have, by name."""
    made = {}
    for name in instruction_names("0.1"):
        known = signature(name, "0.1")
        if name in INSTRUCTIONS and known is not None:
            record = INSTRUCTIONS[name]
            names_output = any(p.field == record.outputs[0] for p in known.params)
            body = _SPECIAL.get(name) or (_into if names_output else _plain)(record)
            made[name] = function_of(name, known, body, knows_its_mask=name in _SPECIAL)
    return made


ENUMS: dict[str, type[Enum]] = {
    "engine": Engine,
    "reduce_cmd": ReduceCmd,
    "dge_mode": DgeMode,
    "oob_mode": OobMode,
    "nc_version": NcVersion,
}

CONSTANTS: dict[str, Any] = {
    **ENUMS,
    **{f"{e.name}_engine": e for e in Engine if e.name in {"tensor", "vector", "scalar", "gpsimd",
                                                           "unknown"}},
    "fp32": Limits("float32"),
}  # fmt: skip
