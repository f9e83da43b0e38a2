"""Tensors of the language: views without operators."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any, NoReturn

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import AbsentNameError, AccessError, UnsupportedError, absent_name
from neuroncore.machine.results import described, shown
from neuroncore.memory import View
from neuroncore.notes import note_without_effect
from neuroncore.surface import VERSIONS, span
from neuroncore.surface import version_tuple as numbers

_OPERATORS = {
    "__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__floordiv__": "//",
    "__mod__": "%", "__pow__": "**", "__matmul__": "@", "__and__": "&", "__or__": "|",
    "__xor__": "^", "__lshift__": "<<", "__rshift__": ">>", "__lt__": "<", "__le__": "<=",
    "__gt__": ">", "__ge__": ">=", "__neg__": "-", "__invert__": "~",
}  # fmt: skip
_NOT_REFLECTED = ("__rlt__", "__rle__", "__rgt__", "__rge__", "__rneg__", "__rinvert__")


class NkiTensor(View):
    """A strided view of a tensor in one memory; see neuroncore's View for its methods.

    It has no arithmetic operators and no item assignment: every computation is an nki.isa call
    with a destination.
    """

    __slots__ = ()
    whole_is_fresh = True

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            "a tensor bound to a storage handle", expected="nl.ndarray(shape, dtype, buffer)",
            got=f"{type(self).__name__}(…)", rule="NKI: NkiTensor",
        )  # fmt: skip

    @property
    def buffer(self) -> MemorySpace:
        """The memory; an argument's is nl.hbm, which is another name of nl.private_hbm."""
        space = self.spec.space
        return MemorySpace.private_hbm if space is MemorySpace.hbm else space

    def outside(self, error: AccessError) -> NkiTensor:
        """The view of an access pattern that leaves the tensor: an error where it is used."""
        view = object.__new__(_Outside)
        view.error = error
        return view

    def is_indirect(self) -> bool:
        """Whether this view has an index that is computed on the device; it takes no second one."""
        return self.spec.indirect is not None

    def is_contiguous(self) -> bool:
        """Whether the elements are contiguous; on chip, within each partition."""
        spec = self.spec
        first = spec.shape[0] == 1 or spec.space.on_chip or spec.strides[0] == spec.free
        return first and spec.free_is_contiguous

    def __copy__(self) -> NkiTensor:
        return self  # a tensor of the device, which a copy of the Python object names as well

    def __deepcopy__(self, memo: object) -> NkiTensor:
        return self

    def __str__(self) -> str:
        return described(self)

    def __getattr__(self, name: str) -> NoReturn:
        absent = vars(type(self)).get(name)
        if isinstance(absent, _NotYet):  # called again after an AttributeError
            raise absent.error()
        hint = None
        if name == "address":
            hint = "where a tensor of NKI 0.2 lies is not modelled: the compiler places it"
        having = [n for n in dir(View) if not n.startswith("_")]
        raise absent_name("NkiTensor", name, having, hint)


class _Outside(NkiTensor):
    """A view that leaves its tensor: every use of it raises its error."""

    __slots__ = ("error",)
    error: AccessError

    def __getattr__(self, name: str) -> NoReturn:
        raise self.error


