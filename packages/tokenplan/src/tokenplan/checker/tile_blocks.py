"""One tile block of a decoded Tile IR function, executed: its values, accesses and lost orders.

Nothing here is shared with the analysis or with the writer. A function is what a reader of bytecode
gives: operations with names, operands, attributes and regions, and types with named fields. Tiles
are NumPy arrays, pointers byte addresses, tokens sets of accesses (as bits) that are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokenplan.checker.tile_accesses import (
    NO_BYTES,
    SPACING,
    TileAccess,
    lost_orders,
    runs_of_box,
    runs_of_elements,
)
from tokenplan.checker.tile_arithmetic import ARITHMETIC

_DTYPES = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
           "f16": np.float16, "f32": np.float32, "tf32": np.float32, "f64": np.float64,
           "ptr": np.int64}  # fmt: skip
_PADDING = {None: 0, "zero": 0, "neg_zero": -0.0, "nan": np.nan, "pos_inf": np.inf,
            "neg_inf": -np.inf}  # fmt: skip
_DYNAMIC = -(2**63)
MOST_STEPS = 200_000
_UNKNOWN = object()
"""A value that is not calculated."""
_DATA: Mapping[str, frozenset[str]] = {
    "load_view_tko": frozenset(), "load_ptr_tko": frozenset({"padding"}), "if": frozenset(),
    "store_view_tko": frozenset({"tile"}), "store_ptr_tko": frozenset({"value"}),
    "for": frozenset({"inits"}),
}  # fmt: skip
"""Operands that may be unknown, of operations that have an effect."""


class ExecutionError(Exception):
    """The function has an operation that is not supported here, or leaves its arrays."""


@dataclass(frozen=True, slots=True)
class _Tensor:
    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True, slots=True)
class _View:
    tensor: _Tensor
    tile: tuple[int, ...]
    steps: tuple[int, ...]
    dims: tuple[int, ...]
    padding: str | None
    sparse: int | None = None


@dataclass
class Execution:
    """A block that runs on arrays, which it changes; `block` is its place in the grid.

    footprints_only: neither what is loaded nor numbers that are not integers are calculated, and
    the arrays stay as they are. ExecutionError where an address or a condition depends on them.
    """

    arrays: Sequence[np.ndarray]
    block: tuple[int, int, int] = (0, 0, 0)
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    """Dtypes of element types that NumPy lacks: `{"bf16": array.dtype}`."""
    values: dict[Any, Any] = field(default_factory=dict)
    accesses: list[TileAccess] = field(default_factory=list)
    steps: int = 0
    footprints_only: bool = False

    def run(self, function: Any, scalars: Sequence[int] = ()) -> Execution:
        """Executes the body; parameters that are pointers are the arrays, others the scalars."""
        numbers, n = iter(scalars), 0
        for parameter in function.body.arguments:
            if parameter.type["element"].kind == "ptr":
                self.values[parameter] = np.int64(n * SPACING)
                n += 1
            else:
                self.values[parameter] = np.asarray(
                    next(numbers), self.dtype(parameter.type["element"])
                )
        with np.errstate(all="ignore"):
            self._block(function.body)
        return self

    def _block(self, block: Any) -> list[Any]:
        """The operands of the operation that ends the block."""
        for op in block.operations:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise ExecutionError(f"more than {MOST_STEPS} operations are executed")
            if op.name in ("continue", "yield", "return"):
                return [self.values[v] for v in op.operands["values"]]
            self.values.update(zip(op.results, self._results(op), strict=True))
        return []

    def _results(self, op: Any) -> Sequence[Any]:
        known = _OPERATIONS.get(op.name)
        if known is None:
            raise ExecutionError(f"{op.name} is not supported by the checker")
        if self.footprints_only and self._is_unknown(op):
            return [_UNKNOWN] * len(op.results)
        return known(self, op)

    def _is_unknown(self, op: Any) -> bool:
        """Whether the results are not calculated; ExecutionError where an effect depends on what
        is not."""
        missing = {name for name, values in op.operands.items() for value in values
                   if self.values[value] is _UNKNOWN}  # fmt: skip
        may_miss = _DATA.get(op.name)
        if may_miss is None:
            return bool(missing) or _is_fraction(op)
        if not missing <= may_miss:
            name = min(missing - may_miss)
            raise ExecutionError(f"the {name} of {op.name} depends on values of arrays")
        return False

    def dtype(self, element: Any) -> Any:
        found = _DTYPES.get(element.kind) or self.dtypes.get(element.kind)
        if found is None:
            raise ExecutionError(f"the dtype of {element.kind} is missing in `dtypes`")
        return found

    def value(self, op: Any, name: str) -> Any:
        """The value of an operand, None where it is absent."""
        given = op.operands.get(name, ())
        return self.values[given[0]] if given else None

    def all(self, op: Any, name: str) -> list[Any]:
        return [self.values[v] for v in op.operands.get(name, ())]

    # -- memory -----------------------------------------------------------------------------------

    def transfer(self, op: Any, runs: np.ndarray) -> int:
        """Notes an access to these runs of bytes; the accesses that its token stands for."""
        writes = op.name.startswith("store")
        before = self.value(op, "token") or 0
        line = op.place.line if op.place else 0
        found = TileAccess(op.name, line, writes, op.attributes["order"], runs, before)
        owner, end = found.bounds[0] // SPACING, found.bounds[1]
        if not 0 <= owner < len(self.arrays) or end - owner * SPACING > self.arrays[owner].nbytes:
            raise ExecutionError(f"{found} leaves parameter {owner}")
        self.accesses.append(found)
        return before | 1 << len(self.accesses) - 1

    def elements(self, addresses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The array that contains the addresses, and indices of its elements."""
        owner = int(addresses.flat[0] // SPACING) if addresses.size else 0
        array = self.arrays[owner].reshape(-1)
        return array, (addresses - owner * SPACING) // array.itemsize

    def read(self, addresses: np.ndarray, inside: np.ndarray, fill: Any, dtype: Any) -> np.ndarray:
        found = np.full(addresses.shape, fill, dtype)
        array, index = self.elements(addresses[inside])
        found[inside] = array[index]
        return found

    def write(self, addresses: np.ndarray, inside: np.ndarray, value: np.ndarray) -> None:
        array, index = self.elements(addresses[inside])
        array[index] = value[inside]

    def lost(self, may_alias: Sequence[tuple[int, int]] = ()) -> Iterator[str]:
        """Every two accesses whose order matters and that no token orders."""
        return lost_orders(self.accesses, may_alias)


def _is_fraction(op: Any) -> bool:
    """Whether it makes numbers that are not integers, and nothing else."""
    kinds = [value.type for value in op.results]
    return op.name == "constant" and kinds[0]["element"].kind[0] in "fbt"


# -- views -----------------------------------------------------------------------------------------


def _grid(run: Execution, op: Any, view: _View) -> tuple[np.ndarray, np.ndarray]:
    """Addresses of a tile's elements, and which of them are inside the tensor."""
    index, tensor = run.all(op, "index"), view.tensor
    rank, total = len(view.tile), 0
    inside = np.ones(view.tile, bool)
    for at, (extent, step) in enumerate(zip(view.tile, view.steps, strict=True)):
        dim, shape = view.dims[at], [1] * rank
        shape[at] = extent
        start = np.asarray(index[at], np.int64)
        along = start if view.sparse == at else start * step + np.arange(extent)
        along = along.reshape(shape)
        inside &= (along >= 0) & (along < tensor.shape[dim])
        total = total + along * tensor.strides[dim]
    size = np.dtype(tensor.dtype).itemsize
    return np.broadcast_to(tensor.base + total * size, view.tile), inside


def _runs(run: Execution, op: Any, view: _View) -> np.ndarray:
    """The bytes of a tile of a view, without the elements themselves where it is a box."""
    size, tensor = np.dtype(view.tensor.dtype).itemsize, view.tensor
    if view.sparse is not None:
        addresses, inside = _grid(run, op, view)
        return runs_of_elements(addresses[inside], size)
    first, dims = tensor.base, []
    for at, index in enumerate(run.all(op, "index")):
        dim, start = view.dims[at], int(index) * view.steps[at]
        low, high = max(start, 0), min(start + view.tile[at], tensor.shape[dim])
        if low >= high:
            return NO_BYTES
        stride = tensor.strides[dim] * size
        first += low * stride
        dims.append((high - low, stride))
    return runs_of_box(first, dims, size)


def _make_tensor(run: Execution, op: Any) -> list[Any]:
    kind = op.results[0].type
    shapes, strides = iter(run.all(op, "shape")), iter(run.all(op, "strides"))
    shape = tuple(int(next(shapes)) if n == _DYNAMIC else n for n in kind["shape"])
    steps = tuple(int(next(strides)) if n == _DYNAMIC else n for n in kind["strides"])
    return [_Tensor(int(run.value(op, "base")), shape, steps, run.dtype(kind["element"]))]


def _make_view(run: Execution, op: Any) -> list[Any]:
    kind, tensor = op.results[0].type, run.value(op, "tensor_view")
    tile, padding = kind["tile"], kind["padding"]
    if kind.kind == "gather_scatter_view":
        return [_View(tensor, tile, tile, tuple(range(len(tile))), padding, kind["sparse_dim"])]
    steps = kind["traversal"] if kind.kind == "strided_view" else tile
    return [_View(tensor, tile, steps, kind["dim_map"], padding)]


def _load_view(run: Execution, op: Any) -> list[Any]:
    view = run.value(op, "view")
    done = run.transfer(op, _runs(run, op, view))
    if run.footprints_only:
        return [_UNKNOWN, done]
    addresses, inside = _grid(run, op, view)
    return [run.read(addresses, inside, _PADDING[view.padding], view.tensor.dtype), done]


def _store_view(run: Execution, op: Any) -> list[Any]:
    view = run.value(op, "view")
    done = run.transfer(op, _runs(run, op, view))
    if not run.footprints_only:
        run.write(*_grid(run, op, view), run.value(op, "tile"))
    return [done]


def _pointers(run: Execution, op: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Addresses of a pointer tile, and where its mask is set."""
    addresses, mask = np.asarray(run.value(op, name)), run.value(op, "mask")
    return addresses, np.broadcast_to(True if mask is None else mask, addresses.shape)


def _load_pointers(run: Execution, op: Any) -> list[Any]:
    addresses, inside = _pointers(run, op, "source")
    dtype = run.dtype(op.results[0].type["element"])
    done = run.transfer(op, runs_of_elements(addresses[inside], np.dtype(dtype).itemsize))
    if run.footprints_only:
        return [_UNKNOWN, done]
    fill = run.value(op, "padding")
    return [run.read(addresses, inside, 0 if fill is None else fill.flat[0], dtype), done]


def _store_pointers(run: Execution, op: Any) -> list[Any]:
    addresses, inside = _pointers(run, op, "pointers")
    size = run.dtype(op.operands["pointers"][0].type["element"]["pointee"])
    done = run.transfer(op, runs_of_elements(addresses[inside], np.dtype(size).itemsize))
    if not run.footprints_only:
        run.write(addresses, inside, np.asarray(run.value(op, "value")))
    return [done]


def _offset(run: Execution, op: Any) -> list[Any]:
    size = np.dtype(run.dtype(op.results[0].type["element"]["pointee"])).itemsize
    offsets = run.value(op, "offsets").astype(np.int64)
    return [np.asarray(run.value(op, "pointers")) + offsets * size]


# -- control flow ----------------------------------------------------------------------------------


def _for(run: Execution, op: Any) -> list[Any]:
    (body,), carried = op.regions, run.all(op, "inits")
    bounds = (int(run.value(op, name)) for name in ("lower", "upper", "step"))
    for at in range(*bounds):
        variable, *inside = body.arguments
        run.values[variable] = np.asarray(at, run.dtype(variable.type["element"]))
        run.values.update(zip(inside, carried, strict=True))
        carried = run._block(body)
    return carried


def _if(run: Execution, op: Any) -> list[Any]:
    return run._block(op.regions[0 if bool(run.value(op, "condition")) else 1])


def _reduce(run: Execution, op: Any) -> list[Any]:
    (body,), dim, sources = op.regions, op.attributes["dim"], run.all(op, "sources")
    rows = [list(np.moveaxis(source, dim, 0)) for source in sources]
    total = [row[0] for row in rows]
    for at in range(1, len(rows[0])):
        items = [row[at] for row in rows]
        arguments = [v for pair in zip(total, items, strict=True) for v in pair]
        run.values.update(zip(body.arguments, arguments, strict=True))
        total = run._block(body)
    return total


# -- tokens and shapes -----------------------------------------------------------------------------


def _tensor_shape(run: Execution, op: Any) -> list[Any]:
    sizes = zip(run.value(op, "source").shape, op.results, strict=True)
    return [np.asarray(n, run.dtype(v.type["element"])) for n, v in sizes]


def _index_space(run: Execution, op: Any) -> list[Any]:
    view = run.value(op, "source")
    dims = zip(view.dims, view.steps, strict=True)
    return [np.asarray(-(-view.tensor.shape[d] // step), np.int32) for d, step in dims]


def _join(run: Execution, op: Any) -> list[Any]:
    total = 0
    for token in run.all(op, "tokens"):
        total |= token
    return [total]


_OPERATIONS: dict[str, Callable[[Execution, Any], list[Any]]] = ARITHMETIC | {
    "make_tensor_view": _make_tensor,
    "make_partition_view": _make_view,
    "make_strided_view": _make_view, "make_gather_scatter_view": _make_view,
    "load_view_tko": _load_view, "store_view_tko": _store_view, "load_ptr_tko": _load_pointers,
    "store_ptr_tko": _store_pointers, "offset": _offset, "for": _for, "if": _if, "reduce": _reduce,
    "make_token": lambda run, op: [0], "join_tokens": _join, "get_tensor_shape": _tensor_shape,
    "get_index_space_shape": _index_space,
    "get_tile_block_id": lambda run, op: [np.int32(n) for n in run.block],
}  # fmt: skip
