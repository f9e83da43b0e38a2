"""The tensors of a 0.1 kernel: operators, subscripts and views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.errors import AccessError, ShapeError
from neuroncore.machine.results import described
from neuroncore.memory import Dynamic, View
from nki_beta1.access.access import Access, access
from nki_beta1.access.access_plans import planned_access
from nki_beta1.access.indirect import Indirect, Offset, indirect
from nki_beta1.call import elementwise
from nki_beta1.call.assignment import add_to, assign, update
from nki_beta1.execution.indirection import derived_indirection
from nki_beta1.execution.tensor import PUBLIC, Tensor
from nki_beta1.index.axes import Grid, expanded
from nki_beta1.index.expression import RULE, Index
from nki_beta1.index.views import plain
from nki_beta1.values.attributes import call_by_name, later_method
from nki_beta1.values.special_methods import reject, reject_equality
from nki_dtypes import DType


def _sum(self: Tile, other: Any) -> Any:
    """`+`; one number and an index expression make an index that the device moves."""
    if other.__class__ is Index and self.size == 1:
        return Offset(self, other)
    return _added(self, other)


def _operator(op: str, equality: str = "") -> Callable[..., Any]:
    def operator(self: Tile, other: Any) -> Any:
        if not elementwise.is_operand(other):
            return reject_equality(self, equality, other) if equality else NotImplemented
        return elementwise.binary(op, self, other, spread=False)

    return operator


def _reflected(op: str) -> Callable[..., Any]:
    def operator(self: Tile, other: Any) -> Any:
        if not elementwise.is_operand(other):
            return NotImplemented
        return elementwise.binary(op, other, self, spread=False)

    return operator


def _in_place(op: str) -> Callable[..., Any]:
    def operator(self: Tile, other: Any) -> Any:
        if self.is_value:  # the name is bound to a new value; other names keep the old one
            return elementwise.binary(op, self, other, spread=False)
        return update(op, self, other)

    return operator


_added, _added_reflected = _operator("add"), _reflected("add")


def _reflected_sum(self: Tile, other: Any) -> Any:
    return _sum(self, other) if other.__class__ is Index else _added_reflected(self, other)


_raised = _operator("power")


def _power(self: Tile, other: Any, modulo: Any = None) -> Any:
    """`self ** other`, and `pow(self, other)`."""
    return _raised(self, other) if modulo is None else reject(self, "pow() with a modulus")


class Tile(Tensor):
    """A tensor of a 0.1 kernel with its operators, subscripts and views."""

    __slots__ = ()
    __hash__ = object.__hash__
    most_dims = 32
    """What NumPy addresses: no document of 0.1 limits the rank of a tile."""

    def update_access(self, op: str, access: Any, value: Any) -> Any:
        return add_to(access, value) if op == "add" else update(op, access, value)

    # -- parts of it ------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if self._pending is not None or self.is_shared:
            self.detach()
        if key.__class__ is tuple:
            found = planned_access(self, key)
            if found is not None:
                return found
        items = key if type(key) is tuple else tuple(key) if type(key) is Grid else (key,)
        kinds = set(map(type, items))
        if kinds.isdisjoint(_INDICES):
            return plain(super().__getitem__(key))
        return self._accessed(items, kinds)

    def _accessed(self, items: Any, kinds: set[type]) -> Any:
        """The access by subscripts of these types, at least one of them of the language."""
        if not kinds.isdisjoint(_ACCESSES):
            return self[tuple([i.read() if isinstance(i, Access) else i for i in items])]
        if len(items) != self.ndim or type(...) in kinds:
            items = expanded(items, self.ndim)
        return access(self, items) if kinds.isdisjoint(_OF_DEVICE) else indirect(self, list(items))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, type(Ellipsis)) and not self.is_shared and not self.is_pending:
            assign(self, value)
        else:
            assign(self[key], value)

    def __iter__(self) -> Any:
        raise AccessError("a tile is not iterable", hint="loop over nl.affine_range", rule=RULE)

    # -- views and copies -------------------------------------------------------------------------

    def broadcast_to(self, shape: tuple[int, ...]) -> Any:
        """The tile repeated along axes of extent 1."""
        return elementwise.broadcast_to(self, shape)

    def astype(self, dtype: Any) -> Any:
        """A copy in another dtype."""
        return elementwise.copy(self, dtype=dtype)

    def expand_dims(self, axis: int) -> Any:
        """The same elements with an axis of extent 1 inserted before free axis `axis`."""
        rank = self.ndim + 1
        at = axis + rank if axis < 0 else axis
        if not 0 <= at < rank:
            raise ShapeError(f"expand_dims at {axis} of a tile of rank {self.ndim}", rule=RULE)
        return self._seen(View.expand_dim(self._own(), at))

    def reshape(self, shape: tuple[int, ...] | list[int]) -> Any:
        """The same elements in another shape; the partition dimension stays."""
        return self._seen(View.reshape(self._own(), shape))

    def view(self, dtype: Any) -> Any:
        """The same bytes as another dtype."""
        return self._seen(View.view(self._own(), dtype))

    def transposed(self, order: tuple[int, ...]) -> Any:
        """The same elements with the axes in another order; the partition dimension stays first."""
        return View.permute(self._own(), order)

    def _own(self) -> Tile:
        self.detach()
        return self

    def _seen(self, view: Any) -> Any:
        """A view of all of this: of a value it is a value too, which `+=` does not write to."""
        view.is_value = self.is_value
        return view

    def derive(  # type: ignore[bad-override] # a part of a tile is a plain view
        self, array: np.ndarray, start: int, dtype: DType | None = None,
        dynamic: Dynamic | None = None, indirect: Any = None,
    ) -> View:  # fmt: skip
        """As View.derive; a view of an indirect view is indirect."""
        if dynamic is None and self.dynamic is not None:
            dynamic, indirect = derived_indirection(self, array)
        return plain(View.derive(self, array, start, dtype, dynamic, indirect))

    def at_offset(self, offset: int, what: str) -> View:  # type: ignore[bad-override]
        fixed = plain(View.derive(self, self.array, self.spec.start, self.spec.dtype))
        return View.at_offset(fixed, offset, what)

    def along(self, array: np.ndarray, start: int) -> View:  # type: ignore[bad-override]
        return self.derive(array, start)

    def ready(self, keeps_offset: bool = False) -> None:
        self.initialize()  # `derive` sees to dynamic offsets

    ap, broadcast, expand_dim = map(later_method, ("ap", "broadcast", "expand_dim"))
    get_pattern, permute = later_method("get_pattern"), later_method("permute")
    squeeze_dim, slice = later_method("squeeze_dim"), later_method("slice")
    select, vector_select = later_method("select"), later_method("vector_select")
    rearrange, reshape_dim = later_method("rearrange"), later_method("reshape_dim")
    flatten_dims = later_method("flatten_dims")

    # -- operators --------------------------------------------------------------------------------

    __add__, __radd__ = _sum, _reflected_sum
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _operator("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _reflected("divide")
    __pow__, __rpow__ = _power, _reflected("power")
    __mod__, __rmod__ = _operator("mod"), _reflected("mod")
    __and__, __rand__ = _operator("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _operator("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _operator("bitwise_xor"), _reflected("bitwise_xor")
    __lshift__, __rshift__ = _operator("left_shift"), _operator("right_shift")
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __eq__ = _operator("equal", "==")  # type: ignore[assignment]
    __ne__ = _operator("not_equal", "!=")  # type: ignore[assignment]
    __isub__, __imul__ = _in_place("subtract"), _in_place("multiply")
    __itruediv__, __ipow__, __imod__ = map(_in_place, ("divide", "power", "mod"))
    __iand__, __ior__, __ixor__ = map(_in_place, ("bitwise_and", "bitwise_or", "bitwise_xor"))
    __ilshift__, __irshift__ = _in_place("left_shift"), _in_place("right_shift")

    def __iadd__(self, other: Any) -> Any:
        if self.is_value:
            return elementwise.binary("add", self, other, spread=False)
        return add_to(self, other)

    def __neg__(self) -> Any:
        return elementwise.negative(self)

    def __invert__(self) -> Any:
        return elementwise.invert(self)

    def __abs__(self) -> Any:
        return elementwise.unary("abs", self)

    def __str__(self) -> str:
        return described(self)

    def __repr__(self) -> str:
        return f"<tile {self.shape}, {self.dtype}, {self.buffer.name.upper()}>"


_ACCESSES = {Access, Indirect}
_OF_DEVICE = {Tile, Offset}
_INDICES = {Index} | _ACCESSES | _OF_DEVICE
"""Types of subscripts that views of the machine do not take."""

call_by_name("t", {name: getattr(Tile, name) for name in PUBLIC})
