"""Tensors of the language: views without operators."""

from __future__ import annotations

from typing import Any, NoReturn

from neuroncore.engines import Space
from neuroncore.errors import UnsupportedError
from neuroncore.memory import View

_OPERATORS = {
    "__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__floordiv__": "//",
    "__mod__": "%", "__pow__": "**", "__matmul__": "@", "__and__": "&", "__or__": "|",
    "__xor__": "^", "__lshift__": "<<", "__rshift__": ">>", "__lt__": "<", "__le__": "<=",
    "__gt__": ">", "__ge__": ">=", "__neg__": "-", "__invert__": "~",
}  # fmt: skip


class NkiTensor(View):
    """A strided view of a tensor in one memory; see neuroncore's View for its methods.

    There are no arithmetic operators and no item assignment: every computation is an nki.isa call
    with a destination.
    """

    __slots__ = ()

    @property
    def buffer(self) -> Space:
        """The memory; an argument's is nl.hbm, which is another name of nl.private_hbm."""
        space = self.spec.space
        return Space.private_hbm if space is Space.hbm else space

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise UnsupportedError(
            "assignment to tensor elements",
            expected="an instruction that writes them",
            got=repr(self),
            hint="nisa.tensor_copy(dst=t[…], src=…) or nisa.memset(dst=t[…], value=…)",
            rule="NKI language guide: tensors are written by instructions",
        )

    def __bool__(self) -> NoReturn:
        raise UnsupportedError(
            "the truth value of a tensor",
            expected="a compile-time value",
            got=repr(self),
            hint="its elements are known only on the device; branch on compile-time values",
            rule="NKI language guide: control flow",
        )

    def __len__(self) -> NoReturn:
        raise UnsupportedError(
            "len() of a tensor",
            expected="t.shape[0]",
            got=repr(self),
            rule="NKI language guide: tensors",
        )

    def __iter__(self) -> NoReturn:
        raise UnsupportedError(
            "iteration over a tensor",
            expected="a range, tuple or list",
            got=repr(self),
            hint="loop over range(t.shape[0]) and index",
            rule="NKI language guide: control flow",
        )


def _refuse_value(what: str) -> Any:
    def value(self: NkiTensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"{what} of a tensor",
            expected="an nki.isa instruction, or a compile-time number",
            got=repr(self),
            hint="its elements are known only on the device",
            rule="NKI language guide: tensors",
        )

    return value


for _name, _what in {
    "__float__": "the number",
    "__int__": "the number",
    "__index__": "the number",
    "__array__": "the NumPy array",
    "__array_ufunc__": "a NumPy function",
    "__array_function__": "a NumPy function",
}.items():
    setattr(NkiTensor, _name, _refuse_value(_what))


def _refuse(symbol: str) -> Any:
    def operator(self: NkiTensor, *others: Any) -> NoReturn:
        raise UnsupportedError(
            f"the operator {symbol} on tensors",
            expected="an instruction with a destination",
            got=repr(self),
            hint="nisa.tensor_tensor for two tiles, nisa.tensor_scalar for a number or (P, 1)",
            rule="NKI language guide: no tensor arithmetic",
        )

    return operator


for _name, _symbol in _OPERATORS.items():
    setattr(NkiTensor, _name, _refuse(_symbol))
    _reflected = f"__r{_name[2:]}"
    if _name not in ("__lt__", "__le__", "__gt__", "__ge__", "__neg__", "__invert__"):
        setattr(NkiTensor, _reflected, _refuse(_symbol))
