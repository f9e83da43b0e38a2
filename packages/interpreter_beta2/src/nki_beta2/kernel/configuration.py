"""Configuration of a kernel from 0.7 on: classes of nki.compiler, environment variables."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from neuroncore.errors import AttributeValueError, LaunchError, SignatureError, UnsupportedError
from neuroncore.instructions import warn_at_kernel
from neuroncore.machine.launch import running
from neuroncore.notes import note_without_effect
from neuroncore.options import Options

_RULE = "NKI 0.7: nki.compiler"
_RING_SIZE = "NKI_PREFETCH_RING_SIZE"
_DEGREE = "NEURON_LOGICAL_NC_CONFIG"


class AddressRotation(enum.Enum):
    """Whether buffers change their addresses from use to use; AUTO: those without a fixed one."""

    AUTO = "auto"
    ENABLE = "enable"
    DISABLE = "disable"


class _Config:
    """Fields of documented types; values other than the defaults are noted once."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Raises SignatureError for a field that the class does not have."""
        known = [field.name for field in fields(cls)]  # type: ignore[bad-argument-type]
        for name in kwargs.keys() - known:
            near = difflib.get_close_matches(name, known, n=1)
            raise SignatureError(
                f"{cls.__name__} has no field {name}", expected=", ".join(known), got=name,
                hint=f"did you mean {near[0]}?" if near else None, operand=name,
                rule=f"{_RULE}.{cls.__name__}",
            )  # fmt: skip
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[bad-argument-type]
            value = getattr(self, field.name)
            kind = AddressRotation if field.name == "address_rotation" else bool
            if value is not field.default and not isinstance(value, kind):
                raise AttributeValueError(
                    f"{type(self).__name__}({field.name}={value!r})"[:80],
                    expected=f"a {kind.__name__}", got=repr(value)[:80], operand=field.name,
                    rule=f"{_RULE}.{type(self).__name__}",
                )  # fmt: skip

    def differing(self, other: Any) -> Iterator[str]:
        """The fields that another configuration of the class has otherwise, as kernels write it."""
        for field in fields(self):  # type: ignore[bad-argument-type]
            own, others = getattr(self, field.name), getattr(other, field.name)
            if own != others:
                yield f"{field.name}={own} and not {others}"


@dataclass(frozen=True)
class CompileConfig(_Config):
    """How the device's compiler treats one kernel; nothing of it changes a value here.

    None: the documents that could be read print no default.
    """

    address_rotation: AddressRotation | None = None
    non_ssa_legalization: bool | None = None
    dead_code_elim: bool | None = None
    barrier_check: bool | None = None
    prefetch_auto: bool = False
    nki_alloc_fallback: bool = True


@dataclass(frozen=True)
class SpecializationConfig(_Config):
    """How a kernel is specialized.

    allow_nested_config_override: kernels that this one calls may have other configurations, which
    are not used; else that is an error.
    """

    allow_nested_config_override: bool = False


