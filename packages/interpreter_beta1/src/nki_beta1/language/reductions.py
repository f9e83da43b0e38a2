"""nl functions along axes: reductions, and functions composed of them."""

from __future__ import annotations

from math import prod
from typing import Any

from neuroncore.alu import alu_op
from neuroncore.errors import UnsupportedError
from neuroncore.memory import View
from nki_beta1.call import elementwise
from nki_beta1.call.apply import listed_axes, reduce_axes
from nki_beta1.execution.core import core_of
from nki_beta1.index.mask import region_of
from nki_beta1.launch.grid import num_programs
from nki_beta1.values.attributes import nl_function
from nki_dtypes import float32


def _reduction(name: str, op: str) -> None:
    def reduce(
        x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False
    ) -> Any:
        return reduce_axes(op, x, axis, dtype, mask, keepdims, name=name)

    nl_function(reduce, name, f"`{op}` over free axes of x, in x's dtype unless told otherwise.")


for _name, _op in (("sum", "add"), ("prod", "multiply"), ("max", "maximum"), ("min", "minimum")):
    _reduction(_name, _op)


def _all(x: Any, axis: Any, *, dtype: Any = bool, mask: Any = None) -> Any:
    """Whether all elements over free axes of x differ from 0."""
    return reduce_axes("logical_and", x, axis, dtype, mask, name="all")


nl_function(_all, "all")


@nl_function
def mean(x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False) -> Any:
    """The mean over free axes: summed and divided in float32, rounded once.

    Options.masked_mean: what it divides by under a mask.
    """
    return _mean("mean", x, axis, x.dtype if dtype is None else dtype, mask, keepdims)


def _mean(name: str, x: Any, axis: Any, kind: Any, mask: Any, keepdims: bool) -> Any:
    total = reduce_axes("add", x, axis, float32, mask, keepdims, name=name)
    return elementwise.scalar_op(total, "divide", float(_count(x, axis, mask)), kind)


@nl_function
def var(x: Any, axis: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """The population variance over free axes, which are kept with extent 1."""
    kind = x.dtype if dtype is None else dtype
    if mask is not None and mask is not True:
        raise _masked(
            "var", "whether masked elements count in n is not documented: use nl.sum and divide"
        )
    center = _mean("var", x, axis, float32, None, keepdims=True)
    squares = elementwise.unary("square", elementwise.binary("subtract", x, center, float32))
    return mean(squares, axis, dtype=kind, keepdims=True)


@nl_function
def softmax(
    x: Any, axis: Any, *, dtype: Any = None, compute_dtype: Any = None, mask: Any = None
) -> Any:
    """exp(x - max(x)) / sum(exp(x - max(x))) over free axes."""
    kind = x.dtype if dtype is None else dtype
    inside = compute_dtype or float32
    top = reduce_axes("maximum", x, axis, inside, mask, True, name="softmax")
    powers = elementwise.unary(
        "exp", elementwise.binary("subtract", x, top, inside, mask), inside, mask
    )
    total = reduce_axes("add", powers, axis, inside, mask, True, name="softmax")
    return elementwise.binary("divide", powers, total, kind, mask)


@nl_function
def rms_norm(
    x: Any,
    w: Any,
    axis: Any,
    n: float,
    epsilon: float = 1e-6,
    *,
    dtype: Any = None,
    compute_dtype: Any = None,
    mask: Any = None,
) -> Any:
    """x / sqrt(sum(x², axis) / n + epsilon) * w"""
    kind = x.dtype if dtype is None else dtype
    inside = compute_dtype or float32
    squares = reduce_axes(
        "add",
        elementwise.unary("square", x, inside, mask),
        axis,
        float32,
        mask,
        True,
        name="rms_norm",
    )
    shifted = elementwise.scalar_op(
        squares, "divide", float(n), float32, op1="add", operand1=epsilon
    )
    scale = elementwise.unary("rsqrt", shifted, float32)
    normal = elementwise.binary("multiply", x, scale, inside, mask)
    return elementwise.binary("multiply", normal, w, kind, mask)


@nl_function
def all_reduce(
    x: Any,
    op: Any,
    program_axes: Any,
    *,
    dtype: Any = None,
    mask: Any = None,
    parallel_reduce: bool = True,
    asynchronous: bool = False,
) -> Any:
    """op over the programs along grid axes: x itself where there is one program along them.

    Raises UnsupportedError for several: programs run one after another here, and a reduction needs
    the values of all of them at once.
    """
    axes = program_axes if isinstance(program_axes, (tuple, list)) else (program_axes,)
    count = prod(num_programs(axis) for axis in axes)
    alu_op(op)
    if count != 1:
        raise UnsupportedError(
            f"a reduction over {count} programs is not modelled",
            hint="programs of a grid run one after another here: none has the others' values. "
            "Store partial results to HBM and reduce them in a second launch",
            operand="program_axes",
            instruction="nl.all_reduce",
        )
    return elementwise.copy(x, dtype, mask)


def _masked(what: str, hint: str) -> UnsupportedError:
    return UnsupportedError(
        f"nl.{what} with a mask is not modelled",
        hint=hint,
        operand="mask",
    )


def _count(x: View, axis: Any, mask: Any) -> int:
    """How many elements a mean divides by, as Options.masked_mean says of a mask."""
    region = region_of(mask, x.shape)
    counted = core_of("mean").options.masked_mean
    if region is None or counted == "all":
        return prod(x.shape[a] for a in listed_axes(axis))
    if counted == "reject":
        raise _masked("mean", "set Options.masked_mean, or use nl.sum and divide")
    if region.inside is not None or region.is_empty:
        raise _masked("mean", "rows with different numbers of elements: use nl.sum and divide")
    return prod(region.shape[a] for a in listed_axes(axis))
