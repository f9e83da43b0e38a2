"""This language as the switch sees it, and directly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from neuroncore.backend import Choice
from neuroncore.errors import LaunchError
from neuroncore.options import Options, make_options
from neuroncore.surface import VERSIONS
from nki_beta2._jit import Kernel, Language
from nki_beta2._modules import build_modules


class Beta2:
    """The backend `beta2`; one instance, BACKEND."""

    name = "beta2"
    versions = tuple(v for v in VERSIONS if v != "0.1")
    default_version = versions[-1]
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
                else None,
            )
        return _modules(choice)

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
