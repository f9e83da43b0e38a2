"""Random NumPy functions, and the same with one mistake, as their text."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

LIMITS = (0.1, 0.3, 0.5, 1.0, 2.5, 5.0, 50.0, 1000.0)
SUMMANDS = {
    "f32": (1e-3, 1e-5, 1e-6, 1e-8),
    "bf16": (1e-3, 1e-5, 1e-6, 1e-8),
    "f16": (1e-2, 1e-3),
}
"""Normal numbers of the dtypes."""
DTYPES = ("f32", "f32", "f32", "bf16", "f16")
STORAGES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}

OPERATIONS: Mapping[str, tuple[str, ...]] = {
    "np.clip({v}, -{c}, {c})": ("{v}", "np.clip({v}, -{d}, {d})", "np.minimum({v}, {c})"),
    "np.maximum({v}, {c})": ("{v}", "np.minimum({v}, {c})", "np.maximum({v}, {d})"),
    "np.minimum({v}, -{c})": ("{v}", "np.maximum({v}, -{c})", "np.minimum({v}, -{d})"),
    "np.maximum({v}, 0)": ("{v}", "np.minimum({v}, 0)", "np.abs({v})"),
    "np.where({v} > {c}, {v}, {w})": (
        "np.where({v} > {d}, {v}, {w})", "np.where({v} < {c}, {v}, {w})",
        "np.where({v} > {c}, {w}, {v})", "{v}",
    ),
    "np.where({v} >= {c}, 1.0, {v})": ("np.where({v} > {c}, 1.0, {v})", "{v}"),
    "({v} - {w})": ("({w} - {v})", "({v} + {w})"),
    "({v} / (np.abs({w}) + {e}))": ("({v} / np.abs({w}))", "({v} / (np.abs({w}) - {e}))"),
    "({v} / np.sqrt(np.mean({v} * {v}, axis=-1, keepdims=True) + {e}))": (
        "({v} / np.sqrt(np.mean({v} * {v}, axis=-1, keepdims=True)))",
        "({v} / np.sqrt(np.sum({v} * {v}, axis=-1, keepdims=True) + {e}))",
    ),
    "({v} - np.max({v}, axis=-1, keepdims=True))": (
        "({v} - np.min({v}, axis=-1, keepdims=True))", "{v}",
    ),
    "np.floor({v})": ("{v}", "np.ceil({v})", "np.floor({v} + 0.5)"),
    "np.tanh({v})": ("{v}", "np.tanh({v} * 1.1)"),
    "(1 / (1 + np.exp(-{v})))": ("(1 / (1 + np.exp({v})))", "(1 / (2 + np.exp(-{v})))"),
    "({v} * {c})": ("{v}", "({v} * {d})"),
    "({v} + {c})": ("{v}", "({v} - {c})", "({v} + {d})"),
    "np.log(np.abs({v}) + {e})": ("np.log(np.abs({v}))",),
}  # fmt: skip
"""Operations, each with wrong ones: of v, of another value w, constants c and d, a summand e."""


class Mutant(NamedTuple):
    """A function, a wrong one, and the dtype of their two arguments."""

    right: str
    wrong: str
    dtype: str


def mutants(seed: int) -> Iterator[Mutant]:
    """Functions of up to three operations, one of which is wrong in the other function."""
    choose = random.Random(seed)
    while True:
        right = wrong = choose.choice(["x", "x", "(x * w)"])
        dtype, length = choose.choice(DTYPES), choose.randint(1, 3)
        mistake = choose.randrange(length)
        for at in range(length):
            operation = choose.choice([*OPERATIONS])
            other = choose.choice(OPERATIONS[operation]) if at == mistake else operation
            c, d = choose.sample(LIMITS, 2)
            fill = {"c": c, "d": d, "e": choose.choice(SUMMANDS[dtype]), "w": "w"}
            right, wrong = operation.format(v=right, **fill), other.format(v=wrong, **fill)
        yield Mutant(right, wrong, dtype)


def function(text: str) -> Callable[..., Any]:
    """Of x and w."""
    return eval(f"lambda x, w: {text}", {"np": np, "bf16": ml_dtypes.bfloat16})


def are_distinct(mutant: Mutant) -> bool:
    """Whether the functions differ by more than a few roundings to the dtype, in float64 and in
    float32: for inputs of some magnitude, in a hundredth of the elements that have a value.
    """
    storage = STORAGES[mutant.dtype]
    tolerance = 1e-4 + 64 * float(ml_dtypes.finfo(storage).eps)
    random = np.random.default_rng(0)
    for exponent in range(-30, 13, 2):
        drawn = (random.standard_normal((2, 64, 64)) * 2.0**exponent).astype(storage)
        far = np.ones(drawn.shape[1:], np.bool_)
        for dtype in (np.float64, np.float32):
            with np.errstate(all="ignore"):
                one, other = (function(text)(*drawn.astype(dtype)) for text in mutant[:2])
                far &= np.abs(one - other) > tolerance * np.maximum(np.abs(one), np.abs(other))
            far &= np.isfinite(one) & np.isfinite(other)
        if far.mean() > 1 / 100:
            return True
    return False
