"""The language as a backend of the switch."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from neuroncore.backend import Choice
from neuroncore.errors import LaunchError
from nki_beta1._kernel import NAME, Kernel, undecorated
from nki_beta1._modules import modules_of


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
