"""Which functions of the array API standard and which methods of arrays a traced function may use.

    python workspace/array_api.py

prints the table of docs/generator.md. Every name has an example, which is traced: it is supported,
or rejected with the reason of its error. Names: the array API standard, version 2024.12
(data-apis.org/array-api/2024.12, API specification), and `dir(numpy.ndarray)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import nkigen_lite
from neuroncore.errors import KernelError

ARGUMENTS = {
    "x": "f32[4, 6]", "y": "f32[4, 6]", "s": "f32[4, 4]", "v": "f32[6]", "i": "i32[4, 6]",
    "j": "i32[3]", "b": "bool[4, 6]",
}  # fmt: skip

UNARY = (
    "abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor imag isfinite isinf "
    "isnan log log1p log2 log10 negative positive real reciprocal round sign signbit sin sinh "
    "square sqrt tan tanh trunc"
)
BINARY = (
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal "
    "logaddexp maximum minimum multiply nextafter not_equal pow remainder subtract"
)
OF_INTEGERS = "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor"
OF_BOOL = "logical_and logical_or logical_xor"
SETS = "unique_all unique_counts unique_inverse unique_values"
OF_SQUARES = (
    "cholesky det eigh eigvalsh inv matrix_norm matrix_rank pinv qr slogdet svd svdvals "
    "diagonal trace matrix_transpose"
)
TRANSFORMS = "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftshift ifftshift"
METHODS = "all any argmax argmin argsort cumprod cumsum max mean min prod std sum var"
REDUCTIONS = "argmax argmin count_nonzero max mean min prod std sum var all any"

EXAMPLES: dict[str, dict[str, str]] = {
    "creation": {
        "arange": "x + np.arange(6, dtype=np.float32)", "asarray": "np.asarray(x)",
        "empty": "np.empty((4, 6), np.float32) * 0 + x", "empty_like": "np.empty_like(x) * 0",
        "eye": "s + np.eye(4, dtype=np.float32)", "from_dlpack": "np.from_dlpack(x)",
        "full": "x + np.full(6, 2, np.float32)", "full_like": "np.full_like(x, 2)",
        "linspace": "x + np.linspace(0, 1, 6, dtype=np.float32)",
        "meshgrid": "np.meshgrid(v, v)[0]", "ones": "x + np.ones(6, np.float32)",
        "ones_like": "np.ones_like(x)", "tril": "np.tril(x)", "triu": "np.triu(x)",
        "zeros": "x + np.zeros(6, np.float32)", "zeros_like": "np.zeros_like(x)",
    },
    "data types": {
        "astype": "np.astype(x, np.int32)", "can_cast": "x * np.can_cast(np.int8, x.dtype)",
        "finfo": "x * float(np.finfo(x.dtype).eps)", "iinfo": "i - np.iinfo(i.dtype).max",
        "isdtype": "x * np.isdtype(x.dtype, 'real floating')",
        "result_type": "x.astype(np.result_type(x, np.float16))",
    },
    "element-wise": {
        **{n: f"np.{n}(x)" for n in UNARY.split()}, **{n: f"np.{n}(x, y)" for n in BINARY.split()},
        **{n: f"np.{n}(i, i)" for n in OF_INTEGERS.split()},
        **{n: f"np.{n}(b, x > 1)" for n in OF_BOOL.split()},
        "bitwise_invert": "np.bitwise_invert(i)", "logical_not": "np.logical_not(b)",
        "clip": "np.clip(x, 0.5, 1)",
    },
    "indexing": {
        "take": "np.take(x, j, axis=0)", "take_along_axis": "np.take_along_axis(x, i, axis=1)",
    },
    "linear algebra": {
        "matmul": "np.matmul(x, y.T)", "matrix_transpose": "np.matrix_transpose(x)",
        "tensordot": "np.tensordot(x, y.T, axes=1)", "vecdot": "np.vecdot(x, y)",
    },
    "manipulation": {
        "broadcast_arrays": "np.broadcast_arrays(x, v)[1]",
        "broadcast_to": "np.broadcast_to(v, (4, 6))", "concat": "np.concat([x, y])",
        "expand_dims": "np.expand_dims(x, 1)", "flip": "np.flip(x)",
        "moveaxis": "np.moveaxis(x, 0, 1)", "permute_dims": "np.permute_dims(x, (1, 0))",
        "repeat": "np.repeat(x, 2, axis=1)", "reshape": "np.reshape(x, (2, 12))",
        "roll": "np.roll(x, 2, axis=1)", "squeeze": "np.squeeze(x[None], 0)",
        "stack": "np.stack([x, y])", "tile": "np.tile(x, 2)", "unstack": "np.unstack(x)[1]",
    },
    "searching": {
        "argmax": "np.argmax(x, axis=1)", "argmin": "np.argmin(x, axis=1)",
        "count_nonzero": "np.count_nonzero(x, axis=1)", "nonzero": "np.nonzero(x)",
        "searchsorted": "np.searchsorted(np.sort(v), x[0])", "where": "np.where(b, x, y)",
    },
    "sets": {n: f"np.{n}(x)" for n in SETS.split()},
    "sorting": {"argsort": "np.argsort(x, axis=1)", "sort": "np.sort(x, axis=1)"},
    "statistics": {
        **{n: f"np.{n}(x, axis=1)" for n in REDUCTIONS.split()},
        "cumulative_prod": "np.cumulative_prod(x, axis=1)",
        "cumulative_sum": "np.cumulative_sum(x, axis=1)", "diff": "np.diff(x, axis=1)",
    },
    "linalg": {
        **{n: f"np.linalg.{n}(s)" for n in
           OF_SQUARES.split()},
        "cross": "np.linalg.cross(x[:, :3], y[:, :3])", "matmul": "np.linalg.matmul(x, y.T)",
        "matrix_power": "np.linalg.matrix_power(s, 3)", "outer": "np.linalg.outer(v, v)",
        "solve": "np.linalg.solve(s, x)", "tensordot": "np.linalg.tensordot(x, y.T, axes=1)",
        "vecdot": "np.linalg.vecdot(x, y)", "vector_norm": "np.linalg.vector_norm(x, axis=1)",
    },
    "fft": {
        **{n: f"np.fft.{n}(x)" for n in
           TRANSFORMS.split()},
        "fftfreq": "x + np.fft.fftfreq(6).astype(np.float32)",
        "rfftfreq": "v[:4] + np.fft.rfftfreq(6).astype(np.float32)",
    },
    "methods of arrays": {
        **{n: f"x.{n}(axis=1)" for n in
           METHODS.split()},
        "T": "x.T", "mT": "x.mT", "imag": "x.imag", "real": "x.real", "flat": "x.flat[3]",
        "shape": "x * x.shape[0]", "size": "x * x.size", "ndim": "x * x.ndim",
        "dtype": "x.astype(x.dtype)", "itemsize": "x * x.itemsize", "nbytes": "x * x.nbytes",
        "strides": "x * x.strides[0]", "base": "x * (x.base is None)",
        "flags": "x * x.flags.writeable",
        "data": "x.data", "ctypes": "x.ctypes", "device": "x * (x.device == 'cpu')",
        "astype": "x.astype(np.float16)", "byteswap": "x.byteswap()", "conj": "x.conj()",
        "conjugate": "x.conjugate()", "copy": "x.copy()", "choose": "(i % 2).choose([x, y])",
        "clip": "x.clip(0, 1)", "compress": "x.compress([True, False, True], axis=0)",
        "diagonal": "x.diagonal()", "dot": "x.dot(y.T)", "dump": "x.dump('f')",
        "dumps": "x.dumps()", "fill": "(lambda c: (c.fill(2), c)[1])(x.copy())",
        "flatten": "x.flatten()", "getfield": "x.getfield(np.int32)", "item": "x.item(0)",
        "nonzero": "x.nonzero()", "partition": "(lambda c: (c.partition(2), c)[1])(x.copy())",
        "argpartition": "np.take_along_axis(x, x.argpartition(2, axis=1), 1)[:, 2]",
        "put": "(lambda c: (c.put([1, 2], 5), c)[1])(x.copy())", "ravel": "x.ravel()",
        "repeat": "x.repeat(2)", "reshape": "x.reshape(2, 12)", "resize": "x.resize(2, 12)",
        "round": "x.round(1)", "searchsorted": "np.sort(v).searchsorted(x[0])",
        "setfield": "x.setfield(1, np.int32)", "setflags": "x.setflags(write=False)",
        "sort": "(lambda c: (c.sort(), c)[1])(x.copy())", "squeeze": "x[None].squeeze(0)",
        "swapaxes": "x.swapaxes(0, 1)", "take": "x.take(j, axis=0)",
        "to_device": "x.to_device('cpu')",
        "tobytes": "x.tobytes()", "tofile": "x.tofile('f')", "tolist": "x.tolist()",
        "trace": "x.trace()", "transpose": "x.transpose()", "view": "x.view(np.int32)",
    },
}  # fmt: skip
"""Category → name → an expression of the arguments."""


def function_of(expression: str) -> Any:
    """The expression as a function of the arguments."""
    return eval(f"lambda {', '.join(ARGUMENTS)}: {expression}", {"np": np})


def reason(expression: str) -> str:
    """Why the example is rejected; empty where it is supported."""
    try:
        nkigen_lite.trace(function_of(expression), *ARGUMENTS.values())
    except AttributeError:
        return "it needs values, which only exist when the kernel runs"
    except KernelError as error:
        return str(error.hint or error.what).split(";")[0]
    return ""


def listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def lines() -> Iterator[str]:
    """The table of names, then the reasons of rejected ones."""
    reasons: dict[str, list[str]] = {}
    yield "| array API standard 2024.12 | supported | rejected |"
    yield "|---|---|---|"
    for category, examples in EXAMPLES.items():
        why = {name: reason(expression) for name, expression in examples.items()}
        for name in filter(why.get, why):
            reasons.setdefault(why[name], []).append(name)
        good, bad = ([n for n in why if bool(why[n]) is rejected] for rejected in (False, True))
        yield f"| {category} | {listed(good)} | {listed(bad)} |"
    yield ""
    for text, names in reasons.items():
        yield f"- {listed(list(dict.fromkeys(names)))}: {text}."


if __name__ == "__main__":
    print("\n".join(lines()))
