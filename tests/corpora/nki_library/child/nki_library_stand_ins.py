"""Unpublished modules that the library's harness imports, put into `sys.modules`.

`nki` is ours, chosen by the switch. `nki_cpu_simulator.nki…` is another name of the same modules;
`neuron_dtypes` is a few NumPy functions; the private helper modules of the harness hold classes
without content, which simulation mode imports and never calls.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

import nki_dtypes
import nki_runtime

VERSION = os.environ.get("NKI_LIBRARY_NKI", "0.3")
RESULTS = hashlib.sha256()
"""Of the types, shapes and bytes of what the kernels of a test return, in order."""
# Name under `nki_cpu_simulator`, and the module of ours that answers; None: an empty module.
SIMULATOR = {
    "nki": "nki",
    "nki.builtin": None,
    "nki.compiler": "nki.compiler",
    "nki.isa": "nki.isa",
    "nki.isa.constants": "nki.isa.constants",
    "nki.language": "nki.language",
    "nki.language.dtypes": "nki.dtype",
    "nki.tensor": "nki.tensor",
    "nki.typing": "nki.typing",
}
NUMPY_TYPES = ("bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2")
PACKED_TYPES = ("float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4")
# The names that the harness takes from modules that are not in the public checkout.
PRIVATE = {
    "neuronxcc.starfish": (),
    "neuronxcc.starfish.support": (),
    "neuronxcc.starfish.support.dtype": (),
    "nki.compiler": (),
    "nki.compiler.frontend": ("NKIFrontend",),
    "test.utils.perf_analysis_private": ("analyze_trace",),
    "test.utils.scripts": (),
    "test.utils.scripts.remote_lock_scripts": ("LockResult", "LockStatus"),
}


class Tracer:
    """In place of the compiler's frontend, which tests that are marked `trace_only` ask for.

    To trace is to run the kernel once on its inputs: everything but instructions is evaluated
    then, and what the compiler would reject is raised.
    """

    def compile(
        self,
        kernel: Any,
        *,
        inputs: dict[str, Any],
        target: str,
        lnc: int,
        artifacts_dir: Any = None,
        dump_python_ast: bool = False,
        output_names: list[str] | None = None,
    ) -> None:
        """Run the kernel on `lnc` cores of `target`; folders, dumps and names are for artifacts."""
        with nki_runtime.use(nki=VERSION, target=target):
            nki_runtime.simulate(kernel)[lnc](**inputs)


def use(**options: Any) -> None:
    """Let `nki` be ours, on the platform of the session."""
    nki_runtime.use(nki=VERSION, target=os.environ.get("NKI_LIBRARY_TARGET", "trn2"), **options)
    nki = importlib.import_module("nki")
    vars(nki)["cpu_simulate"] = lambda kernel: Simulation(nki.simulate(kernel))


def set_up() -> None:
    """Switch `nki` on, then put the stand-ins in place: before the harness is imported."""
    nki_runtime.use("beta1")  # annotations of 0.3 kernels come from neuronxcc.nki.typing
    use()
    for name, contents in PRIVATE.items():
        _place(name, **{content: type(content, (), {}) for content in contents})
    vars(sys.modules["nki.compiler.frontend"]).update(ParserFrontend=Tracer)
    _place("neuron_dtypes", **_dtypes())
    vars(sys.modules["neuronxcc.starfish.support.dtype"]).update(_dtypes())
    _place("nki_cpu_simulator")
    for name, ours in SIMULATOR.items():
        _alias(f"nki_cpu_simulator.{name}", ours)


class Simulation:
    """A kernel in the vendor's simulator, whose results of packed types are bits: ours are words,
    which the harness reads as float32, and NumPy would convert as numbers."""

    def __init__(self, simulation: Any) -> None:
        self.simulation = simulation

    def __getitem__(self, lnc: int) -> Simulation:
        return Simulation(self.simulation[lnc])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = self.simulation(*args, **kwargs)
        if isinstance(result, (list, tuple)):
            return type(result)(map(_bits, map(_noted, result)))
        return _bits(_noted(result))


class Bits:
    """An array of words; as an array of floats it has the same bits."""

    def __init__(self, words: np.ndarray) -> None:
        self.words = words

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        is_float = dtype is not None and np.dtype(dtype).kind == "f"
        return self.words.view(dtype) if is_float else self.words.astype(dtype or np.uint32)


def _noted(result: Any) -> Any:
    """The result, after it has been added to the digest of results."""
    array = np.asarray(result)
    RESULTS.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return result


def _bits(result: Any) -> Any:
    is_words = isinstance(result, np.ndarray) and result.dtype == np.uint32
    return Bits(result) if is_words else result


def _dtypes() -> dict[str, Any]:
    language = importlib.import_module("nki.language")
    return {
        "static_cast": static_cast,
        "is_float_type": is_float_type,
        "sizeinbytes": lambda dtype: np.dtype(dtype).itemsize,
        **{name: getattr(ml_dtypes, name) for name in NUMPY_TYPES},
        **{name: getattr(language, name) for name in PACKED_TYPES},
    }


def static_cast(array: Any, dtype: Any) -> np.ndarray:
    """The array in another type, as NumPy and ml_dtypes round: to the nearest, ties to even.

    Four elements of the last axis are one of a packed type.
    """
    values = np.asarray(array)
    if values.dtype.names is not None:
        packed = nki_dtypes.resolve(values.dtype)
        values = nki_dtypes.unpack_x4(values.view(packed.storage), packed)
    if np.dtype(dtype).names is not None:
        packed = nki_dtypes.resolve(np.dtype(dtype))
        narrow = values.astype(np.float32) if values.dtype == np.float64 else values
        return nki_dtypes.pack_x4(narrow, packed).view(packed.words)
    return values.astype(np.dtype(dtype))


def is_float_type(dtype: Any) -> bool:
    """Whether a NumPy type is a floating one, ml_dtypes included."""
    try:
        ml_dtypes.finfo(np.dtype(dtype))
    except ValueError:
        return False
    return True


def _place(name: str, **contents: object) -> None:
    module = ModuleType(name)
    module.__path__ = []
    vars(module).update(contents)
    _register(name, module)


def _alias(name: str, ours: str | None) -> None:
    if ours is None:
        _place(name)
    else:
        _register(name, importlib.import_module(ours))


def _register(name: str, module: ModuleType) -> None:
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent in sys.modules and not hasattr(sys.modules[parent], last):
        setattr(sys.modules[parent], last, module)
