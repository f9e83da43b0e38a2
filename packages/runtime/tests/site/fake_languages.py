"""Two languages of a few lines, announced to the switch as the real ones are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from types import ModuleType

from neuroncore.errors import ShapeError
from neuroncore.machine.backend import CURRENT


@dataclass
class Kernel:
    function: Callable[..., object]
    language: str
    choice: object
    grid: object = None
    runs: list = field(default_factory=list)

    def __call__(self, *args, **kwargs):
        current = CURRENT.get()
        same = current is not None and current.backend == self.language
        self.runs.append((current if same else self.choice, self.grid))
        return self.function(*args, **kwargs)

    def __getitem__(self, grid):
        return Kernel(self.function, self.language, self.choice, grid, self.runs)


@dataclass(frozen=True)
class Language:
    name: str
    top_level: str
    versions: tuple[str, ...]

    @property
    def default_version(self):
        return self.versions[-1]

    def modules(self, choice):
        return _modules(self, choice)

    def is_kernel(self, obj):
        return isinstance(obj, Kernel) and obj.language == self.name

    def simulate(self, kernel, choice):
        if self.is_kernel(kernel):
            return Kernel(kernel.function, self.name, choice, runs=kernel.runs)
        return Kernel(kernel, self.name, choice)


@cache
def _modules(language, choice):
    top = language.top_level
    names = [top, f"{top}.language", f"{top}.isa", f"{top}.isa.constants"]
    modules = {name: _module(name, choice) for name in [*_parents(top), *names]}
    vars(modules[top])["jit"] = partial(Kernel, language=language.name, choice=choice)
    for name, module in modules.items():
        parent, _, leaf = name.rpartition(".")
        if parent:
            setattr(modules[parent], leaf, module)
    return modules


def _parents(top):
    return [top.rpartition(".")[0]] if "." in top else []


def _module(name, choice):
    module = ModuleType(name)
    vars(module).update(__path__=[], choice=choice, reject=_reject)
    return module


def _reject(tile=None):
    raise ShapeError("moving free size 640 exceeds 512", expected="at most 512", got="640")


# To the switch, frames of this module are the language's, not the user's.
globals()["__name__"] = "nki_beta2.fake_languages"

BETA1 = Language("beta1", "neuronxcc.nki", ("0.1",))
BETA2 = Language("beta2", "nki", ("0.2", "0.3", "0.4", "0.5", "0.6"))
HOLLOW = "not a backend"
