"""Products of many factors, and of matrices of formats that TensorE does not take."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import prod

from neuroncore.targets import BANK_ELEMS, PARTITIONS
from nki_dtypes import bfloat16, float32, int32, tfloat32, uint32
from nkigen_lite.ops import Expr
from nkigen_lite.passes.decompositions.integer_arithmetic import add, bits_of, wrapped
from nkigen_lite.passes.rewriting import Match, RewriteRule, is_integer, of

# ------------------------------------------------------------------------ matrices

_MOST_TERMS = {8: 256, 7: 1024}
"""Products of numbers of so many bits that float32 adds exactly: 256 · 255², 1024 · 128² ≤ 2²⁴."""
_OVERFLOWING = (1 << 31) // (4 << 14)
"""Terms of four sums of such products that may not fit into 31 bits."""
_WORTH_TENSOR = 8
"""A side of matrices: 387 of 4 x 4 take 42 us by digits on VectorE and 52 at once on TensorE, 64 of
8 x 8 take 91 and 40, of 32 x 32 246 and 57."""
_FEW_STRETCHES = 6
"""From so many on, stretches are a loop: of 128 rows and columns, four take 111 µs one by one and
145 in a loop, eight 305 and 278."""


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
    a, b = (m.expr(v).to(wide) for v in ("a", "b"))
    return m.result(a.call("matmul", b, dtype=float32))


def of_integers(m: Match) -> str:
    """Each product of two digits is exact, and so are the sums of a stretch of the terms."""
    a, b = m.expr("a"), m.expr("b")
    if (narrow := _of_bytes(m, a, b)) is not None:
        most = _MOST_TERMS[7 if narrow[0].dtype.min < 0 else 8]
        one, other = (x.to(bfloat16) for x in narrow)
        return m.result(wrapped(_in_stretches(one, other, most).bits(uint32), m.dtype))
    digits_a, digits_b = _digits(a), _digits(b)
    if _is_worth_one_product(m, len(digits_a)):
        return m.result(wrapped(_weights(_of_all_places(digits_a, digits_b)), m.dtype))
    return m.result(wrapped(_weighted(digits_a, digits_b), m.dtype))


def _digits(x: Expr) -> list[Expr]:
    """x = Σ dᵢ · 256ⁱ modulo its range with -128 ≤ dᵢ ≤ 127: the bytes of x + 128 · Σ 256ⁱ, less
    128. Four times as many of their products are added exactly as of bytes."""
    lifted = 0x80808080 & ((1 << x.dtype.bits) - 1)
    if x.dtype.bits == 32:
        moved = add(bits_of(x), Expr(x.match, x.match.fill(lifted, uint32)))
    else:
        moved = x.to(int32).call("exact_add", lifted).bits(uint32)
    places = range(0, x.dtype.bits, 8)
    found = ((moved.call("right_shift", p) & 0xFF).to(float32) - 128.0 for p in places)
    return [digit.to(bfloat16) for digit in found]


def _of_place(a: list[Expr], b: list[Expr], place: int) -> Expr:
    """The sum of the products whose weight is 256^place; of less than 31 bits, or modulo 2³²."""
    parts = [_in_stretches(a[i], b[place - i], _MOST_TERMS[7]) for i in range(place + 1)]
    is_small = a[0].shape[-1] < _OVERFLOWING
    total = parts[0]
    for part in parts[1:]:
        total = (
            total.call("exact_add", part) if is_small
            else add(total.bits(uint32), part.bits(uint32)).bits(int32)
        )  # fmt: skip
    return total


def _is_worth_one_product(m: Match, digits: int) -> bool:
    """Whether few matrices b are multiplied with many, all so small that one product with the
    digits beside each other takes no more of TensorE than each of theirs. Of two digits there are
    but three products: with one b, 128 times 16 x 16 x 16, they take 38 us and all at once 47."""
    left, right = m.spec(m["a"]).shape, m.spec(m["b"]).shape
    *batch, rows, columns = m.root.spec.shape
    terms = left[-1]
    few = prod(right[:-2])
    is_repeated = few < prod(batch) and few <= prod(left[:-2]) and (few > 1 or digits > 2)
    fits = digits * terms <= PARTITIONS and digits * columns <= BANK_ELEMS and rows <= PARTITIONS
    return digits > 1 and is_repeated and fits and max(rows, terms, columns) >= _WORTH_TENSOR


def _of_all_places(a: list[Expr], b: list[Expr]) -> list[Expr]:
    """The sums of the products of each weight, by one product: (a₀ a₁ …) times a matrix of blocks,
    of which those in column p are b's digits of the places p, p - 1, …; the last place first."""
    m, shape = b[0].match, b[0].shape
    last, columns = len(shape) - 1, shape[-1]
    none = Expr(m, m.fill(0, bfloat16, shape))
    lines = [_joined([*[none] * i, *b[: len(b) - i]], last) for i in range(len(b))]
    along = len(a[0].shape) - 1
    made = _product(_joined(a, along), _joined(lines, last - 1))
    return [made.part(-1, p * columns, columns) for p in reversed(range(len(a)))]


