"""One tile block of a decoded Tile IR function, executed: its values, accesses and lost orders.

Nothing here is shared with the analysis or with the writer. A function is what a reader of bytecode
gives: operations with names, operands, attributes and regions, and types with named fields. Tiles
are NumPy arrays, pointers byte addresses, tokens sets of accesses (as bits) that are complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokenplan.checker.errors import ExecutionError, TooManyOperationsError
from tokenplan.checker.memory import grid, make_tensor, make_view, runs_of_elements, runs_of_tile
from tokenplan.checker.tile_accesses import SPACING, TileAccess, lost_orders, names_of
from tokenplan.checker.tile_arithmetic import ARITHMETIC, UNKNOWN, Calculation, Unknown, dtype_of
from tokenplan.checker.tile_control_flow import BOUNDS, CONTROL_FLOW, ENDS, LEAVES, MOST_GUESSES

_DTYPES = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
           "f16": np.float16, "f32": np.float32, "tf32": np.float32, "f64": np.float64,
           "ptr": np.int64}  # fmt: skip
_PADDING = {None: 0, "zero": 0, "neg_zero": -0.0, "nan": np.nan, "pos_inf": np.inf,
            "neg_inf": -np.inf}  # fmt: skip


_PLACES = ("view", "source", "pointers")
"""The operand of an access that is a view or pointers."""
_DATA: Mapping[str, frozenset[str]] = {
    "load_view_tko": frozenset(), "load_ptr_tko": frozenset({"padding"}), "if": frozenset(),
    "store_view_tko": frozenset({"tile"}), "store_ptr_tko": frozenset({"value"}),
    "for": frozenset({"inits", *BOUNDS}), "atomic_rmw_tko": frozenset({"value"}),
    "atomic_cas_tko": frozenset({"compare", "value"}),
}  # fmt: skip
"""Operands that may be unknown, of operations that have an effect."""


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
    names: dict[Any, str] = field(default_factory=dict)
    repeated: set[int] = field(default_factory=set)
    """Loops of two iterations or more, as `id` of their operations."""
    accesses: list[TileAccess] = field(default_factory=list)
    steps: int = 0
    most_steps: int = 200_000
    footprints_only: bool = False
    guesses: Sequence[int] = (1,)
    """Used cyclically: iterations of loops whose bounds are not calculated, and whether such
    conditions are true."""
    choices: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """By `id` of an `if`, branches to execute cyclically, regardless of its condition."""
    chosen: Counter[int] = field(default_factory=Counter)
    guessed: int = 0
    end: str = ""
    """The operation that ended the last block."""

    def run(self, function: Any, scalars: Sequence[int] = ()) -> Execution:
        """Executes the body; parameters that are pointers are the arrays, others the scalars."""
        numbers, n = iter(scalars), 0
        self.names = names_of(function)
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
        """The operands of the operation that ends the block, which `end` names."""
        self.end = "yield"
        for op in block.operations:
            self.steps += 1
            if self.steps > self.most_steps:
                raise TooManyOperationsError(f"more than {self.most_steps} operations are executed")
            if op.name == "constant" and op.results[0] in self.values:
                continue  # an iteration before made it
            if op.name in ENDS:
                self.end = op.name
                return [self.values[v] for v in op.operands["values"]]
            found = self._results(op)
            if op.regions and self.end in LEAVES:
                return [*found]  # of the operation inside that leaves the block
            self.values.update(zip(op.results, found, strict=True))
        return []

    def _results(self, op: Any) -> Sequence[Any]:
        if self.footprints_only:
            if id(op) in self.choices and self.chosen[id(op)] < MOST_GUESSES:
                return self._block(op.regions[self._choice(op)])
            missing = self._missing(op)
            if missing or _is_fraction(op) or op.name not in _OPERATIONS:
                return self.unknown(op, min(missing, default="result"))
        if op.name not in _OPERATIONS:
            raise ExecutionError(f"{op.name} is not supported by the checker")
        try:
            return _OPERATIONS[op.name](self, op)
        except (ArithmeticError, IndexError, MemoryError, TypeError, ValueError) as wrong:
            raise ExecutionError(f"{op.name}: {wrong}") from None

    def _missing(self, op: Any) -> set[str]:
        """The operands that are not calculated, without operands that need not be."""
        found = {name for name, values in op.operands.items() for value in values
                 if type(self.values[value]) is Unknown}  # fmt: skip
        return found - _DATA.get(op.name, frozenset()) if found else found

    def unknown(self, op: Any, missing: str) -> list[Any]:
        """Results that are not calculated. What an access may access is all of its parameters; a
        token is that of any branch, and represents no access where it may be any."""
        if op.name.endswith("_tko"):
            return self._anywhere(op, missing)
        is_executed = bool(op.regions) and _has_any(op, _is_access)
        if op.name == "if" and (is_executed or _has_any(op, _leaves)):
            return self._block(op.regions[0 if self.guess() else 1])
        if is_executed:
            raise ExecutionError(f"the {missing} of {op.name} depends on what is not calculated")
        if op.name == "if":
            return self._either(op)
        inputs = {
            value for part in _with_inner(op) for value in part.inputs if value in self.values
        }
        found = Unknown(frozenset().union(*(_owners(v, self.values[v]) for v in inputs)))
        return [0 if _is_token(value) else found for value in op.results]

    def _either(self, op: Any) -> list[Any]:
        one, other = map(self._block, op.regions)
        return [a & b if _is_token(value) else Unknown(_owners(value, a) | _owners(value, b))
                for value, a, b in zip(op.results, one, other, strict=True)]  # fmt: skip

    def guess(self) -> int:
        """The next number of iterations, or whether a condition is true."""
        self.guessed += 1
        return self.guesses[self.guessed % len(self.guesses) - 1]

    def _choice(self, op: Any) -> int:
        """The next branch; what the condition says after as many as a loop has guesses, so that
        loops end."""
        self.chosen[id(op)] += 1
        branches = self.choices[id(op)]
        return branches[(self.chosen[id(op)] - 1) % len(branches)]

    def _anywhere(self, op: Any, missing: str) -> list[Any]:
        places = [value for place in _PLACES for value in op.operands.get(place, ())]
        owners = frozenset().union(*(_owners(value, self.values[value]) for value in places))
        if not owners or not owners <= {*range(len(self.arrays))}:
            raise ExecutionError(f"the {missing} of {op.name} depends on what is not calculated")
        runs = [(n * SPACING, n * SPACING + self.arrays[n].nbytes) for n in sorted(owners)]
        return [*[UNKNOWN] * (len(op.results) - 1), self.transfer(op, np.asarray(runs))]

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
        """Notes an access to these runs of bytes; the accesses that its token represents."""
        writes = not op.name.startswith("load")
        before = self.value(op, "token") or 0
        line = op.place.line if op.place else 0
        found = TileAccess(
            self.names[op.results[-1]], line, writes, op.attributes["order"], runs, before
        )
        if (owner := found.left(self.arrays)) is not None:
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


def _with_inner(op: Any) -> Iterator[Any]:
    """The operation, and the operations of its regions, which may pass on what is known outside."""
    yield op
    for region in op.regions:
        yield from region.walk()


def _has_any(op: Any, is_one: Callable[[Any], bool]) -> bool:
    return any(is_one(inner) for region in op.regions for inner in region.walk())


def _is_access(op: Any) -> bool:
    return bool(op.name.endswith("_tko"))


def _leaves(op: Any) -> bool:
    return op.name in LEAVES


def _is_token(value: Any) -> bool:
    return value.type.kind == "token"


def _owners(value: Any, found: Any) -> frozenset[int]:
    """The parameters that pointers or a view point into; none for other values."""
    if isinstance(found, Unknown):
        return found.owners
    if value.type.kind == "tile":
        base = found if value.type["element"].kind == "ptr" else []
    else:
        base = getattr(getattr(found, "tensor", found), "base", [])
    return frozenset((np.unique(base) // SPACING).astype(int).tolist())


def _is_fraction(op: Any) -> bool:
    """Whether it makes numbers that are not integers, and nothing else."""
    return op.name == "constant" and op.results[0].type["element"].kind[0] in "fbt"


# -- views -----------------------------------------------------------------------------------------


def _load_view(run: Execution, op: Any) -> list[Any]:
    view = run.value(op, "view")
    done = run.transfer(op, runs_of_tile(run, op, view))
    if run.footprints_only:
        return [UNKNOWN, done]
    addresses, inside = grid(run, op, view)
    return [run.read(addresses, inside, _PADDING[view.padding], view.tensor.dtype), done]


def _store_view(run: Execution, op: Any) -> list[Any]:
    view = run.value(op, "view")
    done = run.transfer(op, runs_of_tile(run, op, view))
    if not run.footprints_only:
        run.write(*grid(run, op, view), run.value(op, "tile"))
    return [done]


def _pointers(run: Execution, op: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Addresses of a pointer tile, and where its mask is set."""
    addresses, mask = np.asarray(run.value(op, name)), run.value(op, "mask")
    return addresses, np.broadcast_to(True if mask is None else mask, addresses.shape)


