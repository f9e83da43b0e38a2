"""Dtypes that only a run shows, as the observed runs and the calls in the file had them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nki_migrate.facts.dtypes import FLOAT32, DType, promote
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.inference.observations import guard

_FLOATS = ("bfloat16", "float16", "float32")


def seen_promotion(ctx: Context, a: DType, b: DType, float32: str) -> DType | None:
    """The promotion of two dtypes in every run of 0.1, in the kernel's words, under an assert.

    None if the runs do not say, or say different things.
    """
    x, y = _dtypes(ctx, a), _dtypes(ctx, b)
    if passed := _passed_promotion(ctx, a, b, float32):
        return passed
    pairs = {(x[run], y[run]) for run in x.keys() & y.keys()}
    if not pairs:
        return None
    if all(one == other for one, other in pairs):
        guard(ctx, f"{ctx.dtype_text(a)} == {ctx.dtype_text(b)}")
        return a
    for one, position in ((a, 0), (b, 1)):
        if all(p[position] == FLOAT32 for p in pairs):
            guard(ctx, f"{ctx.dtype_text(one)} == {float32}")
            return DType(float32, FLOAT32)
    if len(pairs) > 1:
        return None
    (pair,) = pairs
    result = promote(DType(pair[0], pair[0]), DType(pair[1], pair[1]), float32)
    if result is None:
        return None
    for one, name in zip((a, b), pair, strict=True):
        if not one.is_known:
            guard(ctx, f"{ctx.dtype_text(one)} == {float32.replace(FLOAT32, name)}")
    return DType(float32.replace(FLOAT32, result.key), result.key)


def _passed_promotion(ctx: Context, a: DType, b: DType, float32: str) -> DType | None:
    """The promotion of two dtypes in every call in the file, under an assert."""
    passed = ctx.passed_dtypes
    if a.key in passed and passed[a.key] == passed.get(b.key):
        guard(ctx, f"{ctx.dtype_text(a)} == {ctx.dtype_text(b)}")
        return a
    for one in (a, b):
        if set(passed.get(one.key, ())) == {FLOAT32}:
            guard(ctx, f"{ctx.dtype_text(one)} == {float32}")
            return DType(float32, FLOAT32)
    return None


def unlike_dtypes(ctx: Context, a: DType, b: DType) -> bool:
    """Whether two dtypes are known to differ, or did in a run."""
    if a.is_known and b.is_known:
        return a.key != b.key
    x, y = _dtypes(ctx, a), _dtypes(ctx, b)
    return any(x[run] != y[run] for run in x.keys() & y.keys())


def is_seen_floating(ctx: Context, dtype: DType, float32: str) -> bool:
    """Whether a dtype was a floating one in every run; an assert says so in the new kernel."""
    kinds = set(_dtypes(ctx, dtype).values())
    if not kinds or not kinds <= set(_FLOATS):
        return False
    require_floating(ctx, dtype, float32)
    return True


def require_floating(ctx: Context, dtype: DType, float32: str, source: str | None = None) -> None:
    """An assert in the new kernel: the dtype is a floating one."""
    names = ", ".join(float32.replace(FLOAT32, n) for n in _FLOATS)
    guard(ctx, f"{ctx.dtype_text(dtype)} in ({names})", source)


def is_seen_float32(ctx: Context, dtype: DType, float32: str) -> bool:
    """Whether a dtype was float32 in every run; an assert says so in the new kernel."""
    if dtype.is_known or set(_dtypes(ctx, dtype).values()) != {FLOAT32}:
        return False
    guard(ctx, f"{ctx.dtype_text(dtype)} == {float32}")
    return True


def seen_dtypes(ctx: Context, dtype: DType, float32: str) -> tuple[DType, ...]:
    """Values of a dtype known only at run time, each once; empty without a run."""
    names = [] if dtype.is_known else sorted(set(_dtypes(ctx, dtype).values()))
    return tuple(DType(float32.replace(FLOAT32, name), name) for name in names)


def require_dtype(ctx: Context, dtype: DType, seen: Sequence[DType]) -> None:
    """An assert in the new kernel: the dtype is one of the observed ones."""
    texts = [d.text for d in seen]
    one_of = f"== {texts[0]}" if len(texts) == 1 else f"in ({', '.join(texts)})"
    guard(ctx, f"{ctx.dtype_text(dtype)} {one_of}")


def _dtypes(ctx: Context, dtype: DType) -> Mapping[int, str]:
    if not dtype.is_known:
        return ctx.seen_dtypes.get(dtype.key, {})
    runs = {run for dtypes in ctx.seen_dtypes.values() for run in dtypes}
    return dict.fromkeys(runs, dtype.key)