def _rejected(what: str, expected: str, hint: str | None, rule: str) -> Any:
    def method(self: NkiTensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(what, expected=expected, got=repr(self), hint=hint, rule=rule)

    return method


_GUIDE = "NKI language guide"
_ON_DEVICE = "its elements are known only on the device"
_SPECIAL: dict[str, tuple[str, str, str | None, str]] = {
    "__setitem__": (
        "assignment to tensor elements", "an instruction that writes them",
        "nisa.tensor_copy(dst=t[…], src=…) or nisa.memset(dst=t[…], value=…)",
        f"{_GUIDE}: tensors are written by instructions",
    ),
    "__bool__": (
        "the truth value of a tensor", "a compile-time value",
        f"{_ON_DEVICE}; branch on compile-time values", f"{_GUIDE}: control flow",
    ),
    "__len__": ("len() of a tensor", "t.shape[0]", None, f"{_GUIDE}: tensors"),
    "__iter__": (
        "iteration over a tensor", "a range, tuple or list",
        "loop over range(t.shape[0]) and index", f"{_GUIDE}: control flow",
    ),
    **{
        name: (
            f"{what} of a tensor", "an nki.isa instruction, or a compile-time number",
            _ON_DEVICE, f"{_GUIDE}: tensors",
        )
        for what, names in {
            "the number": ("__float__", "__int__", "__index__"),
            "the NumPy array": ("__array__",),
            "a NumPy function": ("__array_ufunc__", "__array_function__"),
        }.items()
        for name in names
    },
    **{
        name: (
            f"the operator {symbol} on tensors", "an instruction with a destination",
            "nisa.tensor_tensor for two tiles, nisa.tensor_scalar for a number or (P, 1)",
            f"{_GUIDE}: no tensor arithmetic",
        )
        for method, symbol in _OPERATORS.items()
        for name in (method, f"__r{method[2:]}")
        if name not in _NOT_REFLECTED
    },
}  # fmt: skip
"""Special methods that tensors do not support: what, the expected alternative, hint and rule."""

for _name, _error in _SPECIAL.items():
    setattr(NkiTensor, _name, _rejected(*_error))


class _NotYet:
    """Placeholder for a method that a version lacks: reading it names the versions that have it."""

    def __init__(self, name: str, version: str, having: list[str]) -> None:
        self.name, self.version, self.having = name, version, having

    def __get__(self, tensor: Any, owner: type) -> NoReturn:
        raise self.error()

    def error(self) -> AbsentNameError:
        return AbsentNameError(
            f"NkiTensor.{self.name} is not part of NKI {self.version}",
            expected="reshape, view, ap, get_pattern and brackets",
            got=self.name,
            hint=f"it is part of NKI {span(self.having)}",
            rule=f"NKI {self.version}: NkiTensor",
        )


_reject_truth = _rejected(*_SPECIAL["__bool__"])


def _is_present(self: NkiTensor) -> bool:
    """`if tensor:` tests that it is not None, as Options.tensor_truth says."""
    if self.core.options.tensor_truth == "reject" or (self.spec.space.on_chip and self.size == 1):
        return _reject_truth(self)
    note_without_effect(
        "the truth value of a tensor", "a tensor is true, None is not", f"{_GUIDE}: control flow"
    )
    return True


NkiTensor.__bool__ = _is_present  # type: ignore[attr-defined]


def _only_whole(tensor: NkiTensor) -> None:
    """Raise AccessError for reshape() of an indexed tensor, as the frontend of 0.2 to 0.4."""
    if tensor.array.size != tensor.storage.flat.size:
        raise AccessError(
            "reshape() of a tensor that has been indexed already",
            expected="the whole tensor",
            got=f"shape {tensor.shape} of a tensor of shape {tensor.storage.shape}",
            hint="reshape the whole tensor and index what that gives; from 0.5 on views compose",
            rule="NKI 0.2 to 0.4: NkiTensor.reshape, un-indexed tensors only",
        )


def _reshape_0_2(self: NkiTensor, shape: Any) -> View:
    """The same elements in another shape, or fewer: of each partition on chip, else of the tensor,
    the first ones [NKI 0.2 language guide: the new tensor uses the same or less memory].
    """
    _only_whole(self)
    is_shape = isinstance(shape, (tuple, list)) and all(isinstance(n, int) for n in shape)
    on_chip = self.spec.space.on_chip
    if is_shape and 0 < prod(shape) < self.size and (not on_chip or shape[0] == self.shape[0]):
        rows = self.shape[:1] if on_chip else ()
        flat = View.reshape(self, (*rows, self.size // prod(rows)))
        return View.reshape(flat[..., 0 : prod(shape) // prod(rows)], shape)
    return View.reshape(self, shape)


def _reshape_0_3(self: NkiTensor, shape: Any) -> View:
    """The same elements in another shape."""
    _only_whole(self)
    return View.reshape(self, shape)


def _reshape_0_4(self: NkiTensor, new_shape: Any = None, shape: Any = None) -> View:
    """The same elements in another shape; both names of the parameter are documented."""
    _only_whole(self)
    return View.reshape(self, new_shape if shape is None else shape)


def _is_identity(self: NkiTensor) -> bool:
    """Whether this is the tensor as it was made: neither cut nor given a pattern."""
    whole = self.array.nbytes == self.storage.flat.nbytes and self.array.flags.c_contiguous
    return whole and self.spec.indirect is None


def _sim_value(self: NkiTensor) -> np.ndarray:
    """The present content of the tensor, as a new NumPy array."""
    self.initialize()
    self.core.need_values()
    return shown(self)


_VIEWS_0_5 = (
    "broadcast", "expand_dim", "flatten_dims", "indirect", "is_contiguous", "is_indirect",
    "permute", "rearrange", "reshape_dim", "select", "slice", "squeeze_dim", "vector_select",
)  # fmt: skip
_SINCE = dict.fromkeys((*_VIEWS_0_5, "reinterpret_cast"), VERSIONS[VERSIONS.index("0.5") :])
_SINCE |= dict.fromkeys(("is_identity", "sim_value", "device_value"), ("0.4",))
_OWN: dict[str, dict[str, Any]] = {
    "0.2": {"reshape": _reshape_0_2},
    "0.3": {"reshape": _reshape_0_3},
    "0.4": {
        "reshape": _reshape_0_4,
        "is_identity": _is_identity,
        "sim_value": property(_sim_value),
        "device_value": property(lambda self: None, doc="None: no device holds it."),
    },
}


@cache
def tensor_class(version: str) -> type[NkiTensor]:
    """NkiTensor of a version; all versions are subclasses of NkiTensor."""
    own: dict[str, Any] = {"__slots__": (), "__doc__": NkiTensor.__doc__}
    if numbers(version) >= (0, 7):  # the page of NkiTileGrid reads `data` of a tensor, too
        own["data"] = property(lambda self: self, doc="This tensor: grids have data, too.")
    own |= _OWN.get(version, {})
    own["__module__"] = "nki.language"
    for name, versions in _SINCE.items():
        if version not in versions:
            own[name] = _NotYet(name, version, list(versions))
    if numbers(version) >= (0, 5):
        own["reinterpret_cast"] = NkiTensor.view
    return type("NkiTensor", (NkiTensor,), own)