def _joined(parts: list[Expr], axis: int) -> Expr:
    return parts[0].call("concatenate", *parts[1:], axis=axis)


def _weighted(a: list[Expr], b: list[Expr]) -> Expr:
    return _weights(_of_place(a, b, place) for place in reversed(range(len(a))))


def _weights(places: Iterable[Expr]) -> Expr:
    """The sums of all places, the last first, times their weights modulo 2³²: of all but the low
    byte of each only 24 bits count, to which the next one's are added."""

    def with_next(found: Expr, bits: Expr) -> Expr:
        above = bits.call("right_shift", 8).call("exact_add", found & 0xFFFFFF)
        return above.call("left_shift", 8) | (bits & 0xFF)

    return reduce(with_next, (place.bits(uint32) for place in places))


def _of_bytes(m: Match, a: Expr, b: Expr) -> tuple[Expr, Expr] | None:
    """Both as they were before they were widened, where both are int8 or both uint8."""
    one, other = _narrower(m, a), _narrower(m, b)
    same = one.dtype is other.dtype and one.dtype.is_integer and one.dtype.bits == 8
    return (one, other) if same else None


def has_vector(m: Match) -> bool:
    """Whether integers of more than a byte are multiplied with a row or a column, and more of them
    than one sum holds."""
    left, right = m.spec(m["a"]).shape, m.spec(m["b"]).shape
    if not is_integer(m) or _of_bytes(m, m.expr("a"), m.expr("b")) is not None:
        return False
    return 1 in (left[-2], right[-1]) and left[-1] > _MOST_TERMS[8]


def with_vector(m: Match) -> str:
    """Products of the rows of a with a row that was b's column, added up along the rows; or of b's
    columns with a column that was a's row."""
    a, b = m.expr("a"), m.expr("b")
    last = len(m.root.spec.shape) - 1
    if m.spec(m["b"]).shape[-1] == 1:
        return m.result((a * _transposed(b)).call("sum", axes=(last,), keepdims=True))
    return m.result((_transposed(a) * b).call("sum", axes=(last - 1,), keepdims=True))


def has_vectors(m: Match) -> bool:
    """Whether every batch multiplies a row of its own with a column of its own."""
    left, right = m.spec(m["a"]).shape, m.spec(m["b"]).shape
    batch = prod(m.root.spec.shape)
    every = all(prod(shape) == batch * left[-1] for shape in (left, right))
    return m.dtype.is_float and batch > 1 and every and left[-2] == right[-1] == 1


def of_vectors(m: Match) -> str:
    """Products of the numbers, in float32, added up along the terms."""
    a, b = (m.expr(v).to(float32) for v in ("a", "b"))
    last = len(m.root.spec.shape) - 1
    return m.result((a * _transposed(b)).call("sum", axes=(last,), keepdims=True))


def _transposed(x: Expr) -> Expr:
    """The last two axes of a vector exchanged."""
    *batch, rows, columns = x.shape
    return x.call("reshape", shape=(*batch, columns, rows))


def _narrower(m: Match, x: Expr) -> Expr:
    """The operand before it was widened for the product; else the operand."""
    node = m.build.by_name.get(x.value)
    return Expr(m, node.operands[0]) if node and node.op == "convert" else x


def _in_stretches(a: Expr, b: Expr, most: int) -> Expr:
    """a @ b as int32: `most` terms at a time as one more batch axis, whose matrices are added up,
    and what is left of the terms."""
    terms = a.shape[-1]
    count, rest = divmod(terms, most)
    if count < _FEW_STRETCHES:
        return _unrolled(a, b, most)
    lot = count * most
    left, right = a.part(-1, 0, lot), b.part(-2, 0, lot)
    found = _product(_stretches(left, -1, most), _stretches(right, -2, most))
    shape = found.shape
    total = found.call("sum", axes=(len(shape) - 3,), keepdims=True)
    total = total.call("reshape", shape=(*shape[:-3], *shape[-2:])).bits(uint32)
    if rest:
        last = _product(a.part(-1, lot, rest), b.part(-2, lot, rest))
        total = add(total, last.bits(uint32))
    return total.bits(int32)


