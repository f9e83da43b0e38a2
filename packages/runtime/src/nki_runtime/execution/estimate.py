"""A kernel as its program, and how long it takes on a device, without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from neuroncore.errors import LaunchError, UnsupportedError, ValuesNeededError
from neuroncore.machine.garbage_collection import no_collection
from neuroncore.machine.kernels import expect_kernel
from neuroncore.machine.observe import watched_by
from neuroncore.program import Call, Loop, Program, Recorder, Statement, check
from neuroncore.targets import resolve_target
from neuroncore.timeline import Timeline
from neuroncore.timeline import estimate as play
from nki_runtime.execution.arrays import Conversion
from nki_runtime.execution.simulate import language_of
from nki_runtime.execution.specs import Zeros, by_parameter, no_tensor
from nki_runtime.switch.neuron import NEURON


def estimate(
    kernel: Any,
    *arrays_or_specs: Any,
    target: str | None = None,
    mode: str = "as_written",
    **kwargs: Any,
) -> Timeline:
    """How long `kernel` takes on these arguments, and why.

    The kernel runs once, as `simulate` would run it, under the switch in force; its instructions
    are checked and recorded, and not executed: time does not depend on values. One that uses
    values in Python (nl.loop_reduce, nt.scalar, nl.device_print of 0.1) runs a second time and is
    executed, on copies. Its program is then played by `neuroncore.timeline.estimate`.

    arrays_or_specs: what the kernel takes. A spec represents an array of its shape and dtype:
    a `(shape, dtype)` pair, or anything with `.shape` and `.dtype` that is not an array, such as
    jax.ShapeDtypeStruct.
    target: trn1|inf2|gen2, trn2|gen3 or trn3|gen4; None: the one that `simulate` would take.
    mode: "as_written" (program order, buffers as allocated) or "compiled".

    The programs of a grid follow one another on one core. Raises what the kernel raises,
    ProgramError with everything that is wrong with its program, UnsupportedError for a kernel that
    cannot be a program, LaunchError for an unknown target and an argument that is not a tensor,
    AttributeValueError for an unknown mode.
    """
    with no_collection():
        program = program_of(kernel, *arrays_or_specs, target=target, **kwargs)
        return play(program, mode=mode, verified=True)


def program_of(
    kernel: Any, *arrays_or_specs: Any, target: str | None = None, **kwargs: Any
) -> Program:
    """The checked program of `kernel` on these arguments, its loops as loops.

    Arguments, how the kernel runs and what is raised are as for `estimate`. LaunchError also where
    two parameters share memory and the kernel writes one: its program says they are two tensors.
    """
    expect_kernel(
        kernel,
        "not a kernel",
        hint="what takes programs needs none: neuroncore.timeline.estimate, tokenplan.analyse",
    )
    with no_collection():  # until everything is gone that was needed on the way
        return _program_of(kernel, arrays_or_specs, target, kwargs)


def _program_of(
    kernel: Any, arrays_or_specs: tuple[Any, ...], target: str | None, kwargs: dict[str, Any]
) -> Program:
    specs = Zeros()
    args, options = Conversion().to_numpy((arrays_or_specs, kwargs))
    named = by_parameter(kernel, args, options)
    given = specs.given(named, args, options)
    run = _runner(kernel, target)
    try:
        recorder = _record(kernel, run, given, needs_values=False)
    except (AttributeError, TypeError) as wrong:
        explained = no_tensor(wrong, named)
        if explained is None:
            raise
        raise explained from wrong
    except ValuesNeededError:
        if specs.found:
            raise UnsupportedError(
                f"kernel {_name(kernel)} uses values in Python, and a spec has none",
                hint="pass arrays: they decide what the kernel does",
            ) from None
        recorder = _record(kernel, run, specs.copied(given), needs_values=True)
    program = recorder.program()
    reject_shared_memory(program, named)
    check(program, recorder.options, content=False)  # its values are not known
    return program


def _runner(kernel: Any, target: str | None) -> Callable[..., Any]:
    """What runs the kernel on this computer as on `target`."""
    if getattr(kernel, "lnc", None) not in (None, 1):
        raise UnsupportedError(
            f"an estimate of {kernel.lnc} cores", hint="estimate the kernel without [lnc]: one core"
        )
    backend, choice = language_of(kernel)
    if backend is NEURON:
        raise UnsupportedError(
            "an estimate of a kernel of the vendor's package",
            hint='decorate it under nki_runtime.use(backend="beta2") or "beta1"',
        )
    if target is not None:
        choice = replace(choice, target=resolve_target(target).name)
    return backend.simulate(kernel, choice)


def _record(kernel: Any, run: Callable[..., Any], given: Any, needs_values: bool) -> Recorder:
    """What the kernel did on these arguments."""
    args, kwargs = given
    recorder = Recorder(kernel, for_time=True, needs_values=needs_values)
    with watched_by(recorder):
        run(*args, **kwargs)
    return recorder


def _name(kernel: Any) -> str:
    return getattr(kernel, "__name__", "kernel")


def reject_shared_memory(program: Program, named: Mapping[str, Any]) -> None:
    """Raises LaunchError where two parameters share memory and the program writes one of them.

    named: the arguments by parameter.
    """
    arrays = {name: value for name, value in named.items() if isinstance(value, np.ndarray)}
    pairs = combinations(arrays, 2)
    shared = [(a, b) for a, b in pairs if np.shares_memory(arrays[a], arrays[b])]
    if not shared:
        return
    written = set(_written(program.body))
    for one, other in shared:
        if one in written or other in written:
            raise LaunchError(
                f"arguments {one} and {other} share memory, and the kernel writes "
                f"{one if one in written else other}",
                expected="distinct arrays: the program takes its parameters to be distinct tensors",
                hint="pass a copy of one, or give the kernel one parameter for both",
            )


def _written(body: tuple[Statement, ...]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, Loop):
            yield from _written(statement.body)
        elif isinstance(statement, Call):
            outputs = statement.record.outputs
            yield from (a.buffer for n, a in statement.accesses.items() if n in outputs)
