"""Dtype promotion of 0.1 for operations on tiles, truth values included.

Comparisons and logical operations give `bool_`, and what is computed of two `bool_` tiles is a
`bool_` again: one more than True is True. Source: NKI 0.1, `nl.equal` and its kind (`dtype=bool`),
type promotion.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from nki_migrate.facts.dtypes import BOOL, FLOAT32, DType, promote, with_scalar
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Cause
from nki_migrate.rewriting.inference.observed_dtypes import (
    is_seen_floating,
    require_dtype,
    seen_dtypes,
    seen_promotion,
    unlike_dtypes,
)

_TRUTHS = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
    "logical_or", "logical_xor",
}  # fmt: skip
_BITWISE = {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}

# The bits of a bool_ are a truth value.
_BITS = {
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "bitwise_xor": "logical_xor",
}
# 1 + 1 and 0 - 1 are not truth values: the operation that gives what 0.1 makes of them
_SUMS = {"add": "logical_or", "subtract": "logical_xor"}


@dataclass(frozen=True, slots=True)
class Guess:
    """A dtype for a result whose own the source does not decide.

    It holds if `assumption` does, which asserts in the new kernel say: the dtypes in `equal` are
    one, `floating` is a floating dtype, `number` is a float (or its tile is a float32 one). A tile
    that is only stored, in a dtype of `stored` (keys), may have that dtype: what 0.1 held in
    between was at least as wide.
    """

    dtype: DType
    assumption: str
    message: str
    stored: frozenset[str]
    against: str | None = None  # what was seen says that it does not hold
    equal: tuple[DType, DType] | None = None
    floating: DType | None = None
    number: tuple[str, DType] | None = None


def either(a: DType, b: DType) -> Guess:
    """The result of two tiles whose dtypes are known only at run time."""
    message = f"the dtype of the result depends on `{a.text}` and `{b.text}`"
    stored = frozenset(d.key for d in (a, b) if not d.is_known)
    message = f"{message}, known only at run time"
    return Guess(a, f"{a.text} == {b.text}", message, stored, equal=(a, b))


def float32(ctx: Context) -> DType:
    """`nl.float32`."""
    return DType(f"{ctx.alias('nl')}.float32", FLOAT32)


def on_truths(op: str, dtype: DType | None, *operands: DType) -> str:
    """The operation where every operand is a `bool_`; `dtype` is what the result is told to be."""
    if not all(map(is_truth, operands)):
        return op
    sums = _SUMS if len(operands) > 1 and (dtype is None or is_truth(dtype)) else {}
    return _BITS.get(op) or sums.get(op, op)


def is_truth(dtype: DType | None) -> bool:
    """Whether values of the dtype are truth values."""
    return dtype is not None and dtype.key == BOOL


def reject_truth_values(
    own: DType, dtype: DType | None, what: str, node: ast.AST, cause: Cause
) -> None:
    """Raises Cannot where the result would be a `bool_` of something else than truth values."""
    if is_truth(own) and (dtype is None or is_truth(dtype)):
        raise Cannot(
            cause, f"{what} of truth values is a truth value in 0.1; give it `dtype=`", node
        )


def with_number(
    ctx: Context, op: str, tile: DType, is_float: bool | None, *, is_truth: bool = False
) -> DType | None:
    """The dtype in 0.1 of a tile and a number; None if that is not known here.

    `is_truth`: the number is True or False, which counts as uint8.
    """
    if op in _TRUTHS:
        return _truth(ctx)
    if op in _BITWISE:
        return tile
    if op == "divide" and tile.is_float is False:
        return float32(ctx)  # integers have a float quotient in 0.1
    text = float32(ctx).text
    if is_truth and tile.is_float is False:
        return promote(tile, DType(text.replace(FLOAT32, "uint8"), "uint8"), text)
    found = with_scalar(tile, is_float, text)
    if found is not None or is_float is not False:
        return found
    if is_seen_floating(ctx, tile, text):
        return tile
    return _seen_with_int(ctx, op, tile, text)


def _seen_with_int(ctx: Context, op: str, tile: DType, text: str) -> DType | None:
    """The dtype in 0.1 of a tile and an int in every run, under an assert; None if that differs."""
    seen = seen_dtypes(ctx, tile, text)
    found = [
        float32(ctx) if op == "divide" and not d.is_float else with_scalar(d, False, text)
        for d in seen
    ]
    keys = {d.key if d is not None else None for d in found}
    if len(keys) != 1 or found[0] is None:
        return None
    require_dtype(ctx, tile, seen)
    return tile if keys == {d.key for d in seen} else found[0]


def promoted(ctx: Context, op: str, a: DType, b: DType) -> DType | None:
    """The dtype in 0.1 of two tiles; None if that is not known here."""
    if op in _TRUTHS:
        return _truth(ctx)
    found = met(ctx, a, b)
    if op != "divide" or found is None or found.is_float:
        return found
    if found.is_float is False:
        return float32(ctx)
    return found if is_seen_floating(ctx, found, float32(ctx).text) else None


def met(ctx: Context, a: DType, b: DType) -> DType | None:
    """The dtype in which two tiles meet; None if that is not known here."""
    if frozenset((a.key, b.key)) in ctx.same_dtypes:
        return a
    text = float32(ctx).text
    found = promote(a, b, text)
    if found is not None:
        return found
    for truth, other in ((a, b), (b, a)):
        if is_truth(truth) and is_seen_floating(ctx, other, text):
            return other
    return seen_promotion(ctx, a, b, text)


def _truth(ctx: Context) -> DType:
    return DType(f"{ctx.alias('nl')}.{BOOL}", BOOL)


def guessed(ctx: Context, tile: DType, number: str, is_float: bool | None) -> Guess:
    """The result of a tile and a number where one of the two is of unknown kind."""
    message = f"the dtype of the result depends on `{tile.text}` and `{number}`"
    stored = frozenset((tile.key,))
    if is_float is None:
        holds = f"{number} is a float"
        return Guess(float32(ctx), holds, message, stored, number=(number, tile))
    return _floating(ctx, tile, message, stored)


def _floating(ctx: Context, dtype: DType, message: str, stored: frozenset[str]) -> Guess:
    """A result of this dtype, if it is a floating one; what was seen may say that it is not."""
    seen = [d.key for d in seen_dtypes(ctx, dtype, FLOAT32) if d.is_float is False]
    against = f"`{dtype.text}` was {' or '.join(seen)}" if seen else None
    holds = f"{dtype.text} is a floating dtype"
    return Guess(dtype, holds, message, stored, against, floating=dtype)


def two_guessed(ctx: Context, a: DType, b: DType, *, is_quotient: bool = False) -> Guess:
    """The result of two tiles of which the dtype of one, or both, is known only at run time."""
    for known, other in ((a, b), (b, a)):
        if not other.is_known and known.key in {BOOL, other.key}:
            message = f"the dtype of the result depends on `{other.text}`, known only at run time"
            stored = frozenset((other.key,))
            return _floating(ctx, other, message, stored)
    guess = one_of_two(ctx, a, b)
    if not is_quotient or a.is_float or b.is_float:
        return guess
    if a.is_known or b.is_known:
        return replace(guess, dtype=float32(ctx))  # integers have a float quotient in 0.1
    holds = f"{guess.assumption}, a floating dtype"
    return replace(guess, assumption=holds, floating=guess.dtype)


def one_of_two(ctx: Context, a: DType, b: DType) -> Guess:
    """The result of two tiles whose dtypes are known only at run time, if they are equal."""
    guess = either(a, b)
    if not unlike_dtypes(ctx, a, b):
        return guess
    return replace(guess, against=f"`{a.text}` and `{b.text}` were not equal")