def _load_pointers(run: Execution, op: Any) -> list[Any]:
    addresses, inside = _pointers(run, op, "source")
    done = run.transfer(op, runs_of_elements(addresses[inside], _itemsize(run, op, "source")))
    if run.footprints_only:
        return [UNKNOWN, done]
    fill = run.value(op, "padding")
    fill = 0 if fill is None else fill.flat[0]
    return [run.read(addresses, inside, fill, dtype_of(run, op)), done]


def _store_pointers(run: Execution, op: Any) -> list[Any]:
    addresses, inside = _pointers(run, op, "pointers")
    done = run.transfer(op, runs_of_elements(addresses[inside], _itemsize(run, op, "pointers")))
    if not run.footprints_only:
        run.write(addresses, inside, np.asarray(run.value(op, "value")))
    return [done]


def _update(run: Execution, op: Any) -> list[Any]:
    """One element after the other, so that one address may occur several times."""
    addresses, inside = _pointers(run, op, "pointers")
    done = run.transfer(op, runs_of_elements(addresses[inside], _itemsize(run, op, "pointers")))
    if run.footprints_only:
        return [UNKNOWN, done]
    array, index = run.elements(addresses[inside])
    given = [np.asarray(run.value(op, name))[inside] for name in ("compare", "value")
             if op.operands.get(name)]  # fmt: skip
    combine, found = _COMBINED[op.attributes.get("mode", "cas")], []
    for at, *operands in zip(index.tolist(), *given, strict=True):
        found.append(array[at])
        array[at] = combine(array[at], *operands)
    before = np.zeros(addresses.shape, array.dtype)
    before[inside] = found
    return [before, done]


