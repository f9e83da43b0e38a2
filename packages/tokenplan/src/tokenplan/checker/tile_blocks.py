"""One tile block of a decoded Tile IR function, executed: its values, accesses and lost orders.

Nothing here is shared with the analysis or with the writer. A function is what a reader of bytecode
gives: operations with names, operands, attributes and regions, and types with named fields. Tiles
are NumPy arrays, pointers byte addresses, tokens sets of accesses (as bits) that are complete.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

_DTYPES = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
           "f16": np.float16, "f32": np.float32, "tf32": np.float32, "f64": np.float64,
           "ptr": np.int64}  # fmt: skip
_SPACING = 1 << 40
"""Bytes from the start of one parameter to the next."""
_PADDING = {None: 0, "zero": 0, "neg_zero": -0.0, "nan": np.nan, "pos_inf": np.inf,
            "neg_inf": -np.inf}  # fmt: skip
_DYNAMIC = -(2**63)
MOST_STEPS = 200_000


class ExecutionError(Exception):
    """The function has an operation that is not supported here, or leaves its arrays."""


@dataclass(frozen=True, slots=True)
class TileAccess:
    """One executed load or store."""

    name: str
    line: int
    writes: bool
    order: str
    bytes: np.ndarray = field(repr=False)
    """Addresses of all its bytes, sorted."""
    before: int
    """Accesses that are complete when it starts, as bits."""

    def __str__(self) -> str:
        return f"{self.name} (line {self.line})"


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
    """A block that runs on arrays, which it changes; `block` is its place in the grid."""

    arrays: Sequence[np.ndarray]
    block: tuple[int, int, int] = (0, 0, 0)
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    """Dtypes of element types that NumPy lacks: `{"bf16": array.dtype}`."""
    values: dict[Any, Any] = field(default_factory=dict)
    accesses: list[TileAccess] = field(default_factory=list)
    steps: int = 0

    def run(self, function: Any, scalars: Sequence[int] = ()) -> Execution:
        """Executes the body; parameters that are pointers are the arrays, others the scalars."""
        numbers, n = iter(scalars), 0
        for parameter in function.body.arguments:
            if parameter.type["element"].kind == "ptr":
                self.values[parameter] = np.int64(n * _SPACING)
                n += 1
            else:
                self.values[parameter] = np.asarray(
                    next(numbers), self.dtype(parameter.type["element"])
                )
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
            known = _OPERATIONS.get(op.name)
            if known is None:
                raise ExecutionError(f"{op.name} is not supported by the checker")
            results = known(self, op)
            for value, found in zip(op.results, results, strict=True):
                self.values[value] = found
        return []

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

    def transfer(self, op: Any, addresses: np.ndarray, inside: np.ndarray, dtype: Any) -> int:
        """Notes an access to the elements at these addresses that are inside; its number."""
        size = np.dtype(dtype).itemsize
        starts = np.unique(addresses[inside])
        touched = np.unique((starts[:, None] + np.arange(size)).reshape(-1))
        writes = op.name.startswith("store")
        before = self.value(op, "token") or 0
        line = op.place.line if op.place else 0
        found = TileAccess(op.name, line, writes, op.attributes["order"], touched, before)
        self.accesses.append(found)
        return before | 1 << len(self.accesses) - 1

    def elements(self, addresses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The array that contains the addresses, and indices of its elements."""
        owner = int(addresses.flat[0] // _SPACING) if addresses.size else 0
        if owner not in range(len(self.arrays)):
            raise ExecutionError("an access leaves every array")
        array = self.arrays[owner].reshape(-1)
        index = (addresses - owner * _SPACING) // array.itemsize
        if addresses.size and not 0 <= index.min() <= index.max() < array.size:
            raise ExecutionError(f"an access leaves parameter {owner}")
        return array, index

    def read(self, addresses: np.ndarray, inside: np.ndarray, fill: Any, dtype: Any) -> np.ndarray:
        found = np.full(addresses.shape, fill, dtype)
        array, index = self.elements(addresses[inside])
        found[inside] = array[index]
        return found

    def write(self, addresses: np.ndarray, inside: np.ndarray, value: np.ndarray) -> None:
        array, index = self.elements(addresses[inside])
        array[index] = value[inside]

    # -- what came of it --------------------------------------------------------------------------

    def lost(self, may_alias: Sequence[tuple[int, int]] = ()) -> Iterator[str]:
        """Every two accesses whose order matters and that no token orders."""
        shared = {frozenset(pair) for pair in may_alias}
        for late, after in enumerate(self.accesses):
            for early in range(late):
                before = self.accesses[early]
                if after.before >> early & 1:
                    continue
                why = _reason(before, after, shared)
                if why:
                    yield f"{before} and {after} {why}, and no token orders them"


def _reason(before: TileAccess, after: TileAccess, shared: set[frozenset[int]]) -> str | None:
    if before.order in ("acquire", "acq_rel") or after.order in ("release", "acq_rel"):
        return "are ordered by acquire or release"
    if not (before.writes or after.writes) or not before.bytes.size or not after.bytes.size:
        return None
    return _overlap(before.bytes, after.bytes, shared)


def _overlap(a: np.ndarray, b: np.ndarray, shared: set[frozenset[int]]) -> str | None:
    one, other = int(a[0] // _SPACING), int(b[0] // _SPACING)
    if frozenset((one, other)) in shared:
        return f"touch parameters {one} and {other}, which may share bytes"
    both = np.intersect1d(a, b, assume_unique=True) if a[0] <= b[-1] and b[0] <= a[-1] else a[:0]
    return f"share byte {int(both[0] % _SPACING)} of parameter {one}" if both.size else None


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
    addresses, inside = _grid(run, op, view)
    fill = _PADDING[view.padding]
    found = run.read(addresses, inside, fill, view.tensor.dtype)
    return [found, run.transfer(op, addresses, inside, view.tensor.dtype)]


def _store_view(run: Execution, op: Any) -> list[Any]:
    view = run.value(op, "view")
    addresses, inside = _grid(run, op, view)
    run.write(addresses, inside, run.value(op, "tile"))
    return [run.transfer(op, addresses, inside, view.tensor.dtype)]


def _pointers(run: Execution, op: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Addresses of a pointer tile, and where its mask is set."""
    addresses, mask = np.asarray(run.value(op, name)), run.value(op, "mask")
    return addresses, np.broadcast_to(True if mask is None else mask, addresses.shape)


def _load_pointers(run: Execution, op: Any) -> list[Any]:
    (addresses, inside), dtype = _pointers(run, op, "source"), _dtype(run, op)
    fill = run.value(op, "padding")
    found = run.read(addresses, inside, 0 if fill is None else fill.flat[0], dtype)
    return [found, run.transfer(op, addresses, inside, dtype)]


def _store_pointers(run: Execution, op: Any) -> list[Any]:
    (addresses, inside), value = _pointers(run, op, "pointers"), np.asarray(run.value(op, "value"))
    run.write(addresses, inside, value)
    return [run.transfer(op, addresses, inside, value.dtype)]


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


# -- arithmetic ------------------------------------------------------------------------------------


def _dtype(run: Execution, op: Any) -> Any:
    return run.dtype(op.results[0].type["element"])


def _lanes(calculate: Callable[..., Any], *names: str) -> Callable[[Execution, Any], list[Any]]:
    def execute(run: Execution, op: Any) -> list[Any]:
        with np.errstate(all="ignore"):
            found = calculate(*(run.value(op, name) for name in names))
            return [np.asarray(found).astype(_dtype(run, op))]

    return execute


def _shaped(calculate: Callable[[np.ndarray, tuple[int, ...]], Any]) -> Callable[..., list[Any]]:
    def execute(run: Execution, op: Any) -> list[Any]:
        return [calculate(np.asarray(run.value(op, "source")), op.results[0].type["shape"])]

    return execute


def _constant(run: Execution, op: Any) -> list[Any]:
    kind = op.results[0].type
    shape, data = kind["shape"], np.frombuffer(op.attributes["value"], np.uint8)
    if kind["element"].kind == "i1":
        return [np.full(shape, bool(data[0]))]
    found = data.view(_dtype(run, op))
    return [np.full(shape, found[0]) if found.size != prod(shape) else found.reshape(shape)]


def _mma(run: Execution, op: Any) -> list[Any]:
    a, b, acc = (np.asarray(run.value(op, n)).astype(np.float32) for n in ("lhs", "rhs", "acc"))
    return [(a @ b + acc).astype(_dtype(run, op))]


def _compare(run: Execution, op: Any) -> list[Any]:
    compare = getattr(operator, op.attributes["comparison"])
    return [np.asarray(compare(run.value(op, "lhs"), run.value(op, "rhs")))]


def _divide(run: Execution, op: Any) -> list[Any]:
    lhs, rhs = run.value(op, "lhs"), run.value(op, "rhs")
    found = {"negative_inf": lhs // rhs, "positive_inf": -(-lhs // rhs)}.get(
        op.attributes["rounding"], np.trunc(np.true_divide(lhs, rhs)))  # fmt: skip
    return [np.asarray(found).astype(_dtype(run, op))]


def _tensor_shape(run: Execution, op: Any) -> list[Any]:
    sizes = zip(run.value(op, "source").shape, op.results, strict=True)
    return [np.asarray(n, run.dtype(v.type["element"])) for n, v in sizes]


def _index_space(run: Execution, op: Any) -> list[Any]:
    view = run.value(op, "source")
    dims = zip(view.dims, view.steps, strict=True)
    return [np.asarray(-(-view.tensor.shape[d] // step), np.int32) for d, step in dims]


def _iota(run: Execution, op: Any) -> list[Any]:
    return [np.arange(prod(op.results[0].type["shape"]), dtype=_dtype(run, op))]


def _permute(run: Execution, op: Any) -> list[Any]:
    return [np.transpose(run.value(op, "source"), op.attributes["permutation"])]


def _join(run: Execution, op: Any) -> list[Any]:
    total = 0
    for token in run.all(op, "tokens"):
        total |= token
    return [total]


_TWO: Mapping[str, Callable[..., Any]] = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and,
    "ori": np.bitwise_or, "xori": np.bitwise_xor, "shli": np.left_shift, "shri": np.right_shift,
    "mini": np.minimum, "maxi": np.maximum, "remi": np.fmod, "addf": np.add, "subf": np.subtract,
    "mulf": np.multiply, "divf": np.divide, "maxf": np.fmax, "minf": np.fmin,
}  # fmt: skip
_ONE: Mapping[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "sqrt": np.sqrt, "negf": np.negative, "absf": np.abs,
    "rsqrt": lambda x: 1 / np.sqrt(x), "ftof": np.asarray, "itof": np.asarray, "exti": np.asarray,
    "trunci": np.asarray, "ftoi": np.trunc, "negi": np.negative, "log": np.log, "log2": np.log2,
    "tanh": np.tanh,
}  # fmt: skip
_OPERATIONS: dict[str, Callable[[Execution, Any], list[Any]]] = {
    **{name: _lanes(calculate, "lhs", "rhs") for name, calculate in _TWO.items()},
    **{name: _lanes(calculate, "source") for name, calculate in _ONE.items()},
    "select": _lanes(np.where, "condition", "if_true", "if_false"),
    "fma": _lanes(lambda a, b, c: a * b + c, "lhs", "rhs", "acc"),
    "reshape": _shaped(np.reshape), "broadcast": _shaped(np.broadcast_to),
    "permute": _permute,
    "assume": lambda run, op: [run.value(op, "value")],
    "constant": _constant, "iota": _iota, "mmaf": _mma, "cmpi": _compare, "cmpf": _compare,
    "divi": _divide, "make_tensor_view": _make_tensor, "make_partition_view": _make_view,
    "make_strided_view": _make_view, "make_gather_scatter_view": _make_view,
    "load_view_tko": _load_view, "store_view_tko": _store_view, "load_ptr_tko": _load_pointers,
    "store_ptr_tko": _store_pointers, "offset": _offset, "for": _for, "if": _if, "reduce": _reduce,
    "make_token": lambda run, op: [0], "join_tokens": _join, "get_tensor_shape": _tensor_shape,
    "get_index_space_shape": _index_space,
    "get_tile_block_id": lambda run, op: [np.int32(n) for n in run.block],
}  # fmt: skip
