"""`nki.isa` of a version: the machine's instructions, registers, enums and engine aliases."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from neuroncore.enums import (
    DgeMode,
    DmaEngine,
    Engine,
    MatmulPerfMode,
    NcVersion,
    OobMode,
    ReduceCmd,
)
from neuroncore.errors import AttributeValueError, KernelError, SignatureError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.functions import Handle, handle_of, make_function
from neuroncore.machine.launch import running
from neuroncore.machine.loop_trace import act
from neuroncore.machine.registers import RULE, DeviceNumber, TracedRegister, VirtualRegister
from neuroncore.machine.scalars import NkiScalar
from neuroncore.machine.tile_size import machine_in_force
from neuroncore.memory import View
from neuroncore.surface import instruction_names, signature
from nki_beta2.isa.core_barrier import core_barrier
from nki_beta2.isa.sendrecv import sendrecv
from nki_beta2.kernel.configuration import reject_parsed
from nki_beta2.kernel.jit import TRACED_SINCE, Language

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
    contents["core_barrier"] = core_barrier(language)
    for name in instruction_names(version):
        found = signature(name, version)
        assert found is not None
        contents[name] = make_function(INSTRUCTIONS[name], found)
    if language.version >= TRACED_SINCE:
        contents["NkiScalar"] = NkiScalar
        for name in ("scalar_load", "scalar_store"):
            contents[name] = _traced(contents[name])
    return contents | registers(language, contents)


def _traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, for the tracing frontend only."""

    @functools.wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        reject_parsed(f"nisa.{function.__name__}")
        return function(*args, **kwargs)

    return traced


def _nc_version(language: Language) -> Callable[[], NcVersion]:
    def get_nc_version() -> NcVersion:
        """The generation of the core that runs the kernel."""
        return NcVersion[machine_in_force(language.choice)[0].nc_version]

    get_nc_version.__qualname__ = "nisa.get_nc_version"  # how Python's complaints call it
    return get_nc_version


def _nc_sub_version(language: Language) -> Callable[[], int]:
    def get_nc_sub_version() -> int:
        """The silicon revision of the core's generation: 0 for the first, 1 for the second."""
        return machine_in_force(language.choice)[1].nc_sub_version

    get_nc_sub_version.__qualname__ = "nisa.get_nc_sub_version"
    return get_nc_sub_version


def fill(module: ModuleType, contents: dict[str, Any]) -> ModuleType:
    """The module with these names in it, and `__all__`."""
    module.__dict__.update(contents)
    module.__dict__["__all__"] = sorted(contents)
    return module


def registers(language: Language, machine: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """The names; `machine` has the instructions, register_load and _store on a register's cell."""
    load, store = machine["register_load"], machine["register_store"]
    kind = TracedRegister if language.version >= TRACED_SINCE else VirtualRegister

    def register_alloc(x: Any = None) -> VirtualRegister:
        """A new register: undefined, with a compile-time int, or with a (1, 1) tensor's element.

        Documents name the tensor in the notes of SDK 2.28 only; public kernels of 0.3 use it.
        """
        register = kind(running("nisa.register_alloc").core)
        if isinstance(x, View):
            register_load(register, x)
        elif x is not None:
            register.set(x)
        return register

    def move(dst: Any, src: Any) -> None:
        dst = _register(dst, "dst", "register_move")
        if isinstance(src, NkiScalar):
            src = _register(src, "src", "register_move")
        if isinstance(src, DeviceNumber) and language.version >= (0, 3):
            dst.copy_from(src)
            return
        if language.version >= (0, 3) and dst.options.register_constant == "reject":
            raise _constant(src)
        try:
            dst.set(src)
        except AttributeValueError as wrong:
            wrong.instruction = "register_move"
            raise

    def register_load(dst: VirtualRegister, src: View) -> Any:
        """Load the one element of `src`, in HBM or SBUF, into a register."""
        register = _register(dst, "dst", "register_load")
        return load(register.to_write(_tensor(src, "src", "register_load").dtype), src)

    def register_store(dst: View, src: VirtualRegister) -> Any:
        """Store a register into the one element of `dst`, in HBM or SBUF."""
        register = _register(src, "src", "register_store")
        return store(_tensor(dst, "dst", "register_store"), register.cell)

    contents: dict[str, Any] = {
        "register_alloc": register_alloc,
        "register_move": _move_of(language, move),
        "register_load": register_load,
        "register_store": register_store,
    }
    if language.version >= (0, 4):
        contents["iota"] = _with_register(machine["iota"], language.version)
    for name, function in contents.items():
        function.__name__, function.__qualname__ = name, f"nisa.{name}"  # the name in errors
        function.__module__ = "nki.isa"
    if language.version >= (0, 3):
        contents["VirtualRegister"] = VirtualRegister
    return contents


def _with_register(iota: Callable[..., Any], version: tuple[int, int]) -> Callable[..., Any]:
    """iota, whose offset may be a register; it is read when the instruction is executed."""

    def read(value: Any) -> Any:
        return value.value if isinstance(value, VirtualRegister) else value

    @functools.wraps(iota)
    def with_register(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        offset = next((value for value in given if isinstance(value, VirtualRegister)), None)
        if offset is None:
            return iota(*args, **kwargs)
        for value in given:
            if isinstance(value, View):
                value.initialize()
        act(offset.core, lambda: iota(*map(read, args), **{n: read(v) for n, v in kwargs.items()}))
        return handle_of(version)

    return with_register


def _move_of(language: Language, move: Callable[[Any, Any], None]) -> Callable[..., Handle | None]:
    """Up to 0.2 the parameter is called imm and takes a number only."""
    if language.version >= (0, 3):

        def register_move(dst: VirtualRegister, src: Any) -> Handle | None:
            """Set a register to a compile-time int, or to the value of another register."""
            move(dst, src)
            return handle_of(language.version)

        return register_move

    def move_immediate(dst: VirtualRegister, imm: int) -> None:
        """Set a register to a compile-time int."""
        move(dst, imm)

    return move_immediate


def _constant(value: Any) -> SignatureError:
    return SignatureError(
        "src is a compile-time number", expected="a register", got=repr(value)[:80],
        hint="nisa.register_alloc(number) makes one; Options.register_constant='allow' takes it",
        operand="src", instruction="register_move",
        rule="NKI 0.3 migration guide: register_move takes a register",
    )  # fmt: skip


def _register(value: Any, operand: str, function: str) -> Any:
    """A register, or a scalar to be read where an option takes it. Raises SignatureError."""
    if isinstance(value, VirtualRegister):
        return value
    hint = "nisa.register_alloc makes one"
    if isinstance(value, NkiScalar):
        if operand == "src" and value.options.scalar_as_register == "allow":
            return value
        hint = "nisa.scalar_store writes a scalar; a loop with a register as bound counts in one"
    raise SignatureError(
        f"{operand} cannot be a {type(value).__name__}", expected="a register",
        got=repr(value)[:80], hint=hint, operand=operand,
        instruction=function, rule=f"{RULE}, {function}",
    )  # fmt: skip


def _tensor(value: Any, operand: str, function: str) -> View:
    if isinstance(value, View):
        return value
    raise SignatureError(
        f"{operand} cannot be a {type(value).__name__}", expected="a tensor of one element",
        got=repr(value)[:80], operand=operand, instruction=function, rule=f"{RULE}, {function}",
    )  # fmt: skip
