"""A small world for the tests: a core, tensors on it, and the functions kernels call."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from neuroncore.enums import MemorySpace
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.functions import make_function
from neuroncore.machine.core import NeuronCore
from neuroncore.memory import View
from neuroncore.surface import signature
from nki_dtypes import cast, resolve


class World:
    """One core and short ways to put tensors on it and read them back."""

    def __init__(self, core: NeuronCore) -> None:
        self.core = core

    def tile(self, values: Any, dtype: str = "float32", space: str = "sbuf") -> View:
        """A tensor holding `values`, rounded to `dtype`."""
        exact = np.asarray(values)
        if exact.dtype.itemsize == 8:
            whole = exact.dtype.kind == "i" and resolve(dtype).is_integer
            exact = exact.astype(resolve(dtype).storage if whole else np.float32)
        stored = cast(exact, dtype)
        return self.core.adopt(stored, MemorySpace[space], dtype=resolve(dtype))

    def new(self, shape: tuple[int, ...], dtype: str = "float32", space: str = "sbuf") -> View:
        """A tensor that nothing has written."""
        return self.core.allocate(shape, dtype, MemorySpace[space])


def values(view: View) -> np.ndarray:
    """The numbers in a view, in float64."""
    view.initialize()
    return view.array.astype(np.float64)


def isa_of(version: str) -> SimpleNamespace:
    """Every instruction as a kernel of `version` calls it."""
    return SimpleNamespace(
        **{
            name: make_function(record, found)
            for name, record in INSTRUCTIONS.items()
            if (found := signature(name, version)) is not None
        }
    )


FORMATS = {
    # exponent bits, mantissa bits, largest finite value, what overflow gives
    "float32": (8, 23, float(np.finfo(np.float32).max), np.inf),
    "tfloat32": (8, 10, (2 - 2.0**-10) * 2.0**127, np.inf),
    "bfloat16": (8, 7, (2 - 2.0**-7) * 2.0**127, np.inf),
    "float16": (5, 10, 65504.0, np.inf),
    "float8_e4m3": (4, 3, 240.0, np.inf),
    "float8_e4m3fn": (4, 3, 448.0, np.nan),
    "float8_e5m2": (5, 2, 57344.0, np.inf),
}
INTEGERS = {
    f"{sign}int{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32)
}


def rounded(exact: Any, dtype: str) -> np.ndarray:
    """The nearest values of a format, ties to even, in float64: arithmetic on exponents only."""
    x = np.asarray(exact, np.float64)
    if dtype in INTEGERS:
        return np.clip(np.rint(np.nan_to_num(x, posinf=np.inf, neginf=-np.inf)), *INTEGERS[dtype])
    exponent_bits, mantissa_bits, largest, beyond = FORMATS[dtype]
    least = 2 - 2 ** (exponent_bits - 1)
    finite = np.isfinite(x)
    _, above = np.frexp(np.where(finite, x, 1.0))
    step = np.ldexp(1.0, np.maximum(above - 1, least) - mantissa_bits)
    near = np.where(finite, np.rint(np.where(finite, x, 0) / step) * step, x)
    return np.where(np.abs(near) > largest, np.copysign(beyond, near), near)


@pytest.fixture(name="rounded", scope="session")
def rounded_fixture() -> Callable[[Any, str], np.ndarray]:
    return rounded


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2)


@pytest.fixture
def make_world() -> Callable[..., World]:
    """A world on a core with the given arguments."""
    return lambda *args, **kwargs: World(NeuronCore(*args, **kwargs))


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


@pytest.fixture(scope="session")
def nisa() -> SimpleNamespace:
    """The instructions of 0.6."""
    return isa_of("0.6")


@pytest.fixture(scope="session")
def nisa_07() -> SimpleNamespace:
    """The instructions of 0.7."""
    return isa_of("0.7")


@pytest.fixture(scope="session")
def nisa_02() -> SimpleNamespace:
    """The instructions of 0.2."""
    return isa_of("0.2")


@pytest.fixture(name="values", scope="session")
def values_fixture() -> Callable[[View], np.ndarray]:
    return values