CONTENTS: dict[str, Any] = {
    kind.__name__: kind for kind in (AddressRotation, CompileConfig, SpecializationConfig)
}
"""What nki.compiler has from 0.7 on."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The arguments of nki.jit; None for absent ones."""

    compile: CompileConfig | None = None
    specialization: SpecializationConfig | None = None

    @classmethod
    def given(cls, compile_config: Any, specialization_config: Any) -> Configuration:
        """The arguments of nki.jit. Raises AttributeValueError for other types."""
        for name, value, kind in (
            ("compile_config", compile_config, CompileConfig),
            ("specialization_config", specialization_config, SpecializationConfig),
        ):
            if value is not None and not isinstance(value, kind):
                raise AttributeValueError(
                    f"nki.jit({name}=…) is a {type(value).__name__}",
                    expected=f"an nki.compiler.{kind.__name__}", got=repr(value)[:80],
                    operand=name, rule="NKI 0.7: nki.jit",
                )  # fmt: skip
        for change in compile_config.differing(CompileConfig()) if compile_config else ():
            what = f"CompileConfig({change.partition(' ')[0]})"
            note_without_effect(what, "it is for the compiler of a device", _RULE)
        return cls(compile_config, specialization_config)

    def check(self, kernel: str, options: Options, environ: Mapping[str, str]) -> None:
        """Raises LaunchError or UnsupportedError where what surrounds the launch contradicts it."""
        if self.compile is not None and self.compile.prefetch_auto and _RING_SIZE in environ:
            raise LaunchError(
                f"kernel {kernel} has prefetch_auto and the environment {_RING_SIZE}",
                expected="one of the two", got=f"{_RING_SIZE}={environ[_RING_SIZE]}",
                hint="unset the variable, or leave prefetch_auto out",
                rule=f"{_RULE}.CompileConfig",
            )  # fmt: skip
        if self != Configuration():
            reject_parsed(f"the configuration of kernel {kernel}", options)


_Nested = tuple[str, Configuration, int | None]
"""A kernel: its name, its configuration and its LNC degree."""


def check_nested(kernel: _Nested, top: _Nested) -> None:
    """A kernel in a kernel is part of it, under the configuration of the one that is launched.

    Raises LaunchError where its own differs, or warns where that one allows it.
    """
    name, own, lnc = kernel
    top_name, above, top_lnc = top
    compiled = above.compile or CompileConfig()
    differing = list(own.compile.differing(compiled)) if own.compile else []
    if lnc is not None and lnc != (top_lnc or 1):
        differing.append(f"LNC degree {lnc} and not {top_lnc or 1}")
    if not differing:
        return
    what = f"kernel {name} has another configuration than {top_name}, which calls it"
    got, rule = ", ".join(differing), f"{_RULE}.SpecializationConfig, kernels in kernels"
    if above.specialization and above.specialization.allow_nested_config_override:
        warn_at_kernel(f"{what}: {got}; that of {top_name} is used [{rule}]")
        return
    raise LaunchError(
        what, expected=f"the configuration of {top_name}, or none", got=got,
        hint="leave it out, or give the outer kernel specialization_config="
        "SpecializationConfig(allow_nested_config_override=True)", rule=rule,
    )  # fmt: skip


def is_parsed(options: Options) -> bool:
    """Whether kernels of 0.7 are specialized as versions before it do."""
    return options.frontend == "parser"


def reject_parsed(what: str, options: Options | None = None) -> None:
    """Raises UnsupportedError where kernels are parsed, for what only the tracing frontend has.

    `options` None: the options of the kernel that runs.
    """
    if is_parsed(options or running(what).core.options):
        raise UnsupportedError(
            f"{what} under the former frontend", expected="the tracing frontend, which 0.7 uses",
            hint="unset NKI_COMPILER_FRONTEND", rule="NKI 0.7: tracing frontend only",
        )  # fmt: skip


def launch_degree(kernel: str, bracket: int | None, environ: Mapping[str, str]) -> int | None:
    """The LNC degree of a launch from 0.7 on: of the bracket, or of the environment; None for none.

    Raises LaunchError for a degree that does not exist and for two that differ.
    """
    value = environ.get(_DEGREE)
    if not value:
        return bracket
    if value not in ("1", "2"):
        raise LaunchError(
            f"{_DEGREE}={value} is not an LNC degree", expected="1 or 2", got=value,
            rule="NKI 0.7: logical NeuronCores",
        )  # fmt: skip
    if bracket is not None and bracket != int(value):
        raise LaunchError(
            f"kernel {kernel} is launched with two LNC degrees",
            expected="one degree", got=f"{kernel}[{bracket}] and {_DEGREE}={value}",
            hint="leave the bracket out: it is being deprecated",
            rule="NKI 0.7: logical NeuronCores, error NCC_EVRF066",
        )  # fmt: skip
    return int(value)
