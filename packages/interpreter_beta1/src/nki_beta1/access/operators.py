"""Operators and methods of a tile, for accesses that are not views: on the gathered elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuroncore.memory import View


class OnElements:
    """Operators and methods of a tile, for a value whose elements can be `read` into one.

    `+=` and its like write to the tensor. All raise AccessError for an access that leaves it.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    def read(self) -> View:
        """The elements, in a tensor of their own."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        """An attribute of the tile of gathered elements."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.read(), name)

    def __len__(self) -> int:
        return self.shape[0]


IN_PLACE = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
    "mod": "mod",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
"""Python's operators that have a form with `=`, and the operations that they mean."""


def _of_elements(name: str) -> Callable[..., Any]:
    """A tile's operator, on the gathered elements; raises AccessError out of range."""

    def operator(self: OnElements, *operands: Any) -> Any:
        return getattr(self.read(), name)(*operands)

    return operator


def _in_place(op: str) -> Callable[..., Any]:
    def operator(self: OnElements, value: Any) -> Any:
        return self.base.update_access(op, self, value)

    return operator


_OPERATORS = (
    *("add", "sub", "mul", "truediv", "pow", "mod", "and", "or", "xor"),
    *("radd", "rsub", "rmul", "rtruediv", "rpow", "rmod", "rand", "ror", "rxor"),
    *("lshift", "rshift", "lt", "le", "gt", "ge", "eq", "ne"),
    *("neg", "invert", "abs", "bool", "iter"),
)
for _name in _OPERATORS:
    setattr(OnElements, f"__{_name}__", _of_elements(f"__{_name}__"))
for _name, _op in IN_PLACE.items():
    setattr(OnElements, f"__i{_name}__", _in_place(_op))
