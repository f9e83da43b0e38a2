"""The language as a backend of the switch, and the modules under the name `neuronxcc.nki`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from neuroncore.enums import Engine
from neuroncore.errors import LaunchError
from neuroncore.machine.backend import Choice
from nki_beta1 import language
from nki_beta1.index import axes
from nki_beta1.launch import grid, kernel
from nki_beta1.launch.kernel import NAME, Kernel, undecorated
from nki_beta1.tensor import allocation, creation
from nki_beta1.values.attributes import call_by_name

_LANGUAGE_NAMES: dict[str, Any] = {
    **language.DTYPES,
    **language.BUFFERS,
    **language.FUNCTIONS,
    **language.REDUCTIONS,
    **{
        f.__name__: f
        for f in (
            creation.ndarray, creation.zeros, creation.ones, creation.full, creation.zeros_like,
            creation.empty_like, creation.shared_constant, creation.shared_identity_matrix,
            creation.par_dim, language.load, language.load_transpose2d, language.store,
            language.copy, language.static_cast, language.transpose, language.matmul,
            language.expand_dims, language.broadcast_to, language.device_print,
            language.mean, language.var, language.softmax, language.rms_norm,
            language.all_reduce, language.loop_reduce, language.gather_flattened,
            language.atomic_rmw, language.rand, language.dropout,
            language.random_seed, grid.affine_range, grid.sequential_range,
            grid.static_range, grid.program_id, grid.num_programs, grid.program_ndim, grid.nc,
            grid.spmd_dim, axes.arange,
        )
    },
    "ds": axes.ds,
    "mgrid": axes.mgrid,
    "tile_size": language.TileSize(),
    "fp32": language.Limits("float32"),
    "bfp16": language.Limits("bfloat16"),
    "finfo": language.number_info,
}  # fmt: skip

call_by_name("nl", _LANGUAGE_NAMES)

_ISA_NAMES: dict[str, Any] = {
    **language.isa_functions(),
    **language.CONSTANTS,
    "get_nc_version": language.get_nc_version,
    "dma_engine": Engine.dma,
}

_COMPILER_NAMES: dict[str, Any] = {
    "skip_middle_end_transformations": language.skip_middle_end_transformations,
    "enable_stack_allocator": language.enable_stack_allocator,
    "force_auto_alloc": language.force_auto_alloc,
    "sbuf": allocation.SbufAllocation(),
    "psum": allocation.PsumAllocation(),
    "no_reorder": language.no_reorder,
}

_TYPING_NAMES = {
    "tensor": language.tensor,
    "mutable_tensor": language.mutable_tensor,
    "mutable": language.mutable,
    "scalar": language.scalar,
}


def _module(name: str, doc: str, names: dict[str, Any], is_package: bool = False) -> ModuleType:
    module = ModuleType(name, doc)
    vars(module).update(names)
    vars(module)["__getattr__"] = language.unsupported_names(module)
    vars(module)["__all__"] = [n for n in names if not n.startswith("_")]
    if is_package:
        module.__path__ = language.NoSubmodules()
    return module


@cache
def modules_of(choice: Choice) -> dict[str, ModuleType]:
    """Every module of the language for a choice; the same choice gives the same modules."""
    nl = _module("neuronxcc.nki.language", "nki.language of NKI 0.1.", _LANGUAGE_NAMES)
    isa = _module("neuronxcc.nki.isa", "nki.isa of NKI 0.1.", _ISA_NAMES, is_package=True)
    constants = _module(
        "neuronxcc.nki.isa.constants", "Constants of nki.isa of NKI 0.1.", language.CONSTANTS
    )
    vars(isa)["constants"] = constants
    typing = _module("neuronxcc.nki.typing", "nki.typing of NKI 0.1.", _TYPING_NAMES)
    compiler = _module(
        "neuronxcc.nki.compiler", "nki.compiler of NKI 0.1.", _COMPILER_NAMES, is_package=True
    )
    nki = _module("neuronxcc.nki", "NKI 0.1 on the machine.", _top(choice), is_package=True)
    for name, child in (
        ("language", nl), ("isa", isa), ("typing", typing), ("compiler", compiler),
    ):  # fmt: skip
        vars(nki)[name] = child
    root = _module("neuronxcc", "In place of the vendor's package.", {"nki": nki}, is_package=True)
    return {m.__name__: m for m in (root, nki, nl, isa, constants, typing, compiler)}


def _top(choice: Choice) -> dict[str, Any]:
    return {
        "tensor": language.tensor,
        "jit": kernel.make_jit(choice),
        "simulate_kernel": kernel.simulate_kernel,
        **{what: kernel.on_device(what, choice) for what in ("baremetal", "benchmark", "profile")},
    }


class Beta1:
    """NKI 0.1, which answers `import neuronxcc.nki`."""

    name = NAME
    versions = ("0.1",)
    default_version = "0.1"
    top_level = "neuronxcc.nki"

    def modules(self, choice: Choice) -> Mapping[str, ModuleType]:
        """neuronxcc, neuronxcc.nki and its children; one set per choice."""
        return modules_of(choice)

    def is_kernel(self, obj: object) -> bool:
        return isinstance(obj, Kernel)

    def simulate(self, kernel: Any, choice: Choice) -> Kernel:
        """The kernel, or an undecorated function, under `choice`."""
        if isinstance(kernel, Kernel):
            return kernel.but(choice=choice)
        if callable(kernel):
            return undecorated(kernel, choice)
        raise LaunchError("simulate takes a kernel", got=type(kernel).__name__)


BACKEND = Beta1()
