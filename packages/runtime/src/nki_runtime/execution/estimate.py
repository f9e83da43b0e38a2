"""A kernel as its program, and how long it takes on a device, without one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from types import NoneType
from typing import Any

import numpy as np

from neuroncore.errors import (
    KernelError,
    LaunchError,
    UnsupportedError,
    ValuesNeededError,
)
from neuroncore.machine.garbage_collection import no_collection
from neuroncore.machine.kernels import expect_kernel
from neuroncore.machine.observe import watched_by
from neuroncore.options import Options
from neuroncore.program import Call, CoreRecorder, Loop, Program, Recorder, Statement, check
from neuroncore.spec import as_dtype
from neuroncore.targets import resolve_target
from neuroncore.timeline import Constants, Timeline, reject_illegal
from neuroncore.timeline import estimate as play
from nki_runtime.execution.arrays import Conversion
from nki_runtime.execution.simulate import language_of
from nki_runtime.switch.neuron import NEURON


def estimate(
    kernel: Any,
    *arrays_or_specs: Any,
    target: str | None = None,
    mode: str = "device",
    without: Collection[str] = (),
    constants: Constants | None = None,
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
    mode: "device" (as the toolchain of the kernel's NKI version makes it) or "as_written" (if
    nothing is moved: program order, buffers as allocated).
    without: transformations of the toolchain that are switched off, by name.
    constants: what time is made of, such as `neuroncore.timeline.read_constants` of the file that
    nki-run --constants wrote; None: costs.json.

    The programs of a grid follow one another on one core. Of `kernel[2]` it is the core that takes
    longer: both run at once and share HBM; that they wait for each other costs nothing here, and
    what they send is a DMA between their SBUFs. Raises what the kernel raises,
    ProgramError with everything that is wrong with its program, UnsupportedError for a kernel that
    cannot be a program, LaunchError for an unknown target and an argument that is not a tensor,
    AttributeValueError for an unknown mode.
    """
    with no_collection():
        cores = getattr(kernel, "lnc", None) or 1
        played = partial(
            play, mode=mode, verified=True, without=without, constants=constants, cores=cores
        )
        found = []
        for program, options in _recorded(kernel, arrays_or_specs, target, kwargs, cores):
            reject_illegal(program, options)
            found.append(played(program))
        return max(found, key=lambda timeline: timeline.total_ns)


def program_of(
    kernel: Any, *arrays_or_specs: Any, target: str | None = None, **kwargs: Any
) -> Program:
    """The checked program of `kernel` on these arguments, its loops as loops.

    Arguments, how the kernel runs and what is raised are as for `estimate`. LaunchError also where
    two parameters share memory and the kernel writes one: its program says they are two tensors.
    """
    with no_collection():  # until everything is gone that was needed on the way
        if getattr(kernel, "lnc", None) not in (None, 1):
            raise UnsupportedError(
                f"a program of {kernel.lnc} cores", hint="take the kernel without [lnc]: one core"
            )
        [(program, options)] = _recorded(kernel, arrays_or_specs, target, kwargs, for_time=False)
        check(program, options, content=False)  # its values are not known
        return program


def _recorded(
    kernel: Any, arrays_or_specs: tuple[Any, ...], target: str | None, kwargs: dict[str, Any],
    cores: int = 1, for_time: bool = True,
) -> list[tuple[Program, Options | None]]:  # fmt: skip
    """By core, the program of the kernel, not checked yet, and the options that it ran under.

    for_time: it may be that of this run alone.
    """
    expect_kernel(
        kernel,
        "not a kernel",
        hint="what takes programs needs none: neuroncore.timeline.estimate, tokenplan.analyse",
    )
    specs = Zeros()
    args, options = Conversion().to_numpy((arrays_or_specs, kwargs))
    named = by_parameter(kernel, args, options)
    given = specs.given(named, args, options)
    run = _runner(kernel, target)
    try:
        recorders = _record(kernel, run, given, cores, needs_values=False)
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
        recorders = _record(kernel, run, specs.copied(given), cores, needs_values=True)
    programs = [recorder.program() for recorder in recorders]
    for recorder in recorders:
        if recorder.timed_alone is not None and not for_time:
            raise recorder.timed_alone
    for program in programs:
        reject_shared_memory(program, named)
    return [(p, recorder.options) for p, recorder in zip(programs, recorders, strict=True)]


def _runner(kernel: Any, target: str | None) -> Callable[..., Any]:
    """The function that runs the kernel on this computer as on `target`."""
    backend, choice = language_of(kernel)
    if backend is NEURON:
        raise UnsupportedError(
            "an estimate of a kernel of the vendor's package",
            hint='decorate it under nki_runtime.use(backend="beta2") or "beta1"',
        )
    if target is not None:
        choice = replace(choice, target=resolve_target(target).name)
    return backend.simulate(kernel, choice)


def _record(
    kernel: Any, run: Callable[..., Any], given: Any, cores: int, needs_values: bool
) -> list[Recorder]:
    """The record of the kernel on these arguments, by core."""
    args, kwargs = given
    recorders: list[Recorder] = [
        CoreRecorder(kernel, number, needs_values) for number in range(cores)
    ]
    if cores == 1:
        recorders = [Recorder(kernel, for_time=True, needs_values=needs_values)]
    with watched_by(*recorders):
        run(*args, **kwargs)
    return recorders


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


