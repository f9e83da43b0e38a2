"""Starting a kernel: arguments in, programs run, results out. Shared by the languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from neuroncore._caret import place_of
from neuroncore.core import NeuronCore, as_dtype
from neuroncore.engines import Space
from neuroncore.errors import KernelError, LaunchError, SignatureError
from neuroncore.memory import View
from nki_dtypes import bool_, cast


@dataclass(slots=True)
class Launch:
    """One kernel running: its core, its place in the grid, its tensors shared between programs."""

    core: NeuronCore
    body: Callable[..., Any] | None = None
    """The function that the programs call."""
    grid: tuple[int, ...] = ()
    program: tuple[int, ...] = ()
    shared: list[View] = field(default_factory=list)
    loops: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bounds of the loops that the program is in, by loop variable (only while recorded)."""
    number: int = field(default_factory=count(1).__next__)
    _next_shared: int = 0

    @property
    def kernel(self) -> str:
        """What the function is called."""
        return getattr(self.body, "__name__", "")

    def begin(self, program: tuple[int, ...]) -> None:
        """Start the next program of the grid: its shared tensors are those of the first."""
        self.program = program
        self.core.accumulators.clear()  # every program has a core of its own
        self._next_shared = 0

    def share(self, make: Callable[[], View]) -> View:
        """A tensor that all programs of the launch have in common, matched by order of creation."""
        if self._next_shared == len(self.shared):
            self.shared.append(make())
        view = self.shared[self._next_shared]
        self._next_shared += 1
        return view


RUNNING: ContextVar[Launch | None] = ContextVar("neuroncore.launch.RUNNING", default=None)


def running(what: str) -> Launch:
    """The launch that is executing; raises LaunchError outside a kernel."""
    launch = RUNNING.get()
    if launch is None:
        raise LaunchError(
            f"{what} is used outside a kernel",
            expected="a call from a function decorated with nki.jit while it runs",
            hint="call the kernel with NumPy arrays; it runs on the simulated machine",
        )
    return launch


@dataclass(slots=True)
class _Argument:
    """An array that the caller passed, and the tensor that stands for it."""

    original: np.ndarray
    view: View

    def write_back(self) -> None:
        """Bring what the kernel wrote into the caller's array, where the tensor is a copy."""
        if not self.original.flags.writeable or not self.view.spec.mutable:
            return
        stored = self.view.storage.flat
        if np.shares_memory(stored, self.original):
            return
        self.original[...] = to_numpy(self.view).astype(self.original.dtype, copy=False)


def execute(
    body: Callable[..., Any],
    core: NeuronCore,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    programs: Sequence[tuple[int, ...]] = ((0,),),
    grid: tuple[int, ...] = (1,),
    is_mutable: Callable[[str | int], bool] = lambda parameter: True,
    check_result: Callable[[View], None] = lambda view: None,
    explain: Callable[[Exception], KernelError | None] | None = None,
) -> Any:
    """Run `body` once per program of the grid and give its results as NumPy arrays.

    NumPy arrays among the arguments (also inside tuples, lists and dicts) become HBM tensors over
    the same memory, so that writes land in the caller's array. `is_mutable` says whether the kernel
    may write the parameter (by position or name); `check_result` may refuse a returned tensor;
    `explain` may make a KernelError of what Python says about the body (else `misfit_of` does).
    """
    taken: list[_Argument] = []
    ready_args = [_adopt(a, core, taken, is_mutable(i)) for i, a in enumerate(args)]
    ready_kwargs = {k: _adopt(v, core, taken, is_mutable(k), k) for k, v in kwargs.items()}
    launch = Launch(core, body, grid)
    results: list[Any] = []
    with entered(launch), np.errstate(all="ignore"):
        for watcher in core.watchers:
            watcher.launched(ready_args, ready_kwargs)
        for program in programs:
            launch.begin(program)
            with misfits_explained(explain or misfit_of):
                results.append(body(*ready_args, **ready_kwargs))
            for watcher in core.watchers:
                watcher.returned(results[-1])
        for watcher in core.watchers:
            watcher.ended(results[0] if results else None)
    for argument in taken:
        argument.write_back()
    return export(results[0], check_result) if results else None


@contextmanager
def entered(launch: Launch) -> Iterator[None]:
    """Make `launch` the running one for the duration of a block."""
    token = RUNNING.set(launch)
    try:
        yield
    finally:
        RUNNING.reset(token)


_MISFIT = re.compile(r"(?P<function>(?:nl|nisa|nki)\.\w+)\(\) (?P<what>.*)", re.DOTALL)


@contextmanager
def misfits_explained(explain: Callable[[Exception], KernelError | None]) -> Iterator[None]:
    """Python's complaints about a kernel, as the errors with a caret that `explain` makes."""
    try:
        yield
    except KernelError:
        raise
    except Exception as wrong:
        explanation = explain(wrong)
        if explanation is None:
            raise
        raise explanation from None


def misfit_of(wrong: Exception) -> KernelError | None:
    """Python's complaint about a call of the language.

    Languages name their functions (`__qualname__`) as kernels write them: nl.ndarray.
    """
    said = _MISFIT.fullmatch(str(wrong)) if isinstance(wrong, TypeError) else None
    trace = wrong.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if said is None or trace is None:
        return None
    return SignatureError(
        said["what"],
        instruction=said["function"],
        place=place_of(trace.tb_frame, trace.tb_lasti),
        hint="help() prints the signature in the chosen version",
    )


def _adopt(
    value: Any, core: NeuronCore, taken: list[_Argument], mutable: bool, name: str = ""
) -> Any:
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise _masked(value, name)
        view = _tensor_of(value, core, mutable and value.flags.writeable, name)
        taken.append(_Argument(value, view))
        return view
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(_adopt(v, core, taken, mutable) for v in value)
    if type(value) is dict:
        return {k: _adopt(v, core, taken, mutable) for k, v in value.items()}
    return value


def _masked(array: np.ma.MaskedArray, name: str) -> LaunchError:
    return LaunchError(
        f"{name or 'an argument'} is a masked array: a tensor has all its elements",
        got=f"shape {array.shape}, {np.ma.count_masked(array)} elements masked",
        hint="pass array.filled(value), and the mask as an array of its own where it is needed",
    )


def _tensor_of(array: np.ndarray, core: NeuronCore, mutable: bool, name: str) -> View:
    kind = as_dtype(array.dtype)
    wanted = core.stored_as(kind)
    shaped = array.reshape(1) if array.ndim == 0 else array
    if wanted.itemsize != array.dtype.itemsize:  # options.precise is off: kept as float32
        return core.adopt(shaped.astype(wanted), Space.hbm, mutable, name, kind)
    return core.adopt(np.ascontiguousarray(shaped), Space.hbm, mutable, name)


def export(value: Any, check: Callable[[View], None] = lambda view: None) -> Any:
    """What a kernel returned, with every tensor as a NumPy array."""
    if isinstance(value, View):
        check(value)
        return to_numpy(value)
    if isinstance(value, (tuple, list)):
        return type(value)(export(v, check) for v in value)
    if isinstance(value, dict):
        return {k: export(v, check) for k, v in value.items()}
    return value


def to_numpy(view: View) -> np.ndarray:
    """The elements in the dtype NumPy knows; no copy where the tensor is dense already."""
    view.settle()
    array = view.array
    if view.spec.dtype is bool_:
        return array != 0
    if array.dtype != view.spec.dtype.storage:
        return cast(array, view.spec.dtype)
    return np.ascontiguousarray(array)
