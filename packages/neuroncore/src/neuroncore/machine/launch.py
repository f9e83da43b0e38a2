"""Starting a kernel: arguments in, programs run, results out. Shared by the languages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from neuroncore.errors import KernelError, LaunchError, SignatureError
from neuroncore.machine.arguments import Arguments, rebuilt, to_numpy
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.garbage_collection import fewer_collections
from neuroncore.machine.program_scheduler import ProgramScheduler
from neuroncore.memory import View
from neuroncore.notes import hint_at_nan
from neuroncore.source_location import Place, place_of


@dataclass(slots=True, eq=False)
class Body:
    """One turn of a loop on the device: the tensors that are made in it end with it.

    `is_documented`: whether the documents of the version say so.
    """

    loop: str
    place: Place | None
    is_documented: bool = True
    is_open: bool = True
    outer: Body | None = None
    """What it is in: the turn of a loop around it, or its program."""


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
    bodies: list[Body] = field(default_factory=list)
    """The turns of device loops that the program is in, the innermost last."""
    number: int = field(default_factory=count(1).__next__)
    copied_arguments: dict[int, str] = field(default_factory=dict)
    """Arguments (their storages, by id) that share memory with another whose tensor is a copy, and
    words for the two: such are read-only.
    """
    root: Body = field(default_factory=lambda: Body("", None))
    """The program itself, for what is in no device loop."""
    scheduler: ProgramScheduler | None = None
    """How its programs wait for each other."""
    cores: int = 1
    """How many cores its programs run on at once."""
    kernel_globals: dict[str, Any] | None = None
    """The global names of the kernel's function that called an instruction last."""
    turns: dict[Place | None, dict[tuple[int, ...], list[int]]] = field(default_factory=dict)
    """How many turns the device loop at a place took, each time, by program."""
    _next_shared: int = 0

    @property
    def kernel(self) -> str:
        """The name of the function."""
        return getattr(self.body, "__name__", "")

    @property
    def scope(self) -> Body:
        """The turn that the program is in, or the program."""
        return self.bodies[-1] if self.bodies else self.root

    def begin(self, program: tuple[int, ...]) -> None:
        """Start the next program of the grid: it shares the tensors of the first."""
        self.program = program
        self.core.accumulators.clear()  # every program has a core of its own
        self.bodies.clear()
        self.root = Body("", None)
        self._next_shared = 0

    def beside(self, program: tuple[int, ...]) -> Launch:
        """The same launch for a program that runs while another waits."""
        return Launch(
            self.core, self.body, self.grid, program, self.shared, scheduler=self.scheduler,
            cores=self.cores, copied_arguments=self.copied_arguments, turns=self.turns,
        )  # fmt: skip

    def meet(self, pipe: Hashable, offer: Any, what: str) -> Any:
        """Wait for the other core's program at a pipe and exchange offers."""
        assert self.scheduler is not None
        return self.scheduler.meet(sum(self.program), pipe, offer, what)

    def share(self, make: Callable[[], View]) -> View:
        """A tensor that all programs of the launch have in common, matched by order of creation."""
        if self._next_shared == len(self.shared):
            self.shared.append(make())
        else:
            for watcher in self.core.watchers:
                watcher.shared(self.shared[self._next_shared].storage)
        view = self.shared[self._next_shared]
        self._next_shared += 1
        return view

    @contextmanager
    def turn(self, loop: str, place: Place | None, is_documented: bool = True) -> Iterator[None]:
        """The block is one turn of a device loop: its body."""
        with self.in_body(loop, place, is_documented):
            for watcher in self.core.watchers:
                watcher.iteration(loop, place)
            yield

    @contextmanager
    def in_body(self, loop: str, place: Place | None, is_documented: bool = True) -> Iterator[None]:
        """Tensors and instructions of the block belong to the body of a device loop."""
        body = Body(loop, place, is_documented, outer=self.scope)
        self.bodies.append(body)
        try:
            yield
        finally:
            body.is_open = False
            if body in self.bodies:  # a generator may be left after the launch has gone on
                self.bodies.remove(body)


RUNNING: ContextVar[Launch | None] = ContextVar("neuroncore.machine.launch.RUNNING", default=None)


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


