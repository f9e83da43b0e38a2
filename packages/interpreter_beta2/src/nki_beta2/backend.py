"""The backend `beta2`: the module tree `nki` of a version, for the switch or without it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any, NoReturn

from neuroncore.errors import AbsentNameError, LaunchError
from neuroncore.machine.backend import Choice
from neuroncore.machine.registers import VirtualRegister
from neuroncore.options import Options, make_options
from neuroncore.surface import DEFAULT_VERSION, VERSIONS, span, version_tuple
from nki_beta2.isa.instructions import ENUMS, fill, isa_contents
from nki_beta2.kernel.collectives import collectives
from nki_beta2.kernel.configuration import CONTENTS
from nki_beta2.kernel.jit import TRACED_SINCE, Kernel, Language, make_jit, make_traced_jit
from nki_beta2.kernel.tensor import tensor_class
from nki_beta2.nl.loops import REPLACED
from nki_beta2.nl.names import language_contents
from nki_dtypes import DType


def build_modules(language: Language) -> Mapping[str, ModuleType]:
    """Every module this version answers, parents included."""
    contents = _contents(language)
    modules = {name: _module(name, names, language) for name, names in contents.items()}
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    return modules


def _contents(language: Language) -> dict[str, dict[str, Any]]:
    """The contents of each module, submodules excluded."""
    nl = language_contents(language)
    dtypes = {name: value for name, value in nl.items() if isinstance(value, DType)}
    is_traced = language.version >= TRACED_SINCE
    jit = make_traced_jit(language) if is_traced else make_jit(language)
    top: dict[str, Any] = {"jit": jit, "__version__": f"{language.choice.nki}.0"}
    if language.version >= (0, 3):
        top["simulate"] = top["cpu_simulate"] = _simulate(jit)
    old = {"nki.meta.tensor": {}} if language.version == (0, 2) else {}
    new = {"while_loop": nl["while_loop"]} if "while_loop" in nl else {}
    return old | {
        "nki": top,
        "nki.language": nl,
        "nki.isa": isa_contents(language) | {"NKIObject": nl["NKIObject"]},
        "nki.isa.constants": dict(ENUMS),
        "nki.typing": {"tensor": _TensorAnnotation()}
        | ({"scalar": VirtualRegister} if language.version == (0, 2) else {}),
        "nki.tensor": {"NkiTensor": tensor_class(language.choice.nki)},
        "nki.dtype": dtypes,
        "nki.language.dtypes": dict(dtypes),
        # Up to 0.6 public code imports it without naming anything in it.
        "nki.compiler": dict(CONTENTS) if is_traced else {},
        "nki.builtin": {},
        "nki.meta": {},
        "nki.experimental": new,  # an earlier name of it [NKI 0.6: VirtualRegister]
        "nki.collectives": collectives(language.choice.nki)
        | ({"NKIObject": nl["NKIObject"]} if language.version <= (0, 3) else {}),
    }


def _module(name: str, contents: dict[str, Any], language: Language) -> ModuleType:
    module = fill(ModuleType(name, f"NKI {language.choice.nki}, answered by nki-bridge."), contents)
    module.__dict__["__path__"] = []  # a package: submodules are found in sys.modules
    module.__dict__["__getattr__"] = _missing_name(name, contents, language)
    return module


def _missing_name(
    module: str, contents: dict[str, Any], language: Language
) -> Callable[[str], NoReturn]:
    def missing(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        others = {v: Language(replace(language.choice, nki=v)) for v in VERSIONS[1:]}
        having = [v for v, other in others.items() if f"{module}.{name}" in _paths(other)]
        near = difflib.get_close_matches(name, contents, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else None
        raise AbsentNameError(
            f"{module}.{name} is not part of NKI {language.choice.nki}"
            + ("" if having else " as modelled here"),
            expected=f"one of the names that dir({module}) lists",
            got=name,
            hint=_instead(f"{module}.{name}", language)
            or (f"it is part of NKI {span(having)}" if having else hint),
            rule=f"NKI {language.choice.nki}: {module}",
        )

    return missing


def _instead(name: str, language: Language) -> str | None:
    """The replacement of a name that ended before this version."""
    last, replacement = REPLACED.get(name, ("", ""))
    if not last or language.version <= version_tuple(last):
        return None
    return f"{replacement}; it is part of NKI up to {last}"


@cache
def _paths(language: Language) -> frozenset[str]:
    """Every module of a version and every name in one, as one dotted word."""
    contents = _contents(language)
    return frozenset(contents) | {f"{m}.{n}" for m, names in contents.items() for n in names}


def _simulate(jit: Callable[[Any], Kernel]) -> Callable[[Any], Kernel]:
    def simulate(kernel: Any) -> Kernel:
        """`kernel` as something that runs here: nki.simulate(kernel)[lnc](*arrays)."""
        return jit(kernel)

    return simulate


class _TensorAnnotation:
    """`nt.tensor[shape]`: documents an expected parameter; not checked."""

    def __getitem__(self, shape: Any) -> _TensorAnnotation:
        return self

    def __repr__(self) -> str:
        return "nki.typing.tensor"


class Beta2:
    """The backend `beta2`; one instance, BACKEND."""

    name = "beta2"
    versions = tuple(v for v in VERSIONS if v != "0.1")
    default_version = DEFAULT_VERSION
    top_level = "nki"

    def modules(self, choice: Choice) -> Mapping[str, ModuleType]:
        """`nki` and its submodules for the choice's version and target; the same ones each time.

        Raises LaunchError for a version that this language does not speak.
        """
        if choice.nki not in self.versions:
            raise LaunchError(
                f"NKI {choice.nki} is not a version of the beta2 language",
                expected="one of " + ", ".join(self.versions),
                got=choice.nki,
                hint='0.1 is the beta1 language: use(backend="beta1")'
                if choice.nki == "0.1"
                else f"{self.versions[-1]} is the newest version modelled here",
            )
        return _modules(choice)

    def annotations(self, choice: Choice) -> Mapping[str, ModuleType]:
        """Modules of 0.1 that kernels up to 0.4 import for annotations alone, where no language
        supplies them.
        """
        if version_tuple(choice.nki) > (0, 4):
            return {}
        nki, typing = ModuleType(f"{_OLD}.nki"), ModuleType(f"{_OLD}.nki.typing")
        for name in ("tensor", "mutable_tensor", "scalar"):
            setattr(typing, name, _TensorAnnotation())
        old = ModuleType(_OLD)
        old.nki, nki.typing = nki, typing  # type: ignore[attr-defined]
        found = {module.__name__: module for module in (old, nki, typing)}
        for module in (old, nki):
            module.__path__ = []
        return found

    def is_kernel(self, obj: object) -> bool:
        return isinstance(obj, Kernel)

    def simulate(self, kernel: Any, choice: Choice) -> Kernel:
        """`kernel` (a Kernel or a plain function) to be run under `choice`.

        A decorated kernel keeps the version it was decorated with.
        """
        if isinstance(kernel, Kernel):
            own = kernel.language
            return kernel.under(
                Language(Choice(own.name, own.choice.nki, choice.target, choice.options))
            )
        return Kernel(kernel, Language(choice))


BACKEND = Beta2()
_OLD = "neuronxcc"


@cache
def _modules(choice: Choice) -> Mapping[str, ModuleType]:
    return build_modules(Language(choice))


def language(
    version: str = BACKEND.default_version, target: str = "trn2", **options: Any
) -> tuple[ModuleType, ModuleType, ModuleType]:
    """`nki`, `nki.language` and `nki.isa` of a version, without any switch.

    `options` are fields of neuroncore's Options.
    """
    chosen = make_options(Options(), options)
    modules = BACKEND.modules(Choice(BACKEND.name, version, target, chosen))
    return modules["nki"], modules["nki.language"], modules["nki.isa"]
