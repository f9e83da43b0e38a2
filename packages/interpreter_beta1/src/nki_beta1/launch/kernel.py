"""Kernels: functions decorated with nki.jit, and their launch."""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from typing import Any

from neuroncore.errors import (
    KernelError,
    LaunchError,
    Place,
    UnsupportedError,
    place_of,
)
from neuroncore.instructions import KernelWarning
from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.machine.launch import RUNNING, execute, running
from neuroncore.memory import IndexRules
from neuroncore.notes import note_without_effect
from neuroncore.options import Options
from nki_beta1.execution.core import Core
from nki_beta1.launch.grid import grid_shape
from nki_beta1.launch.python_errors import explain, translate_error
from nki_beta1.launch.results import (
    Written,
    check_results,
    mutable_parameters,
    read_only,
    tensors_in,
)
from nki_beta1.loops.single_trace import check_traceable
from nki_beta1.tensor.tile import Tile

NAME = "beta1"
DEFAULT = Choice(NAME, "0.1")

MODES = frozenset({"auto", "trace", "simulation", "baremetal", "benchmark", "jax", "torchxla"})

_FOR_COMPILER = "it is for the compiler; here every access is checked, always"
_KERNELS: ContextVar[tuple[Callable[..., Any], ...]] = ContextVar("nki_beta1.kernels", default=())
"""The kernels of this launch that have not returned yet, outermost first."""


