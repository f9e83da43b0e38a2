"""Operations on tiles: the compiler accepts every one of them, others are rejected by name."""

import numpy as np
import pytest
from packages.tokenplan.tests.tile_ir import kernels

from nki_dtypes import bfloat16
from tokenplan.checker import Execution
from tokenplan.tile_ir import DescriptionError, TileKernel, bytecode
from tokenplan.tile_ir.computations import COMPUTATIONS, FLOATS, PRODUCTS
from tokenplan.tile_ir.description import ATOMIC_MODES, ORDERS, SCOPES

SHAPE = (16, 16)
OTHERS = {"full", "mma", "transpose", "cast", "sum", "max"}
"""Operations that are not elementwise."""


def loaded(kernel, dtype):
    array = kernel.array(f"a_{dtype}", SHAPE, dtype)
    return array, kernel.load(array, (0, 0), SHAPE)


def every_operation(dtype):
    kernel = TileKernel("operations")
    array, x = loaded(kernel, dtype)
    y = kernel.compute("transpose", x)
    for name in COMPUTATIONS.keys() - OTHERS:
        y = kernel.compute(name, *(x, y)[: COMPUTATIONS[name].arity])
    for name in ("sum", "max"):
        y = kernel.compute("addf", y, kernel.compute(name, x, axis=1))
    for other in {*FLOATS} - {dtype}:
        y = kernel.compute("cast", kernel.compute("cast", y, dtype=other), dtype=dtype)
    kernel.store(array, (0, 0), y)
    return kernel


def every_product():
    kernel = TileKernel("products")
    for dtype, sums in PRODUCTS.items():
        _, x = loaded(kernel, dtype)
        for n, result in enumerate(sums):
            array = kernel.array(f"c_{dtype}_{n}", SHAPE, result)
            zero = kernel.full(SHAPE, 0.0, result)
            kernel.store(array, (0, 0), kernel.compute("mma", x, x, zero))
    return kernel


def every_update():
    kernel = TileKernel("updates")
    for dtype, modes in ATOMIC_MODES.items():
        array = kernel.array(f"a_{dtype}", SHAPE, dtype)
        for n, mode in enumerate(modes):
            kernel.atomic(array, (0, 0), mode, kernel.full(SHAPE, 1, dtype),
                          order=ORDERS["atomic"][n % 4], scope=SCOPES[n % 3])  # fmt: skip
    return kernel


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_compiler_accepts_every_operation_on_floats(tileiras, dtype):
    assert tileiras.compile_bytecode(kernels.bytes_of(every_operation(dtype)), "sm_90").cubin


@pytest.mark.parametrize("make", [every_product, every_update], ids=lambda make: make.__name__)
def test_the_compiler_accepts_every_product_and_every_atomic_update(tileiras, make):
    assert tileiras.compile_bytecode(kernels.bytes_of(make()), "sm_90").cubin


X, ROW, INTEGERS, HALF = "x", "row", "integers", "half"


