"""Accesses as Tile IR: the views that layouts allow, index arithmetic, pointer tiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from neuroncore.layout.factors import merged
from neuroncore.program import Affine
from tokenplan.tile_ir.bytecode import Type, Value
from tokenplan.tile_ir.bytecode.building import BodyBuilder
from tokenplan.tile_ir.bytecode.types import TOKEN, pointer, tile
from tokenplan.tile_ir.computations import broadcast, kind_of
from tokenplan.tile_ir.description import Array, DescriptionError, Transfer
from tokenplan.tile_ir.integers import INDEX_END
from tokenplan.tile_ir.tile_views import Flip, TileView, ViewDim, lower

Attributes = dict[str, object]
_PADDING = {"zero": 0.0, "neg_zero": -0.0, "nan": float("nan"), "pos_inf": float("inf"),
            "neg_inf": float("-inf")}  # fmt: skip


def view_of(made: Transfer) -> TileView:
    """How the access is made: the layout's verdict on its tile, or a strided view.

    A traversal other than the tile's extents needs one stride per dimension. Atomic updates have no
    views in the subset.
    """
    found = lower(made.array.layout, made.tile.shape)
    if made.kind == "atomic":
        return TileView("pointer_tile", found.tile, reason="an atomic update")
    if made.traversal is None:
        return found
    if len(found.dims) == len(made.tile.shape) and found.is_view and not found.flips:
        return TileView("strided_view", found.tile, found.dims, found.offset)
    return TileView("pointer_tile", found.tile, reason="a strided traversal of a tiled layout")


def check_index_space(made: Transfer, ranges: Mapping[str, tuple[int, int]]) -> None:
    """Raises DescriptionError for an index outside of a view: Tile IR does not define the access.

    Of a pointer tile, what is outside is masked.
    """
    for dim, (index, step) in enumerate(zip(made.index, made.step, strict=True)):
        size, last, name = made.array.shape[dim], index.bounds(ranges)[1], made.array.name
        if last * step >= size and view_of(made).is_view:
            raise DescriptionError(
                f"{made.id}: no element of tile {last} along dimension {dim} is in {name}",
                expected=f"indices up to {(size - 1) // step}",
                got=str(index) if index.is_constant else f"{index}, up to {last}",
                hint="use fewer iterations or a longer array: the last tile may be outside in part",
                rule=_SPACE,
            )  # fmt: skip


_SPACE = "CUDA Tile IR: indices lie within the index space of a view"


@dataclass
class Views:
    """Views that exist already, by what they show."""

    body: BodyBuilder
    ranges: Mapping[str, tuple[int, int]]
    """Of variables."""
    bases: dict[str, Value] = field(default_factory=dict)
    variables: dict[str, Value] = field(default_factory=dict)
    known: dict[tuple[str, Type], Value] = field(default_factory=dict)

    def view(self, made: Transfer) -> Value | None:
        """The view of an access, which all that use the same share; None for a pointer tile."""
        array, view = made.array, view_of(made)
        if not view.is_view:
            return None
        shape = tuple(dim.size for dim in view.dims)
        strides = tuple(dim.stride for dim in view.dims)
        kind = Type("tensor_view", (Type(array.dtype), shape, strides, None))
        tensor = self._once(array, kind, "make_tensor_view", "base", self._base(array, view.offset))
        extents, order = tuple(dim.tile for dim in view.dims), tuple(range(len(shape)))
        fields = {
            "partition_view": (extents, kind, order, made.padding),
            "strided_view": (extents, made.traversal, kind, order, made.padding),
            "gather_scatter_view": (extents, kind, view.rows, made.padding),
        }[view.kind]
        return self._once(
            array, Type(view.kind, fields), f"make_{view.kind}", "tensor_view", tensor
        )

    def _once(self, array: Array, kind: Type, operation: str, operand: str, source: Value) -> Value:
        if (array.name, kind) not in self.known:
            self.known[array.name, kind] = self.body.one(operation, kind, **{operand: source})
        return self.known[array.name, kind]

    def _base(self, array: Array, offset: int) -> Value:
        base = self.bases[array.name]
        if not offset:
            return base
        moved = self.body.one("offset", base.type, pointers=base, offsets=self.body.integer(offset))
        together = array.alignment | offset * array.itemsize
        return self.body.multiple(moved, together & -together)

    # -- loads and stores -------------------------------------------------------------------------

    def load(
        self, made: Transfer, attributes: Attributes, token: Value | None
    ) -> tuple[Value, Value]:
        """The tile and the token of the load."""
        view, found = self.view(made), view_of(made)
        if view is None:
            pointers, mask = self._pointers(made)
            padding = _PADDING[made.padding or "zero"]
            filled = self.body.constant(kind_of(made.tile), padding) if mask else None
            value, done = self.body.add(
                "load_ptr_tko", (kind_of(made.tile), TOKEN), attributes,
                source=pointers, mask=mask, padding=filled, token=token,
            )  # fmt: skip
            return value, done
        kind = tile(made.tile.dtype, *(dim.tile for dim in found.dims))
        value, done = self.body.add(
            "load_view_tko", (kind, TOKEN), attributes,
            view=view, index=self._indices(made, found), token=token,
        )  # fmt: skip
        return self._reshaped(value, kind_of(made.tile)), done

    def store(
        self, made: Transfer, value: Value, attributes: Attributes, token: Value | None
    ) -> Value:
        """The token of the store."""
        view, found = self.view(made), view_of(made)
        if view is None:
            pointers, mask = self._pointers(made)
            return self.body.one(
                "store_ptr_tko", TOKEN, attributes,
                pointers=pointers, value=value, mask=mask, token=token,
            )  # fmt: skip
        kind = tile(made.tile.dtype, *(dim.tile for dim in found.dims))
        index = self._indices(made, found)
        return self.body.one(
            "store_view_tko", TOKEN, attributes,
            tile=self._reshaped(value, kind), view=view, index=index, token=token,
        )  # fmt: skip

    def atomic(
        self, made: Transfer, operand: Value, attributes: Attributes, token: Value | None
    ) -> tuple[Value, Value]:
        """The elements before the update, and its token."""
        pointers, mask = self._pointers(made)
        before, done = self.body.add(
            "atomic_rmw_tko", (operand.type, TOKEN), {**attributes, "mode": made.mode},
            pointers=pointers, value=operand, mask=mask, token=token,
        )  # fmt: skip
        return before, done

    def _reshaped(self, value: Value, kind: Type) -> Value:
        return value if value.type == kind else self.body.one("reshape", kind, source=value)

    # -- indices ----------------------------------------------------------------------------------

    def _indices(self, made: Transfer, view: TileView) -> list[Value]:
        """The index of the tile in each dimension of the view."""
        of_tile = [self.index(i) for i in made.index]
        found = []
        for at, dim in enumerate(view.dims):
            flips = [flip for flip in view.flips if flip.target == at]
            if at == view.rows:
                found.append(self._rows(dim, of_tile, flips))
            else:
                found.append(self._flipped(self._digit(dim, of_tile[dim.dim]), of_tile, flips))
        return found

    def _digit(self, dim: ViewDim, index: Value) -> Value:
        if dim.modulus == 1:
            return self.body.integer(0)
        if dim.divisor > 1:
            index = self._combine("divi", index, dim.divisor)
        return self._combine("remi", index, dim.modulus) if dim.modulus else index

    def _flipped(self, found: Value, of_tile: list[Value], flips: Iterable[Flip]) -> Value:
        """XOR of `found` with bits of tile indices, together where they shift alike."""
        groups: dict[tuple[int, int], int] = defaultdict(int)
        for flip in flips:
            groups[flip.dim, flip.mask.bit_length() - 1 - flip.bit] |= 1 << flip.bit
        for (dim, shift), bits in groups.items():
            found = self._xor(found, of_tile[dim], bits, shift)
        return found

    def _xor(self, found: Value, source: Value, bits: int, shift: int) -> Value:
        masked = self._combine("andi", source, bits)
        if shift:
            masked = self._combine("shli" if shift > 0 else "shri", masked, abs(shift))
        return self._combine("xori", found, broadcast(self.body, self._ranked(masked, found),
                                                      found.type["shape"]))  # fmt: skip

    def _ranked(self, value: Value, like: Value) -> Value:
        """A scalar with as many dimensions as another tile."""
        ones = tuple(1 for _ in like.type["shape"])
        return value if value.type["shape"] else self._reshaped(value, tile("i32", *ones))

    def _rows(self, dim: ViewDim, of_tile: list[Value], flips: list[Flip]) -> Value:
        """The rows of a tile in a dimension that is permuted."""
        kind = tile("i32", dim.tile)
        lane = self.body.one("iota", kind)
        start = self._combine("muli", of_tile[dim.dim], dim.tile)
        found = self._combine("addi", lane, broadcast(self.body, self._ranked(start, lane),
                                                      (dim.tile,)))  # fmt: skip
        for flip in flips:
            source = lane if flip.is_local else of_tile[flip.dim]
            shift = flip.mask.bit_length() - 1 - flip.bit
            found = self._xor(found, source, 1 << flip.bit, shift)
        return found

    def index(self, index: Affine) -> Value:
        """The index as an i32."""
        found: Value | None = None
        for name, factor in index.terms:
            term = self.variables[name]
            if factor != 1:
                term = self._combine("muli", term, factor)
            found = term if found is None else self._combine("addi", found, term)
        if found is None:
            return self.body.integer(index.constant)
        return self._combine("addi", found, index.constant) if index.constant else found

    def _combine(self, name: str, lhs: Value, rhs: Value | int) -> Value:
        if isinstance(rhs, int):
            rhs = self.body.constant(lhs.type, rhs)
        return self.body.one(name, lhs.type, _INTEGER.get(name, {}), lhs=lhs, rhs=rhs)

    # -- pointer tiles ----------------------------------------------------------------------------

    def _pointers(self, made: Transfer) -> tuple[Value, Value | None]:
        """The address of each element, and which are inside the array where some might not be."""
        shape, array = made.tile.shape, made.array
        kind, mask = tile("i32", *shape), None
        ends = self._ends(made)
        total = self.body.constant(kind, array.layout.offset)
        for dim, (index, step) in enumerate(zip(made.index, made.step, strict=True)):
            along = self._coordinates(self.index(index), step, dim, shape)
            for stride, divisor, modulus in _digits(merged(array.layout.dims[dim])):
                digit = self._combine("divi", along, divisor) if divisor > 1 else along
                digit = self._combine("remi", digit, modulus) if modulus else digit
                total = self._combine("addi", total, self._combine("muli", digit, stride))
            if ends[dim] > array.shape[dim]:
                mask = self._inside(along, array.shape[dim], mask)
        total = self._swizzled(total, array)
        scalar = tile(pointer(array.dtype), *(1 for _ in shape))
        base = self._reshaped(self.bases[array.name], scalar)
        wide = broadcast(self.body, base, shape)
        return self.body.one("offset", wide.type, pointers=wide, offsets=total), mask

    def _ends(self, made: Transfer) -> list[int]:
        """By dimension, where the last tile ends."""
        layout, dims = made.array.layout, zip(made.index, made.step, made.tile.shape, strict=True)
        span = sum((n - 1) * abs(s) for factors in layout.dims for n, s in factors)
        ends = [at.bounds(self.ranges)[1] * step + extent for at, step, extent in dims]
        if max(span + abs(layout.offset), *ends) >= INDEX_END:
            raise DescriptionError(
                f"{made.id}: the offsets of a pointer tile have 32 bits",
                got=f"{made.array.name} spans {span + 1} elements, the tiles end at {max(ends)}",
            )
        return ends

    def _coordinates(self, start: Value, step: int, dim: int, shape: tuple[int, ...]) -> Value:
        """The index of each element in one dimension, as a tile of the whole shape."""
        extent = shape[dim]
        lane = self.body.one("iota", tile("i32", extent))
        first = self._ranked(self._combine("muli", start, step), lane)
        along = self._combine("addi", lane, broadcast(self.body, first, (extent,)))
        ones = tuple(extent if at == dim else 1 for at in range(len(shape)))
        return broadcast(self.body, self._reshaped(along, tile("i32", *ones)), shape)

    def _inside(self, along: Value, size: int, mask: Value | None) -> Value:
        limit = self.body.constant(along.type, size)
        kind = tile("i1", *along.type["shape"])
        attributes = {"comparison": "lt", "signedness": "signed"}
        found = self.body.one("cmpi", kind, attributes, lhs=along, rhs=limit)
        return found if mask is None else self.body.one("andi", kind, lhs=mask, rhs=found)

    def _swizzled(self, address: Value, array: Array) -> Value:
        groups: dict[int, int] = defaultdict(int)
        for bit, column in enumerate(array.layout.swizzle.columns):
            for low in range(bit):
                if column >> low & 1:
                    groups[low - bit] |= 1 << bit
        found = address
        for shift, bits in groups.items():
            found = self._xor(found, address, bits, shift)
        constant = array.layout.swizzle.constant
        return self._combine("xori", found, constant) if constant else found


def _digits(factors: tuple[tuple[int, int], ...]) -> Iterable[tuple[int, int, int]]:
    """Stride, divisor and modulus of each factor; modulus 0: none."""
    divisor = 1
    for at, (size, stride) in reversed(list(enumerate(factors))):
        yield stride, divisor, size if at else 0
        divisor *= size


_NONE: Attributes = {"overflow": "none"}
_INTEGER: dict[str, Attributes] = {
    "addi": _NONE, "muli": _NONE, "shli": _NONE, "shri": {"signedness": "unsigned"},
    "divi": {"signedness": "unsigned", "rounding": "zero"}, "remi": {"signedness": "unsigned"},
}  # fmt: skip
