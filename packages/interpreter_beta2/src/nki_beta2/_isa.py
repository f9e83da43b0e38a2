"""`nki.isa` of a version: the machine's instructions, its enums, its engine aliases."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from neuroncore.backend import CURRENT
from neuroncore.calls import Handle, make_function
from neuroncore.engines import Engine
from neuroncore.enums import (
    DgeMode,
    DmaEngine,
    MatmulPerfMode,
    NcVersion,
    OobMode,
    ReduceCmd,
)
from neuroncore.errors import KernelError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.launch import RUNNING
from neuroncore.surface import instruction_names, signature
from neuroncore.targets import resolve_target
from nki_beta2._exchange import sendrecv
from nki_beta2._jit import Language
from nki_beta2._refused import refused
from nki_beta2._registers import registers

ENUMS: dict[str, Any] = {
    "engine": Engine,
    "dge_mode": DgeMode,
    "oob_mode": OobMode,
    "reduce_cmd": ReduceCmd,
    "matmul_perf_mode": MatmulPerfMode,
    "nc_version": NcVersion,
}


def isa_contents(language: Language) -> dict[str, Any]:
    """Everything `nki.isa` offers in this version and the machine models."""
    version = language.choice.nki
    contents: dict[str, Any] = dict(ENUMS)
    contents |= {f"{e.name}_engine": e for e in Engine if e not in (Engine.dma, Engine.sync)}
    contents["dma_engine"] = DmaEngine if language.version >= (0, 3) else Engine.dma
    contents["get_nc_version"] = _nc_version(language)
    if language.version >= (0, 3):
        contents["NkiValidationError"] = KernelError
    if language.version >= (0, 5):
        contents["get_nc_sub_version"] = _nc_sub_version(language)
    if language.version >= (0, 6):
        contents["NkiInstruction"] = Handle
    contents["sendrecv"] = sendrecv(language)
    contents |= refused("nki.isa", version)
    for name in instruction_names(version):
        found = signature(name, version)
        assert found is not None
        contents[name] = make_function(INSTRUCTIONS[name], found)
    return contents | registers(language, contents)


def _nc_version(language: Language) -> Callable[[], NcVersion]:
    def get_nc_version() -> NcVersion:
        """The generation of the core that runs the kernel."""
        launch = RUNNING.get()
        if launch is not None:
            return NcVersion[launch.core.target.nc_version]
        current = CURRENT.get() or language.choice
        return NcVersion[resolve_target(current.target).nc_version]

    get_nc_version.__qualname__ = "nisa.get_nc_version"  # how Python's complaints call it
    return get_nc_version


def _nc_sub_version(language: Language) -> Callable[[], int]:
    def get_nc_sub_version() -> int:
        """The silicon revision of the core's generation: 0 for the first, 1 for the second."""
        launch = RUNNING.get()
        if launch is not None:
            return launch.core.options.nc_sub_version
        return (CURRENT.get() or language.choice).options.nc_sub_version

    get_nc_sub_version.__qualname__ = "nisa.get_nc_sub_version"
    return get_nc_sub_version


def fill(module: ModuleType, contents: dict[str, Any]) -> ModuleType:
    """The module with these names in it, and `__all__`."""
    module.__dict__.update(contents)
    module.__dict__["__all__"] = sorted(contents)
    return module
