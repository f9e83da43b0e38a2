"""A function executed by the independent checker at several sizes, before its tokens are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import lcm
from typing import Any

import numpy as np

from tokenplan.checker.coverage import Coverage, places_of
from tokenplan.checker.errors import ExecutionError, TooManyOperationsError
from tokenplan.checker.memory import DYNAMIC, View, natural
from tokenplan.checker.tile_accesses import names_of
from tokenplan.checker.tile_arithmetic import CONVERSIONS
from tokenplan.checker.tile_blocks import Execution

MOST_STEPS = 20_000
"""Operations of one execution, at most."""
MOST_ENDLESS = 3
"""Executions one after the other that do not end, at most."""
ARRAY_BYTES = 2**36
MOST_EXTENT = 2**20
"""Of a dimension, to contain tiles that are far from its start."""
_DTYPES = {"bf16": np.uint16, "f8e4m3fn": np.uint8, "f8e5m2": np.uint8, "f8e8m0fnu": np.uint8}


@dataclass(frozen=True, slots=True)
class _Setting:
    """Of one execution; each number as near as the function's `assume` allows."""

    number: int
    """Scalars that are neither extents nor strides."""
    tiles: int = 0
    """Of each extent: so many, and one element of another where there are several; 0: a large
    extent."""
    block: tuple[int, int, int] = (0, 0, 0)
    guesses: tuple[int, ...] = (1,)
    """Used cyclically: iterations of loops, and branches, that depend on what is not calculated."""
    choices: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """As in `Execution`."""


_SETTINGS = (
    _Setting(3), _Setting(0, guesses=(0,)), _Setting(1, 1, guesses=(0, 1)),
    _Setting(2, block=(3, 2, 1), guesses=(2,)), _Setting(5, 3, guesses=(2, 0, 1)),
    _Setting(2, 3, (1, 1, 1), (0, 1, 2)),
)  # fmt: skip
_FURTHER = (
    *(
        _Setting(1, 3, block, guesses)
        for block in ((1, 1, 1), (0, 0, 0))
        for guesses in ((1, 0), (0, 1))
    ),
    *(_Setting(number, tiles) for number in (17, 130, 520, 2050) for tiles in (3, 0)),
)
"""Until every two accesses whose order matters are executed."""
_CHOSEN = (_Setting(3, 3, (1, 1, 1), (2, 1, 2)), _Setting(5, guesses=(2, 0, 1)),
           _Setting(130, 3), _Setting(6, 1, (1, 1, 1), (5, 5, 1)))  # fmt: skip
"""Then with the branches that such two are in."""
MOST_CHOSEN = 200
"""Pairs of accesses, at most, whose branches are executed so."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The checker's verdict: an order that no token has, or why not all is executed."""

    executed: int
    lost: str = ""
    reason: str = ""
    missing: str = ""
    """The first that no execution contains."""
    absent: tuple[tuple[str, ...], ...] = ()
    """Each access, and each two of others, that no execution contains."""

    @property
    def confirms(self) -> bool:
        """Whether every two accesses whose order matters are executed and ordered."""
        return bool(self.executed) and not (self.lost or self.missing)

    @property
    def text(self) -> str:
        """For the report."""
        if self.lost:
            return f"not rewritten: at concrete sizes the checker finds that {self.lost}"
        if self.confirms:
            return f"checked at {self.executed} concrete sizes: every order has a token"
        reason = (
            self.executed and self.missing and f"none of {self.executed} executes {self.missing}"
        )
        return f"not checked at concrete sizes: {reason or self.reason}"


def checked_at_sizes(function: Any, may_alias: Sequence[tuple[str, str]] = ()) -> Checked:
    """Executes the function, with loops that have no iteration and tiles that are partly outside,
    too.

    Dynamic extents and strides describe dense arrays, of a tile or more: what the orders assume.
    """
    parameters = function.body.arguments
    pointers = [n for n, value in enumerate(parameters) if _is_pointer(value)]
    at = {f"p{n}": number for number, n in enumerate(pointers)}
    aliases = [(at[a], at[b]) for a, b in may_alias if a in at and b in at]
    arrays = [np.broadcast_to(np.uint8(0), (ARRAY_BYTES,))] * len(pointers)
    covered = Coverage(places_of(function, names_of(function)), aliases)
    sizes, endless = _Sizes(function), 0
    for setting in _settings(covered):
        run = Execution(arrays, setting.block, _DTYPES, most_steps=MOST_STEPS,
                        footprints_only=True, guesses=setting.guesses,
                        choices=setting.choices)  # fmt: skip
        try:
            lost = next(run.run(function, sizes.of(setting)).lost(aliases), None)
        except (ExecutionError, OverflowError) as wrong:
            covered.reason = str(wrong)
            endless += isinstance(wrong, TooManyOperationsError)
            if endless >= _most_endless(sizes, run):
                break
            continue
        endless = 0
        if lost:
            return Checked(covered.executed, lost)
        covered.add(run.accesses, run.repeated)
        covered.outside.update(sizes.outside(run))
    return Checked(covered.executed, "", covered.reason, covered.missing(), (*covered.absent(),))


