"""From a run of a kernel to its program: allocations and instructions, with loops restored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from neuroncore.errors import UnsupportedError
from neuroncore.machine.kernels import expect_kernel
from neuroncore.machine.observe import watched_by
from neuroncore.options import Options
from neuroncore.program.execution.execute import execute_program
from neuroncore.program.ir.program import Program
from neuroncore.program.recording.recorder import Recorder


def capture(kernel: Callable[..., Any], *args: Any, rolled: bool = True, **kwargs: Any) -> Program:
    """Run `kernel` on these arguments and give what it did as a program.

    Any language's kernel will do. Arrays become the parameters, in order; everything else that the
    kernel was given or computed in Python is part of the program. Programs of a grid or of several
    cores follow one another. `rolled` finds the loops again; without it there is none.

    The arrays are run on copies, and the program is run once for proof: it must give the kernel's
    results, byte for byte. Raises UnsupportedError where it does not: a language may move data
    without an instruction (a mask that is not a rectangle, zeros in HBM), which a program cannot
    express; LaunchError for anything but a kernel. A kernel without a name that Python can define
    (a lambda) is called `kernel`.
    """
    expect_kernel(kernel, "capture takes a kernel")
    given = [a.copy() for a in _arrays((args, kwargs))]
    args, kwargs = _copied(args), _copied(kwargs)
    recorder = Recorder(kernel)
    with watched_by(recorder):
        returned = kernel(*args, **kwargs)
    made = recorder.program(rolled)
    _prove(made, recorder.options, given, [*_arrays(returned), *_arrays((args, kwargs))])
    return made


def _prove(
    program: Program, options: Options | None, given: list[np.ndarray], expected: list[np.ndarray]
) -> None:
    """Run the program on the kernel's arguments: results and arguments end up the same."""
    results = execute_program(program, given, options=options)
    for found, wanted in zip((*results, *given), expected, strict=True):
        if found.tobytes() != wanted.tobytes():
            raise UnsupportedError(
                f"the instructions of kernel {program.name} do not give what the kernel gives",
                hint="it moves data without an instruction: masks that are not rectangles, "
                "constants written to HBM, values in NumPy",
            )


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """The arrays in an argument, in the order in which a launch takes them."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for element in value:
            yield from _arrays(element)
    elif isinstance(value, dict):
        for element in value.values():
            yield from _arrays(element)


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        copy = value.copy()
        copy.flags.writeable = value.flags.writeable
        return copy
    if type(value) in (tuple, list):
        return type(value)(map(_copied, value))
    return {k: _copied(v) for k, v in value.items()} if type(value) is dict else value
