"""The language as a backend of the switch, and the modules under the name `neuronxcc.nki`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from neuroncore.enums import Engine
from neuroncore.errors import LaunchError
from neuroncore.machine.backend import Choice
from nki_beta1.index import axes
from nki_beta1.language import constants, isa, nki_typing, transfers
from nki_beta1.launch import grid, kernel
from nki_beta1.launch.kernel import NAME, Kernel, undecorated
from nki_beta1.tensor import allocation, creation
from nki_beta1.values.attributes import NL, call_by_name

_LANGUAGE_NAMES: dict[str, Any] = {
    **constants.DTYPES,
    **constants.BUFFERS,
    **NL,
    **{
        f.__name__: f
        for f in (
            creation.par_dim, transfers.static_cast, transfers.expand_dims, grid.affine_range,
            grid.sequential_range, grid.static_range, grid.program_id, grid.num_programs,
            grid.program_ndim, grid.nc, grid.spmd_dim, axes.arange,
        )
    },
    "ds": axes.ds,
    "mgrid": axes.mgrid,
    "tile_size": constants.TILE_SIZE,
    "fp32": constants.Limits("float32"),
    "bfp16": constants.Limits("bfloat16"),
    "finfo": constants.number_info,
}  # fmt: skip

call_by_name("nl", _LANGUAGE_NAMES)

_ISA_NAMES: dict[str, Any] = {
    **isa.isa_functions(),
    **isa.CONSTANTS,
    "get_nc_version": isa.get_nc_version,
    "dma_engine": Engine.dma,
}

_COMPILER_NAMES: dict[str, Any] = {
    "skip_middle_end_transformations": nki_typing.skip_middle_end_transformations,
    "enable_stack_allocator": nki_typing.enable_stack_allocator,
    "force_auto_alloc": nki_typing.force_auto_alloc,
    "sbuf": allocation.SbufAllocation(),
    "psum": allocation.PsumAllocation(),
    "no_reorder": nki_typing.no_reorder,
}

_TYPING_NAMES = {
    "tensor": nki_typing.tensor,
    "mutable_tensor": nki_typing.mutable_tensor,
    "mutable": nki_typing.mutable,
    "scalar": nki_typing.scalar,
}


def _module(name: str, doc: str, names: dict[str, Any], is_package: bool = False) -> ModuleType:
    module = ModuleType(name, doc)
    vars(module).update(names)
    vars(module)["__getattr__"] = constants.unsupported_names(module)
    vars(module)["__all__"] = [n for n in names if not n.startswith("_")]
    if is_package:
        module.__path__ = constants.NoSubmodules()
    return module


@cache
def modules_of(choice: Choice) -> dict[str, ModuleType]:
    """Every module of the language for a choice; the same choice gives the same modules."""
    nki = _module("neuronxcc.nki", "NKI 0.1 on the machine.", _top(choice), is_package=True)
    root = _module("neuronxcc", "In place of the vendor's package.", {"nki": nki}, is_package=True)
    found = [root, nki]
    for name, names, is_package in (
        ("language", _LANGUAGE_NAMES, False), ("isa", _ISA_NAMES, True),
        ("typing", _TYPING_NAMES, False), ("compiler", _COMPILER_NAMES, True),
    ):  # fmt: skip
        child = _module(f"neuronxcc.nki.{name}", f"nki.{name} of NKI 0.1.", names, is_package)
        vars(nki)[name] = child
        found.append(child)
    isa_constants = _module(
        "neuronxcc.nki.isa.constants", "Constants of nki.isa of NKI 0.1.", isa.CONSTANTS
    )
    vars(vars(nki)["isa"])["constants"] = isa_constants
    return {m.__name__: m for m in (*found, isa_constants)}


def _top(choice: Choice) -> dict[str, Any]:
    return {
        "tensor": nki_typing.tensor,
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
            return kernel.but(choice=choice, is_targeted=True)
        if callable(kernel):
            return undecorated(kernel, choice).but(is_targeted=True)
        raise LaunchError("simulate takes a kernel", got=type(kernel).__name__)


BACKEND = Beta1()
