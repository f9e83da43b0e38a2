"""The modules that a choice puts under the name `neuronxcc.nki`."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

from neuroncore.backend import Choice
from neuroncore.engines import Engine
from nki_beta1 import (
    _allocation,
    _axes,
    _create,
    _gather,
    _grid,
    _isa,
    _kernel,
    _loop_reduce,
    _math,
    _move,
    _names,
    _random,
    _reduce,
    _typing,
)
from nki_beta1._misfit import call_by_name
from nki_beta1._private import NoSubmodules

_LANGUAGE_NAMES: dict[str, Any] = {
    **_names.DTYPES,
    **_names.BUFFERS,
    **_math.FUNCTIONS,
    **_reduce.REDUCTIONS,
    **{
        f.__name__: f
        for f in (
            _create.ndarray, _create.zeros, _create.ones, _create.full, _create.zeros_like,
            _create.empty_like, _create.shared_constant, _create.shared_identity_matrix,
            _create.par_dim, _move.load, _move.load_transpose2d, _move.store, _move.copy,
            _move.static_cast, _move.transpose, _move.matmul, _move.expand_dims,
            _move.broadcast_to, _move.device_print, _reduce.mean, _reduce.var, _reduce.softmax,
            _reduce.rms_norm, _reduce.all_reduce, _loop_reduce.loop_reduce,
            _gather.gather_flattened, _gather.atomic_rmw, _random.rand, _random.dropout,
            _random.random_seed,
            _grid.affine_range, _grid.sequential_range, _grid.static_range,
            _grid.program_id, _grid.num_programs, _grid.program_ndim, _grid.nc, _grid.spmd_dim,
            _axes.arange,
        )
    },
    "ds": _axes.ds,
    "mgrid": _axes.mgrid,
    "tile_size": _names.TileSize(),
    "fp32": _names.Limits("float32"),
    "bfp16": _names.Limits("bfloat16"),
    "finfo": _names.number_info,
}  # fmt: skip

call_by_name("nl", _LANGUAGE_NAMES)

_ISA_NAMES: dict[str, Any] = {
    **_isa.isa_functions(),
    **_isa.CONSTANTS,
    "get_nc_version": _isa.get_nc_version,
    "dma_engine": Engine.dma,
}

_COMPILER_NAMES: dict[str, Any] = {
    "skip_middle_end_transformations": _typing.skip_middle_end_transformations,
    "enable_stack_allocator": _typing.enable_stack_allocator,
    "force_auto_alloc": _typing.force_auto_alloc,
    "sbuf": _allocation.SbufAllocation(),
    "psum": _allocation.PsumAllocation(),
    "no_reorder": _typing.no_reorder,
}

_TYPING_NAMES = {
    "tensor": _typing.tensor,
    "mutable_tensor": _typing.mutable_tensor,
    "mutable": _typing.mutable,
    "scalar": _typing.scalar,
}


def _module(name: str, doc: str, names: dict[str, Any], is_package: bool = False) -> ModuleType:
    module = ModuleType(name, doc)
    vars(module).update(names)
    vars(module)["__getattr__"] = _names.refusing(module)
    vars(module)["__all__"] = [n for n in names if not n.startswith("_")]
    if is_package:
        module.__path__ = NoSubmodules()
    return module


@cache
def modules_of(choice: Choice) -> dict[str, ModuleType]:
    """Every module of the language for a choice; the same choice gives the same modules."""
    language = _module("neuronxcc.nki.language", "nki.language of NKI 0.1.", _LANGUAGE_NAMES)
    isa = _module("neuronxcc.nki.isa", "nki.isa of NKI 0.1.", _ISA_NAMES, is_package=True)
    constants = _module(
        "neuronxcc.nki.isa.constants", "Constants of nki.isa of NKI 0.1.", _isa.CONSTANTS
    )
    vars(isa)["constants"] = constants
    typing = _module("neuronxcc.nki.typing", "nki.typing of NKI 0.1.", _TYPING_NAMES)
    compiler = _module(
        "neuronxcc.nki.compiler", "nki.compiler of NKI 0.1.", _COMPILER_NAMES, is_package=True
    )
    nki = _module("neuronxcc.nki", "NKI 0.1 on the machine.", _top(choice), is_package=True)
    for name, child in (
        ("language", language), ("isa", isa), ("typing", typing), ("compiler", compiler),
    ):  # fmt: skip
        vars(nki)[name] = child
    root = _module("neuronxcc", "Stands for the vendor's package.", {"nki": nki}, is_package=True)
    return {m.__name__: m for m in (root, nki, language, isa, constants, typing, compiler)}


def _top(choice: Choice) -> dict[str, Any]:
    return {
        "tensor": _typing.tensor,
        "jit": _kernel.make_jit(choice),
        "simulate_kernel": _kernel.simulate_kernel,
        **{what: _kernel.on_device(what, choice) for what in ("baremetal", "benchmark", "profile")},
    }