EXPECTED = "a (shape, dtype) pair, or an object with .shape and .dtype"


@dataclass(slots=True)
class Zeros:
    """Makes arrays of zeros of specs; `found` says whether there was one."""

    found: bool = False
    argument: str = ""
    """The parameter whose value is read, for errors."""

    def given(self, named: dict[str, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Positional arguments and those by name, with arrays for specs.

        `named`: the same values by parameter (see `by_parameter`). Raises as `to_arrays`.
        """
        names = list(named)
        positional = [self._of(n, a) for n, a in zip(names, args, strict=False)]
        return tuple(positional), {name: self._of(name, a) for name, a in kwargs.items()}

    def _of(self, name: str, value: Any) -> Any:
        self.argument = name
        return self.to_arrays(value)

    def to_arrays(self, value: Any) -> Any:
        """`value` with an array for every spec, also inside tuples, lists and dicts.

        Raises LaunchError for a spec of a shape or dtype that no tensor has.
        """
        if isinstance(value, (np.ndarray, np.generic)):
            return value
        if _names_a_dtype(value):
            if len(value) != 2:
                raise self._wrong(f"{len(value)} parts", EXPECTED, value)
            return self._zeros(value[0], value[1], value)
        if type(value) in (list, tuple):
            return type(value)(map(self.to_arrays, value))
        if type(value) is dict:
            return {key: self.to_arrays(item) for key, item in value.items()}
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return self._zeros(value.shape, value.dtype, value)
        return value

    def _zeros(self, shape: Any, dtype: Any, spec: Any) -> np.ndarray:
        self.found = True
        sizes = _sizes(shape)
        if sizes is None:
            raise self._wrong(f"shape {shape!r}", "positive ints", spec)
        try:
            storage = as_dtype(dtype).storage
        except KernelError as unknown:
            raise self._wrong(unknown.what, unknown.expected or EXPECTED, spec) from None
        try:
            return np.zeros(sizes, storage)
        except (MemoryError, ValueError) as wrong:
            holds = "a shape that this computer's memory holds"
            raise self._wrong(f"shape {shape!r}, which no array has", holds, spec) from wrong

    def _wrong(self, what: str, expected: str, spec: Any) -> LaunchError:
        return LaunchError(
            f"argument {self.argument} is a spec of {what}", expected=expected, got=_shown(spec)
        )

    def copied(self, value: Any) -> Any:
        """`value` with copies of its arrays."""
        if isinstance(value, np.ndarray):
            copy = value.copy()
            copy.flags.writeable = value.flags.writeable
            return copy
        if type(value) in (list, tuple):
            return type(value)(map(self.copied, value))
        if type(value) is dict:
            return {key: self.copied(item) for key, item in value.items()}
        return value


def _names_a_dtype(value: Any) -> bool:
    """Whether it begins as (shape, dtype): ints first, then neither a number nor a container.

    Other numbers, or None, make a shape only beside a dtype that exists.
    """
    if type(value) is not tuple or len(value) < 2 or type(value[0]) not in (tuple, list):
        return False
    shape, dtype, *more = value
    if isinstance(dtype, (int, float, tuple, list, dict, np.ndarray, NoneType)):
        return False
    if all(isinstance(n, (int, np.integer)) for n in shape):
        return True
    is_odd = all(isinstance(n, (int, float, np.number, NoneType)) for n in shape)
    return is_odd and not more and _is_dtype(dtype)


def _is_dtype(value: Any) -> bool:
    try:
        as_dtype(value)
    except KernelError:
        return False
    return True


def _sizes(shape: Any) -> tuple[int, ...] | None:
    """The shape as ints, if it is one."""
    try:
        sizes = tuple(shape)
    except TypeError:
        return None
    return sizes if all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes) else None


def _shown(value: Any) -> str:
    return repr(value)[:80]


def by_parameter(
    kernel: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by the kernel's parameters, or by number where it does not take them."""
    try:
        names = list(inspect.signature(kernel).parameters)
        inspect.signature(kernel).bind(*args, **kwargs)
    except (TypeError, ValueError):
        names = []
    names += [str(number) for number in range(len(names), len(args))]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def no_tensor(wrong: Exception, named: dict[str, Any]) -> LaunchError | None:
    """Python's error where a kernel uses another object as a tensor, as an error of the argument.

    None where the value is not one of the arguments.
    """
    if isinstance(wrong, AttributeError):
        came = (type(wrong.obj), repr(wrong.obj))  # containers reach the kernel as copies
        same = [n for n, v in named.items() if wrong.name and (type(v), repr(v)) == came]
    else:
        said = _SUBSCRIPT.match(str(wrong))
        kind = said and (said[1] or said[2])
        same = [name for name, value in named.items() if type(value).__name__ == kind]
    if not same:
        return None
    return LaunchError(
        f"argument {same[0]} is used as a tensor by the kernel, and is none",
        expected=f"an array, {EXPECTED}",
        got=_shown(named[same[0]]),
        hint=f"Python says: {wrong}",
    )


_SUBSCRIPT = re.compile(r"'(\w+)' object is not subscriptable|(\w+) indices must be")