def execute(
    body: Callable[..., Any],
    core: NeuronCore,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    programs: Sequence[tuple[int, ...]] = ((0,),),
    grid: tuple[int, ...] = (1,),
    cores: int = 1,
    is_mutable: Callable[[str | int], bool] = lambda parameter: True,
    check_result: Callable[[View], None] = lambda view: None,
    explain: Callable[[Exception], KernelError | None] | None = None,
) -> Any:
    """Run `body` once per program of the grid and give its results as NumPy arrays.

    With several `cores`, each program is what one of them does.

    NumPy arrays among the arguments (also inside tuples, lists and dicts) become HBM tensors over
    the same memory, so that writes land in the caller's array. `is_mutable` says whether the kernel
    may write the parameter (by position or name); `check_result` may reject a returned tensor;
    `explain` may make a KernelError of what Python says about the body (else
    `signature_error_of` does).
    Different arrays that share memory, of which one has to be copied (it is not
    C-contiguous), may be read: writing to one raises ImmutableError.
    """
    given = Arguments(core)
    ready_args = [given.adopt(a, is_mutable(i)) for i, a in enumerate(args)]
    ready_kwargs = {k: given.adopt(v, is_mutable(k), k) for k, v in kwargs.items()}
    launch = Launch(core, body, grid, cores=cores, copied_arguments=given.protect())

    def run(number: int, beside: bool) -> Any:
        mine = launch.beside(programs[number]) if beside else launch
        if not beside:
            launch.begin(programs[number])
        with entered(mine):
            with python_errors_explained(explain or signature_error_of):
                result = body(*ready_args, **ready_kwargs)
            for watcher in core.watchers:
                watcher.returned(result)
        return result

    launch.scheduler = ProgramScheduler(core, len(programs), run)
    with entered(launch), np.errstate(all="ignore"), fewer_collections:
        for watcher in core.watchers:
            watcher.launched(ready_args, ready_kwargs)
        results = launch.scheduler.run_all()
        for watcher in core.watchers:
            watcher.ended(results[0] if results else None)
    given.write_back()
    exported = export(results[0], check_result) if results else None
    hint_at_nan(exported, (*args, kwargs))
    return exported


def tensors_by_name(
    body: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[str, View]]:
    """The tensors among a launch's arguments, named as the parameters of `body`; those inside of
    tuples and dicts have the place there behind it.
    """
    try:
        bound = inspect.signature(body).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {f"x{i}": value for i, value in enumerate(args)} | dict(kwargs)
    for name, value in bound.items():
        yield from tensors_in(value, name)


def tensors_in(value: Any, path: str) -> Iterator[tuple[str, View]]:
    """The tensors in a value, each with `path` and its place behind that as a name."""
    if isinstance(value, View):
        yield path, value
    elif isinstance(value, (tuple, list)):
        for i, element in enumerate(value):
            yield from tensors_in(element, f"{path}_{i}")
    elif isinstance(value, dict):
        for key, element in value.items():
            yield from tensors_in(element, f"{path}_{key}")


@contextmanager
def entered(launch: Launch) -> Iterator[None]:
    """Make `launch` the running one for the duration of a block."""
    token = RUNNING.set(launch)
    try:
        yield
    finally:
        RUNNING.reset(token)


_SIGNATURE_ERROR = re.compile(r"(?P<function>(?:nl|nisa|nki)\.\w+)\(\) (?P<what>.*)", re.DOTALL)


@contextmanager
def python_errors_explained(explain: Callable[[Exception], KernelError | None]) -> Iterator[None]:
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


def signature_error_of(wrong: Exception) -> KernelError | None:
    """Python's complaint about a call of the language.

    Languages name their functions (`__qualname__`) as kernels write them: nl.ndarray.
    """
    said = _SIGNATURE_ERROR.fullmatch(str(wrong)) if isinstance(wrong, TypeError) else None
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


def export(value: Any, check: Callable[[View], None] = lambda view: None) -> Any:
    """The result of a kernel, with every tensor as a NumPy array."""
    if isinstance(value, View):
        check(value)
        return to_numpy(value)
    if isinstance(value, (tuple, list)):
        return rebuilt(value, (export(v, check) for v in value))
    if isinstance(value, dict):
        return {k: export(v, check) for k, v in value.items()}
    return value
