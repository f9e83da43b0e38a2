"""nl functions that move tiles: between memories, between partitions, through TensorE."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.enums import HBM, MemorySpace
from neuroncore.errors import (
    AccessError,
    MemorySpaceError,
    ShapeError,
    SignatureError,
)
from neuroncore.memory import View
from neuroncore.spec import as_dtype
from nki_beta1.access.access import Access
from nki_beta1.call import elementwise
from nki_beta1.call.apply import apply, cut
from nki_beta1.call.assignment import fit
from nki_beta1.call.masked_operands import copy_by_dma, masked_matmul
from nki_beta1.execution.core import core_of
from nki_beta1.execution.emission import run
from nki_beta1.execution.operands import without_ones
from nki_beta1.execution.plans import gathered
from nki_beta1.index.mask import Region, region_of
from nki_beta1.launch.results import immutable
from nki_beta1.values.attributes import nl_function
from nki_dtypes import cast


@nl_function
def load(src: Any, *, mask: Any = None, dtype: Any = None) -> Any:
    """A new SBUF tile with the elements of an HBM access; those outside the mask are undefined."""
    return elementwise.unary_call(_load, "load", src, dtype, mask)


def _load(name: str, src: Any, dtype: Any, mask: Any) -> Any:
    _in_hbm(name, "src", src)
    try:
        return apply("dma_copy", {"src": src}, {}, over="src", dtype=dtype, mask=mask,
                     space=MemorySpace.sbuf)  # fmt: skip
    except (AccessError, ShapeError) as wrong:
        wrong.instruction = wrong.instruction and "nl.load"
        raise


@nl_function
def load_transpose2d(src: Any, *, mask: Any = None, dtype: Any = None) -> Any:
    """A new SBUF tile (F, P) with the transposed elements of a 2-D HBM access (P, F).

    A mask refers to the axes of the access; elements outside it are undefined.
    """
    _in_hbm("load_transpose2d", "src", src)
    if len(src.shape) != 2:
        raise ShapeError(
            f"src has {len(src.shape)} dimensions",
            expected="a 2-D access",
            got=f"shape {src.shape}",
            hint="index the leading dimensions: x[b, i_p, i_f]",
            operand="src",
            position=0,
            instruction="nl.load_transpose2d",
        )
    core_of("load_transpose2d").flush()
    region = region_of(mask, src.shape)
    transposed = (src if region is not None else cut(src, None)).transposed((1, 0))
    return load(transposed, dtype=dtype, mask=region and region.permuted((1, 0)))


@nl_function
def store(dst: Any, value: Any, *, mask: Any = None) -> None:
    """Write a tile, or the value of an expression, to an HBM access.

    A value in PSUM is copied to SBUF first: DMA does not read PSUM.
    """
    core_of("store").flush()
    _in_hbm("store", "dst", dst)
    _store(dst, value, mask)


def _store(dst: Any, value: Any, mask: Any) -> None:
    if not (dst.base if isinstance(dst, Access) else dst).spec.mutable:
        raise immutable(dst, "nl.store")
    region = region_of(mask, dst.shape)
    if region is not None and region.is_empty:
        return
    source = elementwise.to_sbuf(_source(_as_tile(value, dst), dst.shape, region))
    target = dst.of(region) if isinstance(dst, Access) else cut(dst, region)
    try:
        copy_by_dma(target, source, region, "nl.store", {})
    except AccessError as wrong:
        wrong.instruction = wrong.instruction and "nl.store"
        raise


def _source(value: Any, shape: tuple[int, ...], region: Region | None) -> Any:
    """The value inside the region of an access of `shape`."""
    if value.shape != shape and without_ones(value.shape) != without_ones(shape):
        raise ShapeError(
            f"a value of shape {value.shape} is stored to an access of shape {shape}",
            expected=f"shape {shape}",
            got=f"shape {value.shape}",
            operand="value",
            instruction="nl.store",
        )
    if isinstance(value, Access) and len(value.shape) == len(shape):
        return cut(value, region)
    value = fit(cut(value, None), shape)
    return value if region is None else region.of(value)


def _as_tile(value: Any, dst: Any) -> Any:
    if isinstance(value, (View, Access)):
        return value
    if isinstance(value, (int, float, np.number)):
        kind = (dst.base if isinstance(dst, Access) else dst).spec.dtype
        tile = core_of("store").allocate(dst.shape, kind, MemorySpace.sbuf)
        run("memset", {"dst": tile, "value": value}, {})
        return tile
    raise SignatureError(
        f"a {type(value).__name__} is stored",
        expected="a tile, an expression of tiles, or a number",
        got=repr(value).partition("\n")[0][:80],
        operand="value",
        instruction="nl.store",
    )


def _in_hbm(what: str, operand: str, tensor: Any) -> None:
    if not isinstance(tensor, (View, Access)):
        raise SignatureError(
            f"{operand} is a {type(tensor).__name__}",
            expected="a tensor in HBM",
            got=repr(tensor).partition("\n")[0][:80],
            hint="arrays become tensors as arguments of the kernel",
            operand=operand,
            instruction=f"nl.{what}",
        )
    space = (tensor.base if isinstance(tensor, Access) else tensor).spec.space
    if space not in HBM:
        raise MemorySpaceError(
            f"{operand} is in {space.name.upper()}",
            expected="HBM",
            got=f"shape {tensor.shape}",
            hint="copy between on-chip tiles with nl.copy or an assignment",
            operand=operand,
            instruction=f"nl.{what}",
        )


@nl_function
def copy(src: Any, *, mask: Any = None, dtype: Any = None) -> Any:
    """A new SBUF tile with the elements of src."""
    return elementwise.copy(src, dtype=dtype, mask=mask)


def static_cast(input_data: Any, dtype: Any) -> Any:
    """A copy in another dtype; of a NumPy array an array, also outside kernels."""
    if isinstance(input_data, np.ndarray):
        return cast(input_data, as_dtype(dtype))
    return elementwise.copy(input_data, dtype=dtype)


@nl_function
def transpose(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """The transposed 2-D tile, in PSUM."""
    transposed = apply("nc_transpose", {"data": elementwise.to_sbuf(x)}, {}, over="data", mask=mask)
    return transposed if dtype is None else in_dtype(transposed, dtype)


def in_dtype(tile: Any, dtype: Any) -> Any:
    """A PSUM result of TensorE, which keeps its input's dtype, copied to another one."""
    return apply("tensor_copy", {"src": tile}, {}, over="src", dtype=dtype, space=tile.buffer)