def _unsigned(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(old: Any, new: Any) -> Any:
        return combine(*(x.view(f"u{x.itemsize}") for x in (old, new))).view(old.dtype)

    return apply


_COMBINED: Mapping[str, Callable[..., Any]] = {
    "add": np.add, "addf": np.add, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "max": np.maximum, "min": np.minimum, "umax": _unsigned(np.maximum),
    "umin": _unsigned(np.minimum), "xchg": lambda old, new: new,
    "cas": lambda old, compare, new: new if old.tobytes() == compare.tobytes() else old,
}  # fmt: skip
"""By the mode of an atomic update: an element afterwards."""


def _itemsize(run: Execution, op: Any, pointers: str) -> int:
    (found,) = op.operands[pointers]
    return int(np.dtype(run.dtype(found.type["element"]["pointee"])).itemsize)


def _offset(run: Execution, op: Any) -> list[Any]:
    offsets = run.value(op, "offsets").astype(np.int64)
    size = _itemsize(run, op, "pointers")
    return [np.asarray(run.value(op, "pointers")) + offsets * size]


# -- tokens and shapes -----------------------------------------------------------------------------


def _tensor_shape(run: Execution, op: Any) -> list[Any]:
    sizes = zip(run.value(op, "source").shape, op.results, strict=True)
    return [np.asarray(n).astype(run.dtype(v.type["element"])) for n, v in sizes]


def _index_space(run: Execution, op: Any) -> list[Any]:
    view = run.value(op, "source")
    dims = zip(view.dims, view.steps, strict=True)
    return [np.asarray(-(-view.tensor.shape[d] // step), np.int32) for d, step in dims]


def _join(run: Execution, op: Any) -> list[Any]:
    total = 0
    for token in run.all(op, "tokens"):
        total |= token
    return [total]


_OPERATIONS: Mapping[str, Calculation] = ARITHMETIC | CONTROL_FLOW | {
    "make_tensor_view": make_tensor,
    "make_partition_view": make_view,
    "make_strided_view": make_view, "make_gather_scatter_view": make_view,
    "load_view_tko": _load_view, "store_view_tko": _store_view, "load_ptr_tko": _load_pointers,
    "store_ptr_tko": _store_pointers, "atomic_rmw_tko": _update, "atomic_cas_tko": _update,
    "offset": _offset, "make_token": lambda run, op: [0], "join_tokens": _join,
    "get_tensor_shape": _tensor_shape, "get_index_space_shape": _index_space,
    "get_num_tile_blocks": lambda run, op: [np.int32(n + 2) for n in run.block],
    "get_tile_block_id": lambda run, op: [np.int32(n) for n in run.block],
}  # fmt: skip
