"""Registers of a version: nisa.register_alloc, _move, _load and _store."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from neuroncore.calls import Handle, handle_of
from neuroncore.errors import AttributeValueError, SignatureError
from neuroncore.launch import running
from neuroncore.memory import View
from neuroncore.registers import RULE, VirtualRegister
from nki_beta2._jit import Language


def registers(language: Language, machine: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """The names; `machine` has the instructions, register_load and _store on a register's cell."""
    load, store = machine["register_load"], machine["register_store"]

    def register_alloc(x: Any = None) -> VirtualRegister:
        """A new register: undefined, with a compile-time int, or with a (1, 1) tensor's element.

        Documents name the tensor in the notes of SDK 2.28 only; public kernels of 0.3 use it.
        """
        register = VirtualRegister(running("nisa.register_alloc").core)
        if isinstance(x, View):
            register_load(register, x)
        elif x is not None:
            register.set(x)
        return register

    def move(dst: Any, src: Any) -> None:
        dst = _register(dst, "dst", "register_move")
        if isinstance(src, VirtualRegister) and language.version >= (0, 3):
            dst.copy_from(src)
            return
        if language.version >= (0, 3) and dst.options.register_constant == "refuse":
            raise _constant(src)
        try:
            dst.set(src)
        except AttributeValueError as wrong:
            wrong.instruction = "register_move"
            raise

    def register_load(dst: VirtualRegister, src: View) -> Any:
        """Let a register hold the one element of `src`, in HBM or SBUF."""
        register = _register(dst, "dst", "register_load")
        return load(register.to_write(_tensor(src, "src", "register_load").dtype), src)

    def register_store(dst: View, src: VirtualRegister) -> Any:
        """Write what a register holds into the one element of `dst`, in HBM or SBUF."""
        register = _register(src, "src", "register_store")
        return store(_tensor(dst, "dst", "register_store"), register.cell)

    contents: dict[str, Any] = {
        "register_alloc": register_alloc,
        "register_move": _move_of(language, move),
        "register_load": register_load,
        "register_store": register_store,
    }
    if language.version >= (0, 4):
        contents["iota"] = _with_register(machine["iota"])
    for name, function in contents.items():
        function.__name__, function.__qualname__ = name, f"nisa.{name}"  # as errors will call it
        function.__module__ = "nki.isa"
    if language.version >= (0, 3):
        contents["VirtualRegister"] = VirtualRegister
    return contents


def _with_register(iota: Callable[..., Any]) -> Callable[..., Any]:
    """iota, whose offset may be a register; it is read now."""

    @functools.wraps(iota)
    def with_register(*args: Any, **kwargs: Any) -> Any:
        args = tuple(a.value if isinstance(a, VirtualRegister) else a for a in args)
        if isinstance(kwargs.get("offset"), VirtualRegister):
            kwargs["offset"] = kwargs["offset"].value
        return iota(*args, **kwargs)

    return with_register


def _move_of(language: Language, move: Callable[[Any, Any], None]) -> Callable[..., Handle | None]:
    """Up to 0.2 the number is called imm and is no register."""
    if language.version >= (0, 3):

        def register_move(dst: VirtualRegister, src: Any) -> Handle | None:
            """Let a register hold a compile-time int, or what another register holds."""
            move(dst, src)
            return handle_of(language.version)

        return register_move

    def move_immediate(dst: VirtualRegister, imm: int) -> None:
        """Let a register hold a compile-time int."""
        move(dst, imm)

    return move_immediate


def _constant(value: Any) -> SignatureError:
    return SignatureError(
        "src is a compile-time number", expected="a register", got=repr(value)[:80],
        hint="nisa.register_alloc(number) makes one; Options.register_constant='allow' takes it",
        operand="src", instruction="register_move",
        rule="NKI 0.3 migration guide: register_move takes a register",
    )  # fmt: skip


def _register(value: Any, operand: str, function: str) -> VirtualRegister:
    if isinstance(value, VirtualRegister):
        return value
    raise SignatureError(
        f"{operand} cannot be a {type(value).__name__}", expected="a register",
        got=repr(value)[:80], hint="nisa.register_alloc makes one", operand=operand,
        instruction=function, rule=f"{RULE}, {function}",
    )  # fmt: skip


def _tensor(value: Any, operand: str, function: str) -> View:
    if isinstance(value, View):
        return value
    raise SignatureError(
        f"{operand} cannot be a {type(value).__name__}", expected="a tensor of one element",
        got=repr(value)[:80], operand=operand, instruction=function, rule=f"{RULE}, {function}",
    )  # fmt: skip
