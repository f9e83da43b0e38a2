"""Products of many factors, and of matrices of formats that TensorE does not take."""

from __future__ import annotations

from nki_dtypes import DType, bfloat16, float32, int32, tfloat32, uint32
from nkigen_lite.passes.expression import Expr, result
from nkigen_lite.passes.integers import add, bits_of, wrapped
from nkigen_lite.passes.rule import Match

# ------------------------------------------------------------------------ matrices

_MOST_TERMS = {8: 256, 7: 1024}
"""Products of numbers of so many bits that float32 adds exactly: 256 · 255², 1024 · 128² ≤ 2²⁴."""


def has_no_terms(m: Match) -> bool:
    """Whether every sum of the product is empty."""
    return m.spec(m["a"]).shape[-1] == 0


def of_nothing(m: Match) -> str:
    """Zeros."""
    return m.fill(0, m.dtype, m.root.spec.shape)


def is_narrow_float(m: Match) -> bool:
    """Whether matrices are of fp8, or float32 under another name."""
    dtype = m.spec(m.root.operands[0]).dtype
    return dtype is tfloat32 or (dtype.is_float and dtype.bits == 8)


def of_narrow_floats(m: Match) -> str:
    """fp8 is exact in bfloat16; sums are float32."""
    wide = float32 if m.spec(m["a"]).dtype is tfloat32 else bfloat16
    a, b = (Expr(m, m[v]).to(wide) for v in ("a", "b"))
    return result(m, a.call("matmul", b, dtype=float32))


def of_integers(m: Match) -> str:
    """Each product of two bytes is exact, and so are the sums of a stretch of the terms."""
    a, b = Expr(m, m["a"]), Expr(m, m["b"])
    if m.dtype.bits == 8 and m.dtype.min < 0:
        found = _in_stretches(a.to(bfloat16), b.to(bfloat16), _MOST_TERMS[7], int32)
        return result(m, wrapped(found, m.dtype))
    places = range(0, m.dtype.bits, 8)
    bytes_a, bytes_b = ([_byte(x, p) for p in places] for x in (a, b))
    found = None
    for i, one in enumerate(bytes_a):
        for j, other in enumerate(bytes_b[: len(bytes_b) - i]):
            part = _in_stretches(one, other, _MOST_TERMS[8], uint32)
            part = part.call("left_shift", 8 * (i + j)) if i + j else part
            found = part if found is None else add(found, part)
    assert found is not None
    return result(m, wrapped(found, m.dtype))


def _byte(x: Expr, place: int) -> Expr:
    return (bits_of(x).call("right_shift", place) & 0xFF).to(bfloat16)


def _in_stretches(a: Expr, b: Expr, most: int, dtype: DType) -> Expr:
    """a @ b as integers of 32 bits, `most` terms at a time."""
    terms, found = a.match.spec(a.value).shape[-1], None
    for start in range(0, terms, most):
        count = min(most, terms - start)
        left, right = _part(a, -1, start, count), _part(b, -2, start, count)
        part = left.call("matmul", right, dtype=float32).to(dtype).bits(uint32)
        found = part if found is None else add(found, part)
    assert found is not None
    return found.bits(dtype)


def _part(x: Expr, axis: int, start: int, count: int) -> Expr:
    """`count` elements along an axis."""
    shape = list(x.match.spec(x.value).shape)
    if shape[axis] == count:
        return x
    starts = [0] * len(shape)
    starts[axis], shape[axis] = start, count
    return x.call("slice", starts=starts, sizes=shape, steps=[1] * len(shape))


def is_of_integers(m: Match) -> bool:
    """Whether integers are added up."""
    return m.dtype.is_integer


# ------------------------------------------------------------------------- factors


def product(m: Match) -> str:
    """Along one axis after the other: one half times the other, until one is left."""
    x = Expr(m, m["x"])
    for axis in m.root.attrs["axes"]:
        x = _along(x, axis)
    return result(m, x)


def _along(x: Expr, axis: int) -> Expr:
    odd: Expr | None = None
    while (count := x.match.spec(x.value).shape[axis]) > 1:
        half = count // 2
        if count % 2:
            last = _part(x, axis, count - 1, 1)
            odd = last if odd is None else odd * last
        x = _part(x, axis, 0, half) * _part(x, axis, half, half)
    return x if odd is None else x * odd