class Kernel:
    """A function of NKI 0.1 that runs on the simulated machine.

    Call it with NumPy arrays, or `kernel[grid](...)` to run one program per point of a grid. Inside
    another kernel it is an ordinary function. `choice` was in force at decoration; a call
    under another choice of this language follows that one.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        choice: Choice,
        *,
        grid: tuple[int, ...] = (),
        note: str = "",
        writes_arguments: bool = False,
        is_targeted: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.choice = choice
        self.grid = grid
        self.writes_arguments = writes_arguments
        self._note = note
        self._is_targeted = is_targeted  # its target is named, so that the switch does not

    @property
    def func(self) -> Callable[..., Any]:
        """The function, under the name of jit's parameter."""
        return self.function

    def but(self, **changes: Any) -> Kernel:
        """The same with another function, choice, grid, note, …"""
        mine: dict[str, Any] = {
            "function": self.function,
            "choice": self.choice,
            "grid": self.grid,
            "note": self._note,
            "writes_arguments": self.writes_arguments,
            "is_targeted": self._is_targeted,
        }
        return Kernel(**(mine | changes))

    def __getitem__(self, grid: Any) -> Kernel:
        """The kernel over a launch grid of any rank: ints, nl.nc, nl.spmd_dim."""
        return self.but(grid=grid_shape(grid))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if RUNNING.get() is not None and not self.grid:
            return self._within(args, kwargs)
        if self._note:
            warnings.warn(self._note, KernelWarning, stacklevel=2)
        return launch(
            self.function, self._choice_in_force(), self.grid, args, kwargs,
            writes_arguments=self.writes_arguments,
        )  # fmt: skip

    def _choice_in_force(self) -> Choice:
        """What the switch has set, if it has set this language; the target, if it is not named."""
        current = CURRENT.get()
        if current is None or current.backend != NAME:
            return self.choice
        return replace(current, target=self.choice.target) if self._is_targeted else current

    def _within(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The kernel as part of the one that runs. Raises LaunchError for a recursive call."""
        under_way = _KERNELS.get()
        if self.function in under_way:
            names = [f.__name__ for f in under_way[under_way.index(self.function) :]]
            raise LaunchError(
                f"kernel {self.function.__name__} calls itself",
                expected="calls of other kernels and functions",
                got=" calls ".join([*names, self.function.__name__]),
                hint="write the repetition as a loop over nl.affine_range",
                rule="NKI 0.1: kernels do not recurse",
            )
        _check_call(self.function, args, kwargs)
        token = _KERNELS.set((*under_way, self.function))
        try:
            return self.function(*args, **kwargs)
        finally:
            _KERNELS.reset(token)

    def __getattr__(self, name: str) -> Any:
        if name in ("benchmark_result", "compiled_kernel"):
            raise UnsupportedError(
                f"{name}: a simulated kernel has no measured latency",
                hint="measure on a device with the vendor's package",
            )
        raise AttributeError(f"a kernel of NKI 0.1 has no attribute {name!r}")

    def __repr__(self) -> str:
        grid = f"[{', '.join(map(str, self.grid))}]" if self.grid else ""
        return f"<NKI 0.1 kernel {self.function.__name__}{grid}>"


def launch(
    function: Callable[..., Any],
    choice: Choice,
    grid: tuple[int, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    writes_arguments: bool = False,
) -> Any:
    """Run the programs of a grid one after another and give the first one's results.

    Parameters annotated with nt.mutable_tensor may be written, and all with `writes_arguments`.
    """
    if RUNNING.get() is not None:
        raise LaunchError(
            "a kernel is launched over a grid from inside a kernel",
            hint="call it without brackets: it is then part of this kernel",
        )
    _check_call(function, args, kwargs)
    if choice.options.traced_once == "error":
        check_traceable(function)
    machine = Core(choice.target, choice.options, _rules(choice.options), view_class=Tile)
    mutable = mutable_parameters(function)

    def is_mutable(parameter: str | int) -> bool:
        return writes_arguments or parameter in mutable

    def body(*ready: Any, **named: Any) -> Any:
        with _running(function):
            core = core_of_program([ready, named])
            given = {n: v for n, v in [*enumerate(ready), *named.items()] if is_mutable(n)}
            core.of_read_only_arrays = read_only(given)
            written = Written({} if writes_arguments else given)
            result = function(*ready, **named)
            core.flush()
            check_results(function, result, core)
            written.check_returned(function, result)
        return result

    functools.update_wrapper(body, function)
    return execute(
        body,
        machine,
        args,
        kwargs,
        programs=list(itertools.product(*map(range, grid))),
        grid=grid,
        is_mutable=is_mutable,
        explain=explain,
    )


@contextmanager
def _running(function: Callable[..., Any]) -> Iterator[None]:
    """While the kernel runs: errors are reworded for 0.1."""
    token = _KERNELS.set((function,))
    try:
        yield
    except KernelError as error:
        translate_error(error)
        raise
    except RecursionError as endless:
        raise LaunchError(
            f"kernel {function.__name__} recurses without end",
            hint="write the repetition as a loop over nl.affine_range",
            place=_place_in(function, endless),
            rule="NKI 0.1: kernels do not recurse",
        ) from None
    finally:
        _KERNELS.reset(token)


def _place_in(function: Callable[..., Any], wrong: BaseException) -> Place | None:
    """The place in the kernel itself at which an error below it was raised."""
    code, trace = getattr(inspect.unwrap(function), "__code__", None), wrong.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return None if trace is None else place_of(trace.tb_frame, trace.tb_lasti)


def _check_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise LaunchError for arguments that the kernel's parameters do not take."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as mismatch:
        raise LaunchError(
            f"kernel {function.__name__}: {mismatch}",
            expected=f"{function.__name__}{signature}",
            got=f"{len(args)} by position" + "".join(f", {name}=" for name in kwargs),
        ) from None


def _rules(options: Options) -> IndexRules:
    return IndexRules(
        keep_partition=options.partition_index != "drop",
        negative_index=options.negative_index == "allow",
    )


def make_jit(choice: Choice) -> Callable[..., Any]:
    """`nki.jit` under a choice."""

    def jit(func: Any = None, mode: str = "auto", **kwargs: Any) -> Any:
        """The function as a kernel, also with options only: @nki.jit(mode="trace")."""
        return _jit(choice, func, mode, **kwargs)

    return jit


def _jit(choice: Choice, function: Any, mode: str, **options: Any) -> Any:
    """The function as a kernel; every mode runs here, on the simulated machine.

    With kernel_return=False the kernel returns nothing and writes the tensors that it is given.

    Raises UnsupportedError for a grid; further options are for the compiler and noted.
    """
    if function is None:
        return lambda func: _jit(choice, func, mode, **options)
    if mode not in MODES:
        raise LaunchError(f"nki.jit has no mode {mode!r}", expected=", ".join(sorted(MODES)))
    target = options.pop("platform_target", None)
    writes_arguments = not options.pop("kernel_return", True)
    if "grid" in options:
        raise UnsupportedError(
            f"nki.jit(grid={options['grid']!r}) is not modelled",
            hint="give the grid at the launch: kernel[grid](…)",
        )
    for name, value in options.items():
        note_without_effect(f"nki.jit({name}={value!r})", _FOR_COMPILER, "NKI 0.1: nki.jit")
    if not callable(function):
        raise LaunchError("nki.jit takes a function", got=type(function).__name__)
    inner = function.function if isinstance(function, Kernel) else function
    is_targeted = target is not None
    choice = replace(choice, target=target) if is_targeted else choice
    return Kernel(inner, choice, writes_arguments=writes_arguments, is_targeted=is_targeted)


def on_device(what: str, choice: Choice) -> Callable[..., Any]:
    """nki.baremetal, nki.benchmark, nki.profile: runs here, with a warning."""

    def made(kernel: Any) -> Any:
        if kernel is None:
            return made
        note = f"nki.{what} runs on the simulated machine: results, but no device and no timing"
        if not callable(kernel):
            raise LaunchError(f"nki.{what} takes a kernel", got=type(kernel).__name__)
        known = kernel if isinstance(kernel, Kernel) else undecorated(kernel, choice)
        return known.but(choice=choice, note=note)

    def of_kernel(kernel: Any = None, **kwargs: Any) -> Any:
        return made(_check_parameter(what, "kernel", kernel, kwargs))

    def of_func(func: Any = None, **kwargs: Any) -> Any:
        return made(_check_parameter(what, "func", func, kwargs))

    decorate = of_func if what == "profile" else of_kernel
    decorate.__name__ = decorate.__qualname__ = what
    decorate.__doc__ = f"nki.{what}: the kernel runs on the simulated machine, with a warning."
    return decorate


def _check_parameter(what: str, parameter: str, kernel: Any, options: dict[str, Any]) -> Any:
    """The kernel; raises LaunchError where it has the name that another decorator takes it by."""
    for name in {"func", "kernel"} & options.keys():
        raise LaunchError(
            f"nki.{what} has no parameter {name!r}",
            expected=f"nki.{what}({parameter}, …)",
            hint=f"write {parameter}=, or give the kernel by position",
            rule=f"NKI 0.1: signature of nki.{what}",
        )
    return kernel


def undecorated(function: Callable[..., Any], choice: Choice) -> Kernel:
    """A kernel of the 2.20 dialect, if it returns nothing: it writes the tensors it is given."""
    return Kernel(function, choice, writes_arguments=not _returns_a_value(function))


def _returns_a_value(function: Callable[..., Any]) -> bool:
    """Whether any return statement gives something else than None."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return True
    steps = list(dis.get_instructions(code))
    returns = [(a, b) for a, b in itertools.pairwise(steps) if b.opname == "RETURN_VALUE"]
    constants = [i for i in steps if i.opname == "RETURN_CONST"]
    return any(a.opname != "LOAD_CONST" or a.argval is not None for a, _ in returns) or any(
        i.argval is not None for i in constants
    )


def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a kernel, also one with a grid, or an undecorated function."""
    if not isinstance(kernel, Kernel):
        if not callable(kernel):
            raise LaunchError("simulate_kernel takes a kernel", got=type(kernel).__name__)
        current = CURRENT.get()
        mine = current is not None and current.backend == NAME
        kernel = undecorated(kernel, current if mine and current is not None else DEFAULT)
    return kernel(*args, **kwargs)


__all__ = ["DEFAULT", "NAME", "Kernel", "KernelError", "make_jit", "on_device", "simulate_kernel"]


def core_of_program(arguments: Any) -> Core:
    """The core on which the program runs that begins now; the first one's is that of the launch.

    A tensor refers to its core, so a tensor that Python code keeps from an earlier program is
    rejected. The `arguments` and outputs, which all programs share, move to the new core. The
    marks of tensors are shared by all cores.
    """
    launch = running("a program of the grid")
    core: Any = launch.core
    if any(launch.program):
        core = launch.core = copy(core)
        for tensor in (*tensors_in(arguments), *launch.shared):
            tensor.core = core
    return core