@pytest.mark.parametrize(
    ("operation", "inputs", "attributes", "message"),
    [
        ("addf", [X], {}, "addf takes 2 tiles"),
        ("addf", [X, X], {"rounding": "zero"}, "addf takes tiles alone"),
        ("addf", [X, HALF], {}, "half contains f16"),
        ("addf", [X, ROW], {}, "x and row have shapes"),
        ("addf", [1.0, 2.0], {}, "addf of numbers alone"),
        ("exp", [INTEGERS], {}, "(?s)integers contains i32.*calculate with floats alone"),
        ("sum", [X], {"axis": 2}, "x has no axis 2"),
        ("sum", [X], {}, "sum takes axis alone"),
        ("transpose", [ROW], {}, "transpose of row"),
        ("cast", [X], {"dtype": "f32"}, "cast of x from f32 to f32"),
        ("cast", [X], {"dtype": "i32"}, "cast of x from f32 to i32"),
        ("mma", [X, X, ROW], {}, r"mma of \(16, 16\)"),
        ("mma", [X, HALF, X], {}, "half contains f16"),
        ("full", [], {"shape": (3,), "value": 1, "dtype": "f32"}, "powers of two"),
        ("full", [], {"shape": (4,), "value": 1, "dtype": "f99"}, "unknown dtype 'f99'"),
        ("full", [], {"shape": (4,), "value": 300, "dtype": "i8"}, "full of 300 in i8"),
        ("full", [], {"shape": (4,), "value": 0.5, "dtype": "i8"}, "full of 0.5 in i8"),
        ("full", [], {"shape": (4,), "value": float("nan"), "dtype": "i8"}, "full of nan in i8"),
        ("full", [], {"shape": (4,), "value": float("inf"), "dtype": "i8"}, "full of inf in i8"),
        ("full", [], {"shape": (4,), "value": 65520, "dtype": "f16"}, "full of 65520 in f16"),
        ("full", [], {"shape": (4,), "value": -1e39, "dtype": "f32"}, "full of -1e[+]39 in f32"),
        ("full", [], {"shape": (4,), "value": 3.4e38, "dtype": "bf16"}, "full of 3.4e[+]38"),
        ("full", [], {"shape": (4,), "value": 10**400, "dtype": "f64"}, "full of 1000"),
        ("full", [], {"shape": (4,), "value": "1", "dtype": "f32"}, "full of '1'"),
    ],
)
def test_operands_that_do_not_fit_are_rejected_by_name(operation, inputs, attributes, message):
    kernel = TileKernel("wrong")
    given = {
        name: kernel.load(kernel.array(f"of_{name}", shape, dtype), (0,) * len(shape), shape, name)
        for name, shape, dtype in ((X, SHAPE, "f32"), (ROW, (16,), "f32"),
                                   (INTEGERS, SHAPE, "i32"), (HALF, SHAPE, "f16"))
    }  # fmt: skip

    with pytest.raises(DescriptionError, match=message):
        kernel.compute(operation, *(given.get(x, x) for x in inputs), **attributes)


def test_a_tile_is_used_where_it_exists():
    kernel, other = TileKernel("one"), TileKernel("other")
    a = kernel.array("a", (64, 16))
    foreign = other.full(SHAPE, 1.0)
    with kernel.loop("k", 4) as k:
        inside = kernel.load(a, (k, 0), SHAPE)
        with pytest.raises(DescriptionError, match="carry: load is not a tile of this kernel here"):
            kernel.carry(inside)
    for tile in (inside, foreign):
        with pytest.raises(DescriptionError, match="is not a tile of this kernel here"):
            kernel.store(a, (0, 0), tile)
        with pytest.raises(DescriptionError, match="is not a tile of this kernel here"):
            kernel.compute("exp", tile)
    with pytest.raises(DescriptionError, match="carry outside of loops"):
        kernel.carry(kernel.full(SHAPE, 1.0))


FINITE = {"f16": 65519.0, "bf16": 3.3961773e38, "f32": 3.4028235e38, "f64": 1.7e308}


@pytest.mark.parametrize("dtype", FINITE)
def test_constants_are_rounded_to_even_and_stay_finite(dtype):
    formats = {"f16": np.float16, "bf16": bfloat16, "f32": np.float32, "f64": np.float64}
    numbers = [0.0, -0.0, 1.00390625, 1.01171875, -1 / 3, FINITE[dtype], np.inf, -np.inf, np.nan]
    for number in numbers:
        kernel = TileKernel("constant")
        kernel.store(kernel.array("a", (1,), dtype), (0,), kernel.full((1,), number, dtype))
        found = np.zeros(1, formats[dtype])
        function = bytecode.read(kernels.bytes_of(kernel)).functions[0]
        Execution([found], dtypes={"bf16": np.dtype(bfloat16)}).run(function)
        assert found.tobytes() == np.float64(number).astype(formats[dtype]).tobytes(), number
        assert np.isfinite(found[0].astype(float)) == np.isfinite(number)
