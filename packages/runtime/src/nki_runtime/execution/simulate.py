"""`simulate`: run a kernel of any language here, on arrays of the caller's library."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from neuroncore.machine.backend import Backend, Choice
from neuroncore.machine.kernels import expect_kernel
from nki_runtime.execution.arrays import Conversion
from nki_runtime.switch.choice import ChoiceRequest
from nki_runtime.switch.registry import backends, loadable
from nki_runtime.switch.use import current, resolve_choice


@dataclass(frozen=True, slots=True)
class Simulation:
    """A kernel ready to run on this computer; subscript it with a grid, call it with arrays."""

    kernel: Any
    grid: Any = None

    def __getitem__(self, grid: Any) -> Simulation:
        """The same kernel over a launch grid: the number of cores, or a tuple."""
        return replace(self, grid=grid)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The kernel's return values, as arrays of the kind that came in.

        NumPy arrays, torch tensors in host memory and JAX arrays are taken, also in lists, tuples
        and dicts; everything else is passed as it is. What the kernel writes into its inputs is
        written into the caller's arrays (never into JAX arrays, which can't change).
        """
        backend, choice = language_of(self.kernel)
        runner = backend.simulate(self.kernel, choice)
        if self.grid is not None:
            runner = runner[self.grid]
        conversion = Conversion()
        args, kwargs = conversion.to_numpy((args, kwargs))
        return conversion.from_numpy(runner(*args, **kwargs))


def simulate(kernel: Any) -> Simulation:
    """`kernel` as something that runs here: `simulate(kernel)[lnc](*arrays, **kw)`.

    A kernel runs in the language that decorated it; a plain function runs in the one in force.
    Raises LaunchError for what can't be called, a class, a function without known parameters.
    """
    expect_kernel(kernel, "simulate takes a kernel")
    return Simulation(kernel)


def language_of(kernel: Any) -> tuple[Backend, Choice]:
    """The kernel's backend, and what it runs under: the switch if it has that language set."""
    in_force = current()
    known = [] if in_force is None else [backends()[in_force.backend]]  # others load when needed
    found = (b for b in chain(known, loadable(backends())) if b.is_kernel(kernel))
    backend = next(found, None)
    if backend is None:
        choice = in_force or resolve_choice()
        return backends()[choice.backend], choice
    if in_force is not None and in_force.backend == backend.name:
        return backend, in_force
    return backend, getattr(kernel, "choice", None) or resolve_choice(ChoiceRequest(backend.name))
