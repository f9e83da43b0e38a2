"""The tensors of a 0.1 kernel: operators, index expressions, values that wait for a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from neuroncore.engines import HBM, Space
from neuroncore.errors import AccessError, ShapeError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import Dynamic, View
from neuroncore.results import described
from nki_beta1 import _elementwise as elementwise
from nki_beta1._access import Access, access
from nki_beta1._assign import add_to, assign, update, without_ones
from nki_beta1._axes import Grid, expanded
from nki_beta1._borrowed import borrows
from nki_beta1._emit import Core, Waiting
from nki_beta1._forms import known_access
from nki_beta1._index import RULE, Index
from nki_beta1._indirect import Indirect, indirect
from nki_beta1._mask import Region
from nki_beta1._misfit import call_by_name, later_method, unknown_name
from nki_beta1._moved import carried
from nki_beta1._not_an_array import NotAnArray
from nki_beta1._offset import Offset
from nki_beta1._part import plain
from nki_beta1._specials import refuse, refuse_equality
from nki_beta1._sums import adds, pass_on
from nki_dtypes import DType, bool_, tfloat32

_MATMUL = INSTRUCTIONS["nc_matmul"]


def shown_dtype(dtype: DType) -> Any:
    """A dtype as 0.1 shows it: NumPy's own, which host code can use."""
    if dtype is bool_:
        return np.dtype(np.bool_)
    return dtype if dtype is tfloat32 else dtype.storage


def _sum(self: Tile, other: Any) -> Any:
    """`+`; one number and an index expression make an index that the device moves."""
    if other.__class__ is Index and self.size == 1:
        return Offset(self, other)
    return _added(self, other)


def _operator(op: str, equality: str = "") -> Callable[..., Any]:
    def operator(self: Tile, other: Any) -> Any:
        if not elementwise.is_operand(other):
            return refuse_equality(self, equality, other) if equality else NotImplemented
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
    return _raised(self, other) if modulo is None else refuse(self, "pow() with a modulus")


