"""nl.sin, cos and tan: good for any argument, by reducing it to [-π, π] first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from neuroncore.trigonometry import TRIGONOMETRY
from nki_beta1 import _elementwise as elementwise
from nki_beta1._create import refuse_unknown


@dataclass(frozen=True, slots=True)
class _Masked:
    """Functions on tiles under one mask."""

    mask: Any

    def unary(self, name: str, x: Any, dtype: Any) -> Any:
        return elementwise.unary(name, x, dtype, self.mask)

    def binary(self, name: str, x: Any, y: Any, dtype: Any) -> Any:
        return elementwise.binary(name, x, y, dtype, self.mask)

    def scalar(self, x: Any, op: str, operand: Any, dtype: Any, **more: Any) -> Any:
        return elementwise.scalar_op(x, op, operand, dtype, self.mask, **more)


def _of_any_argument(name: str) -> Callable[..., Any]:
    recipe = TRIGONOMETRY[name]

    def function(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
        refuse_unknown(name, unknown)
        return recipe(_Masked(mask), x, x.dtype if dtype is None else dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{recipe.__doc__}; the argument is reduced to [-π, π] first."
    return function


sin, cos, tan = map(_of_any_argument, ("sin", "cos", "tan"))