@nl_function
def matmul(x: Any, y: Any, *, transpose_x: bool = False, mask: Any = None) -> Any:
    """x @ y in float32, in PSUM; x is (K, M) with transpose_x, else (M, K) and transposed first."""
    core_of("matmul").flush()
    if len(x.shape) == len(y.shape) == 2 and x.shape[0 if transpose_x else 1] != y.shape[0]:
        raise _unequal_k(x, y, transpose_x)
    x, y = elementwise.to_sbuf(x), elementwise.to_sbuf(y)
    stationary = x if transpose_x else elementwise.copy(transpose(x))
    return masked_matmul({"stationary": stationary, "moving": y}, {"accumulate": False}, mask)


def _unequal_k(x: Any, y: Any, transpose_x: bool) -> ShapeError:
    shape = "(K, M)" if transpose_x else "(M, K)"
    other = "" if transpose_x else "; transpose_x=True takes an x of shape (K, M)"
    return ShapeError(
        f"K is {x.shape[0 if transpose_x else 1]} in x and {y.shape[0]} in y",
        expected=f"x {shape}, y (K, N)",
        got=f"x {x.shape}, y {y.shape}",
        hint=f"cut both to one K; take nl.transpose(y) of a y of shape (N, K){other}",
        operand="y",
        position=1,
        instruction="nl.matmul",
        rule="NKI 0.1: nl.matmul",
    )


def expand_dims(data: Any, axis: int) -> Any:
    """The same elements with an axis of extent 1 inserted."""
    return (cut(data, None) if isinstance(data, Access) else data).expand_dims(axis)


@nl_function
def broadcast_to(src: Any, *, shape: Any) -> Any:
    """The tile repeated along axes of extent 1; free axes without copying."""
    return elementwise.broadcast_to(src, shape)


@nl_function
def device_print(prefix: str, x: Any, *, mask: Any = None) -> None:
    """Print a tensor's elements when the kernel runs."""
    core = core_of("device_print")
    core.flush()
    core.need_values()
    region = region_of(mask, x.shape)
    view = gathered(cut(x, region))
    view.initialize()
    print(prefix, view.array)