class Tile(NotAnArray, View):
    """A tensor of a 0.1 kernel, or a view of one.

    Results of instructions are values: their tile is made when they are first used, unless the
    instruction can write to the tensor that they are assigned to. `region` is what the mask of the
    instruction let it write.
    """

    __slots__ = ("__weakref__", "_waiting", "is_lent", "is_value", "region")
    _waiting: Waiting | None
    is_lent: bool
    is_value: bool
    region: Region | None
    core: Core  # type: ignore[assignment]
    __hash__ = object.__hash__

    # -- values -----------------------------------------------------------------------------------

    def wait(self, waiting: Waiting) -> None:
        self._waiting, self.is_value, self.region = waiting, True, waiting.region
        self.is_lent = False

    @property
    def is_waiting(self) -> bool:
        return self._waiting is not None

    def __getattr__(self, name: str) -> Any:
        if name in View.__slots__ and self._waiting is not None:
            self.realize()
            return getattr(self, name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise unknown_name("a tile of NKI 0.1", name, PUBLIC)

    def realize(self) -> None:
        """Execute the waiting instruction into a fresh tile."""
        core = self.core
        if core.waiting is not self:
            core.flush()
        waiting = self._waiting
        if waiting is None:
            return
        self._waiting = None
        if core.waiting is self:
            core.waiting = None
        ready = waiting.ready
        if ready is not None and ready.covers:
            if core.watchers or not waiting.used.loads or not borrows(self, waiting):
                waiting.into_new(self)
            return
        made = core.allocate(waiting.shape, waiting.dtype, waiting.space, place=waiting.place)
        self._become(made)
        waiting.into_own(self)
        self._keep_region()

    def detach(self) -> None:
        """Stop relying on another tensor's content, which is about to change."""
        if self._waiting is not None:
            self.realize()
        if self.is_lent:
            own = self.core.allocate(self.shape, self.spec.dtype, self.spec.space)
            own.claim()
            own.array[...] = self.array
            self.core.moved(own, self)
            pass_on(self.core, self, own)
            self.core.passed_on(self.storage, own.storage)
            self._become(own)
            self.is_lent = False
            self._keep_region()

    def _keep_region(self) -> None:
        """What the mask let be written is all there is until something else writes to the tile."""
        if self.region is not None:
            self.core.masked.setdefault(id(self.storage), []).append(ref(self))

    def run_into(self, target: View) -> bool:
        """Execute the waiting instruction into `target` if the result is the same as copying."""
        waiting = self._waiting
        if waiting is None or self.core.waiting is not self or target.dynamic is not None:
            return False
        spec = target.spec
        if waiting.dtype is not spec.dtype or waiting.space is not spec.space or not spec.mutable:
            return False
        same_shape = waiting.shape == spec.shape
        if not same_shape and without_ones(waiting.shape) != without_ones(spec.shape):
            return False
        if any(view.storage is target.storage for view in waiting.inputs):
            return False
        if not same_shape:
            target.settle()
            target = target.derive(target.array.reshape(waiting.shape), spec.start)
        self._waiting = self.core.waiting = None
        waiting.into(target)
        self._become(target)
        self.is_lent = True
        self.core.lend(target.storage, self)
        return True

    def waiting_call(self) -> Waiting | None:
        """The instruction whose result this is, while nothing has happened since."""
        waiting = self._waiting
        return waiting if waiting is not None and self.core.waiting is self else None

    def waiting_matmul(self) -> Waiting | None:
        """The matmul whose result this is, while nothing has happened since."""
        waiting = self.waiting_call()
        if waiting is None or waiting.used.record is not _MATMUL:
            return None
        region = waiting.region
        return waiting if region is None or region.inside is None else None

    def add_into(self, target: View) -> None:
        """Execute the waiting matmul so that it adds to `target`.

        PSUM that nothing has written starts a sum with the first matmul, as the hardware's
        accumulation does; what zeros, a copy or an activation has put there is added to.
        """
        waiting = self._waiting
        assert waiting is not None
        self.core.waiting = None
        part = target if waiting.region is None else waiting.region.of(target)
        waiting.into(target, accumulate=True if adds(self.core, part) else None)
        for operand in waiting.inputs:  # should the product be asked for after all
            self.core.lend(operand.storage, self)

    def _become(self, other: View) -> None:
        self.array, self.spec, self.storage = other.array, other.spec, other.storage
        self.dynamic = None

    # -- what it is -------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape if self._waiting is None else self._waiting.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        return shown_dtype(self.spec.dtype if self._waiting is None else self._waiting.dtype)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return (self.spec if self._waiting is None else self._waiting).dtype.itemsize

    @property
    def buffer(self) -> Space:
        return self.spec.space if self._waiting is None else self._waiting.space

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        """True for a tensor in HBM: `if bias:` asks whether an optional argument was given."""
        if self.buffer in HBM:
            return True
        raise AccessError(
            "a tile has no truth value",
            hint="its elements are known only on the device; use masks, nl.where or nl.all",
            rule="NKI 0.1: control flow",
        )

    # -- parts of it ------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if self._waiting is not None or self.is_lent:
            self.detach()
        if key.__class__ is tuple:
            known = known_access(self, key)
            if known is not None:
                return known
        items = key if type(key) is tuple else tuple(key) if type(key) is Grid else (key,)
        kinds = {item.__class__ for item in items}
        if kinds <= _AFFINE and Index in kinds:
            return access(self, items if len(items) == self.ndim else expanded(items, self.ndim))
        if Access in kinds or Indirect in kinds:
            return self[tuple([i.read() if isinstance(i, Access) else i for i in items])]
        if Tile in kinds or Offset in kinds:
            return indirect(self, expanded(items, self.ndim))
        if Index in kinds:
            return access(self, expanded(items, self.ndim))
        return plain(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, type(Ellipsis)) and not self.is_lent and not self.is_waiting:
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

    def turned(self, order: tuple[int, ...]) -> Any:
        """The same elements with the axes in another order; the partition dimension stays first."""
        return View.permute(self._own(), order)

    def _own(self) -> Tile:
        self.detach()
        return self

    def _seen(self, view: Any) -> Any:
        """A view of all of this: of a value it is a value too, which `+=` does not write to."""
        view.is_value = self.is_value
        return view

    def derive(
        self, array: np.ndarray, start: int, dtype: DType | None = None,
        dynamic: Dynamic | None = None, indirect: Any = None,
    ) -> View:  # fmt: skip
        """As View.derive; what a tile moves stays moved by it."""
        if dynamic is None and self.dynamic is not None:
            dynamic, indirect = carried(self, array)
        return plain(View.derive(self, array, start, dtype, dynamic, indirect))

    def at_offset(self, offset: int, what: str) -> View:
        fixed = plain(View.derive(self, self.array, self.spec.start, self.spec.dtype))
        return View.at_offset(fixed, offset, what)

    def along(self, array: np.ndarray, start: int) -> View:
        return self.derive(array, start)

    def ready(self, keeps_offset: bool = False) -> None:
        self.settle()  # `derive` sees to dynamic offsets

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


_AFFINE = {Index, int, slice}
"""What most subscripts are made of."""

PUBLIC = ("astype", "broadcast_to", "buffer", "dtype", "expand_dims", "itemsize", "ndim",
          "reshape", "shape", "view")  # fmt: skip
"""What a kernel may ask of a tile by name."""

call_by_name("t", {name: vars(Tile)[name] for name in PUBLIC})