def _unrolled(a: Expr, b: Expr, most: int) -> Expr:
    """The sums of a few stretches have 27 bits."""
    terms = a.shape[-1]
    starts = range(0, terms, most)
    parts = [
        _product(a.part(-1, n, min(most, terms - n)), b.part(-2, n, min(most, terms - n)))
        for n in starts
    ]
    found = parts[0]
    for part in parts[1:]:
        found = found.call("exact_add", part)
    return found


def _product(a: Expr, b: Expr) -> Expr:
    return a.call("matmul", b, dtype=float32).to(int32)


def _stretches(x: Expr, axis: int, most: int) -> Expr:
    """(…, S · most, …) with an axis S before the last two."""
    *batch, rows, columns = x.shape
    if axis == -2:
        return x.call("reshape", shape=(*batch, rows // most, most, columns))
    cut = x.call("reshape", shape=(*batch, rows, columns // most, most))
    n = len(batch)
    return cut.call("transpose", axes=(*range(n), n + 1, n, n + 2))


_MOST_NUMBERS = 64
_MOST_COLUMNS = 8
_MANY_ROWS = 1024
_ROWS_PER_NUMBER = 64
"""4,096 rows of 8 times 8 columns take 22 us on VectorE and 25 on TensorE, to which their columns
are loaded a few numbers at a time; 2,048 rows 18 and 14; 16,384 rows of 3 times one 5 and 53."""


def is_thin(m: Match) -> bool:
    """Whether many rows of few numbers are multiplied with one small matrix, as colours are."""
    left, right = m.spec(m["a"]).shape, m.spec(m["b"]).shape
    few = 1 < right[-2] <= _MOST_COLUMNS and prod(right) <= _MOST_NUMBERS
    many = prod(left[:-1]) >= max(_MANY_ROWS, _ROWS_PER_NUMBER * prod(right))
    return m.dtype.is_float and few and len(right) == 2 and many


def by_columns(m: Match) -> str:
    """Each column of the result: the sum of a's columns times the numbers of b's; in float32."""
    a, b = m.expr("a"), m.expr("b")
    terms, columns = b.shape
    left = [a.part(-1, k, 1).to(float32) for k in range(terms)]
    made = []
    for n in range(columns):
        total = left[0] * _number(m, b, 0, n)
        for k in range(1, terms):
            total = total + left[k] * _number(m, b, k, n)
        made.append(total.to(m.dtype))
    last = len(m.root.spec.shape) - 1
    return (
        made[0].value if columns == 1 else made[0].call("concatenate", *made[1:], axis=last).value
    )


def _number(m: Match, x: Expr, row: int, column: int) -> Expr:
    """One element of a matrix as float32: known, where the matrix is."""
    node = m.build.by_name.get(x.value)
    if node is None or node.op != "constant":
        return x.part(-2, row, 1).part(-1, column, 1).to(float32)
    return m.constant(node.attrs["value"].array[row, column], float32)


# ------------------------------------------------------------------------- factors


def product(m: Match) -> str:
    """Along one axis after the other: one half times the other, until one is left."""
    x = m.expr("x")
    for axis in m.root.attrs["axes"]:
        x = _along(x, axis)
    return m.result(x)


def _along(x: Expr, axis: int) -> Expr:
    odd: Expr | None = None
    while (count := x.shape[axis]) > 1:
        half = count // 2
        if count % 2:
            last = x.part(axis, count - 1, 1)
            odd = last if odd is None else odd * last
        x = x.part(axis, 0, half) * x.part(axis, half, half)
    return x if odd is None else x * odd


_MATMUL = of("matmul", "a", "b")

RULES = (
    RewriteRule("matmul_of_nothing", _MATMUL, of_nothing, has_no_terms),
    RewriteRule("matmul_of_narrow", _MATMUL, of_narrow_floats, is_narrow_float),
    RewriteRule("matmul_of_vectors", _MATMUL, of_vectors, has_vectors),
    RewriteRule("thin_matmul", _MATMUL, by_columns, is_thin),
    RewriteRule("integer_matmul_with_vector", _MATMUL, with_vector, has_vector),
    RewriteRule("integer_matmul", _MATMUL, of_integers, is_integer),
    RewriteRule("integer_prod", of("prod", "x"), product, is_integer),
)