def _most_endless(sizes: _Sizes, run: Execution) -> int:
    """The number of executions to give up after; further ones are as long without parameters."""
    return MOST_ENDLESS if sizes.scalars or run.guessed or run.chosen else 1


def _is_pointer(parameter: Any) -> bool:
    return parameter.type["element"].kind == "ptr"


def _settings(covered: Coverage) -> Iterator[_Setting]:
    """Greater ones while accesses are missing, until one takes too long."""
    yield from _SETTINGS
    for setting in _FURTHER:
        before = covered.executed
        if covered.missing():
            yield setting
        if covered.executed == before:
            break
    yield from _chosen(covered)


def _chosen(covered: Coverage) -> Iterator[_Setting]:
    """Settings that execute the branches of each that is missing, until one helps."""
    tried = set[tuple[str, ...]]()
    while len(tried) < MOST_CHOSEN:
        absent = next((found for found in covered.absent() if found not in tried), None)
        if absent is None:
            return
        tried.add(absent)
        for setting, direction in product(_CHOSEN, (1, -1)):
            if absent in covered.absent():
                chosen = {op: found[::direction] for op, found in covered.choices(absent).items()}
                yield replace(setting, choices=chosen)


# -- sizes -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Limits:
    low: int
    high: int
    divisor: int = 1

    def nearest(self, number: int) -> int:
        """The number, or the next one that the limits allow."""
        found = -(-max(number, self.low) // self.divisor) * self.divisor
        return found if found <= self.high else self.high // self.divisor * self.divisor


@dataclass(frozen=True, slots=True)
class _Dimension:
    """Of a tensor view: a number, or the parameter that it is; the extent of a tile in it."""

    extent: Any
    stride: Any
    tile: int


class _Sizes:
    """Numbers for the parameters that are not pointers."""

    def __init__(self, function: Any) -> None:
        self.sources: dict[Any, Any] = {}
        self.scalars = [value for value in function.body.arguments if not _is_pointer(value)]
        self.limits = {value: _of_type(value) for value in self.scalars}
        self.views: list[list[_Dimension]] = []
        self.accesses: list[tuple[Any, list[_Dimension]]] = []
        self.reached: dict[Any, int] = {}
        """By extent, the end of the last tile of executions before."""
        tensors: dict[Any, list[_Dimension]] = {}
        tiles = dict(_tiles(function))
        for op in function.body.walk():
            if op.name in CONVERSIONS:
                (operand,) = op.inputs
                source = self.sources[op.results[0]] = self.sources.get(operand, operand)
                if source in self.limits:
                    predicate = op.attributes.get("predicate")
                    self.limits[source] = _limited(self.limits[source], predicate)
            elif op.name == "constant":
                number = int.from_bytes(op.attributes["value"], "little")
                self.sources[op.results[0]] = number
            elif op.name == "make_tensor_view":
                tensors[op.results[0]] = list(self.dimensions(op, tiles))
                self.views.append(tensors[op.results[0]])
            elif op.operands.get("tensor_view"):
                tensors[op.results[0]] = tensors[op.operands["tensor_view"][0]]
            elif op.operands.get("index"):
                self.accesses.append((op, tensors.get(op.operands["view"][0], [])))

    def dimensions(self, op: Any, tiles: Mapping[Any, Sequence[int]]) -> Iterator[_Dimension]:
        (view,) = op.results
        numbers = [
            [self.source(next(given)) if n == DYNAMIC else n for n in view.type[name]]
            for name in ("shape", "strides")
            for given in [iter(op.operands[name])]
        ]
        least = tiles.get(view, [1] * len(numbers[0]))
        yield from (_Dimension(*dim) for dim in zip(*numbers, least, strict=True))

    def source(self, value: Any) -> Any:
        return self.sources.get(value, value)

    def of(self, setting: _Setting) -> list[int]:
        """By parameter, extents and strides of dense arrays, and the setting's number."""
        found: dict[Any, int] = {}
        for tiles in dict.fromkeys((setting.tiles, 1)):  # one where strides cannot exceed more
            found.clear()
            for view in self.views:
                self.add_extents(view, replace(setting, tiles=tiles), found)
            # twice: a stride may be that of a view before
            are_disjoint = [self.add_strides(view, found) for view in self.views * 2]
            if all(are_disjoint):
                break
        return [found.get(v, self.limits[v].nearest(setting.number)) for v in self.scalars]

    def outside(self, run: Execution) -> Iterator[str]:
        """Accesses with a constant index outside of a constant extent; notes where others are,
        which large extents contain from now on."""
        for op, index, dim, start, extent in self.starts(run):
            limits, end = self.limits.get(dim.extent), start + dim.tile
            if limits and end <= min(MOST_EXTENT, limits.high):
                self.reached[dim.extent] = max(self.reached.get(dim.extent, 0), end)
            elif start >= extent and {type(dim.extent), type(self.source(index))} == {int}:
                yield run.names[op.results[-1]]

    def starts(self, run: Execution) -> Iterator[tuple[Any, Any, _Dimension, int, int]]:
        """By dimension of the last tile of each access: where it starts, and the extent."""
        for op, dims in self.accesses:
            view = run.values.get(op.operands["view"][0])
            if dims and isinstance(view, View) and view.sparse is None:
                for index, at, step in zip(
                    op.operands["index"], view.dims, view.steps, strict=True
                ):
                    number = run.values.get(index)
                    if isinstance(number, np.ndarray | np.generic):
                        yield op, index, dims[at], natural(number) * step, view.tensor.shape[at]

    def add_extents(self, view: list[_Dimension], setting: _Setting, found: dict[Any, int]) -> None:
        strides = [dim.stride for dim in view if isinstance(dim.stride, int)]
        large = 1 << max(4, min(16, 24 // max(1, len(view))))
        for dim in view:
            if dim.extent in self.limits:
                some = setting.tiles * dim.tile + (setting.tiles > 1)
                stride = dim.stride if isinstance(dim.stride, int) else 1
                some = some or max(large, self.reached.get(dim.extent, 0))
                size = max(dim.tile, _fitting(some, stride, strides))
                size = self.limits[dim.extent].nearest(size)
                found[dim.extent] = max(size, found.get(dim.extent, 0))

    def add_strides(self, view: list[_Dimension], found: dict[Any, int]) -> bool:
        """Constant strides inside, then the parameters, of the last dimension first; this one is
        inside of all where that leaves elements disjoint, or all are between two constants."""
        constants = sorted((d for d in view if isinstance(d.stride, int)), key=lambda d: d.stride)
        others = [dim for dim in reversed(view) if not isinstance(dim.stride, int)]
        orders = [(*others[:1], *constants, *others[1:])]
        orders += [(*constants[:n], *others, *constants[n:]) for n in range(len(constants), 0, -1)]
        for order in orders:
            strides = self.strides(order, found)
            if strides is not None:
                found.update(strides)
                return True
        return False

    def strides(
        self, order: Sequence[_Dimension], found: Mapping[Any, int]
    ) -> dict[Any, int] | None:
        """The least strides that exceed what the dimensions before reach, if there are any."""
        strides, reach = dict(found), 0
        for dim in order:
            if dim.stride in self.limits:
                least = max(reach + 1, strides.get(dim.stride, 0))
                strides[dim.stride] = self.limits[dim.stride].nearest(least)
            extent, stride = (strides.get(n, n) for n in (dim.extent, dim.stride))
            if isinstance(stride, int) and isinstance(extent, int) and extent > 1:
                if stride <= reach:
                    return None
                reach += (extent - 1) * stride
        return strides


def _of_type(value: Any) -> _Limits:
    bits = value.type["element"].kind[1:]
    if bits == "1":
        return _Limits(0, 1)
    limit = 1 << (int(bits) if bits.isdigit() else 32) - 1
    return _Limits(-limit, limit - 1)


def _limited(known: _Limits, predicate: Any) -> _Limits:
    """The limits with the bounds or the divisor of a predicate."""
    if getattr(predicate, "divisor", None):
        return replace(known, divisor=lcm(known.divisor, predicate.divisor))
    low, high = (getattr(predicate, name, None) for name in ("low", "high"))
    return replace(known, low=known.low if low is None else max(known.low, low),
                   high=known.high if high is None else min(known.high, high))  # fmt: skip


def _tiles(function: Any) -> Iterator[tuple[Any, list[int]]]:
    """The extents of a tile in each tensor view."""
    for op in function.body.walk():
        if op.operands.get("tensor_view"):
            kind, (tensor,) = op.results[0].type, op.operands["tensor_view"]
            if kind.kind != "gather_scatter_view":
                yield (
                    tensor,
                    [n for _, n in sorted(zip(kind["dim_map"], kind["tile"], strict=True))],
                )


def _fitting(free: int, stride: int, strides: Sequence[int]) -> int:
    """The extent, or less where a greater constant stride ends the dimension before."""
    return min([free, *(other // stride for other in strides if 0 < stride < other)])
