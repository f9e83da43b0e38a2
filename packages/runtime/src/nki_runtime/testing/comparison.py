"""A kernel's results against a reference, and where a difference comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore.commands.reporting import installed_reporter
from neuroncore.errors import LaunchError
from neuroncore.machine.observe import Event, Watcher, watched_by
from neuroncore.memory import Shadow, Storage, View
from neuroncore.spec import as_dtype
from nki_runtime.cli.comparison import (
    ExecutedInstruction,
    difference_between,
    distance_in_ulps,
    executed,
)
from nki_runtime.cli.dump import Dumper
from nki_runtime.execution.arrays import Conversion
from nki_runtime.execution.simulate import Simulation, simulate
from nki_runtime.switch.registry import backends, loadable

RUNS = ("in the kernel", "in the reference")


def compare_with_reference(
    kernel: Any,
    reference: Callable[..., Any],
    arrays: Sequence[Any],
    folder: Path,
    *,
    ulps: float = 1,
    atol: float = 0.0,
) -> tuple[Any, str | None]:
    """The result of a kernel, and its difference from that of `reference`, or None.

    kernel: a kernel, or what `nki_runtime.simulate` makes of one (to launch it on a grid).
    reference: a NumPy function of the same arrays, floats as float64 so that its own rounding does
        not count; or another kernel, which takes the arrays as they are and is compared with
        instruction by instruction as well.
    arrays: NumPy, torch (host memory) or JAX arrays, or numbers. Both get copies.
    folder: where a difference writes what every tensor contained (`tensors/`) and, with nki-scope
        installed, a page about the run (`run.html`).
    ulps: what an element may be off, in units of the last place of the result's dtype, at the
        larger of both magnitudes; in ones for integers.
    atol: what it may be off besides, as a number.

    Raises LaunchError for other bounds, and what the kernel and the reference raise.
    """
    for name, bound in (("ulps", ulps), ("atol", atol)):
        if not (isinstance(bound, (int, float, np.number)) and bound >= 0):
            raise LaunchError(
                f"{name} is not a bound", expected="a number, 0 or more", got=repr(bound)
            )
    run = kernel if isinstance(kernel, Simulation) else simulate(kernel)
    given = Conversion().to_numpy(tuple(arrays))
    is_kernel = _is_kernel(reference)
    result = run(*_copies(arrays if given == arrays else given))
    wanted = (simulate(reference) if is_kernel else reference)(
        *(_copies(given) if is_kernel else _widened(given))
    )
    found = _difference(Conversion().to_numpy(result), wanted, ulps, atol)
    if found is None:
        return result, None
    number, at, text = found
    return result, "\n".join([text, *_causes(run, given, number, at, folder, reference, ulps)])


def _is_kernel(function: Any) -> bool:
    return isinstance(function, Simulation) or any(
        b.is_kernel(function) for b in loadable(backends())
    )


def _copies(arrays: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(np.array(a) if isinstance(a, np.ndarray) else a for a in arrays)


def _widened(arrays: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(a.astype(np.float64) if _is_float(a) else a for a in _copies(arrays))


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and as_dtype(value.dtype).is_float


# -- how far results are apart --------------------------------------------------------------------


def _difference(
    result: Any, wanted: Any, ulps: float, atol: float
) -> tuple[int, tuple[int, ...], str] | None:
    """The first result that departs: its number, its worst element, and words; None: none does."""
    got = result if isinstance(result, (tuple, list)) else (result,)
    want = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
    if len(got) != len(want):
        return 0, (), f"the kernel gives {len(got)} results, the reference {len(want)}"
    for number, (one, other) in enumerate(zip(got, want, strict=True)):
        name = f"result {number}" if len(got) > 1 else "the result"
        found = _element_difference(np.asarray(one), np.asarray(other), ulps, atol, name)
        if found is not None:
            return number, *found
    return None


def _element_difference(
    got: np.ndarray, want: np.ndarray, ulps: float, atol: float, name: str
) -> tuple[tuple[int, ...], str] | None:
    if got.shape != want.shape:
        return (), f"{name} has shape {got.shape}, the reference's {want.shape}"
    dtype = as_dtype(got.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = want.astype(got.dtype)
        off = np.abs(got.astype(np.float64) - want.astype(np.float64))
    distance = np.minimum(distance_in_ulps(got, want, dtype), distance_in_ulps(got, rounded, dtype))
    wrong = (distance > ulps) & ~(off <= atol)
    if not wrong.any():
        return None
    flat = np.where(wrong, distance, -1.0)
    at = tuple(map(int, np.unravel_index(np.argmax(flat), flat.shape)))
    return at, (
        f"{name} departs in {int(wrong.sum())} of {wrong.size} elements, most at {list(at)}: "
        f"{got[at]!s}, the reference gives {want[at]!s} "
        f"({distance[at]:.4g} ulps of {dtype}, expected at most {ulps:g})"
    )


# -- where a difference comes from ----------------------------------------------------------------


class _Writers(Watcher):
    """Which instruction wrote each element last, and the first that gave NaN or infinity."""

    def __init__(self) -> None:
        self.executed: list[ExecutedInstruction] = []
        self.returned_views: tuple[View, ...] = ()
        self._writers: dict[int, Shadow] = {}
        self._kept: list[Storage] = []
        """Storages whose number (`id`) is in use."""

    def did(self, event: Event) -> None:
        self.executed.append(executed(event))
        for name in event.call.record.outputs:
            view = event.views.get(name)
            if isinstance(view, View):
                self._shadow(view.storage).put(view, len(self.executed))

    def ended(self, value: Any) -> None:
        values = value if isinstance(value, (tuple, list)) else (value,)
        self.returned_views = tuple(v for v in values if isinstance(v, View))

    def _shadow(self, storage: Storage) -> Shadow:
        if id(storage) not in self._writers:
            self._writers[id(storage)] = Shadow.beside(storage, 0, np.int64)
            self._kept.append(storage)
        return self._writers[id(storage)]

    def writer_of(self, number: int, at: tuple[int, ...]) -> ExecutedInstruction | None:
        """The instruction that wrote an element of a result last."""
        if number >= len(self.returned_views) or not at:
            return None
        view = self.returned_views[number]
        who = int(self._shadow(view.storage).elements(view, np.max)[at])
        return self.executed[who - 1] if who else None

    def first_not_finite(self) -> tuple[ExecutedInstruction, str] | None:
        for step in self.executed:
            for operand, values in step.results.items():
                if values.dtype.kind == "f" and not np.isfinite(values).all():
                    return step, operand
        return None


def _causes(
    run: Simulation,
    arrays: Sequence[Any],
    number: int,
    at: tuple[int, ...],
    folder: Path,
    reference: Any,
    ulps: float,
) -> list[str]:
    """The kernel once more, watched: the lines that say where to look."""
    writers = _Writers()
    reporter = installed_reporter("nki_compare", folder / "run.html")
    pages = [] if reporter is None else [reporter.watcher]
    with watched_by(writers, Dumper(folder / "tensors"), *pages):
        run(*_copies(arrays))
    lines = []
    if _is_kernel(reference):
        lines += _first_departure(writers.executed, reference, arrays, ulps)
    not_finite = writers.first_not_finite()
    if not_finite is not None:
        step, operand = not_finite
        lines += [f"first NaN or infinity: {step.name}, {operand}", *_shown(step)]
    writer = writers.writer_of(number, at)
    if writer is not None:
        lines += [f"the element was written last by {writer.name}", *_shown(writer)]
    lines.append(f"what every tensor contained: {folder / 'tensors'}")
    if reporter is not None:
        reporter.write()
        lines.append(f"the run as a page: {reporter.file}")
    return lines


def _first_departure(
    mine: Sequence[ExecutedInstruction], reference: Any, arrays: Sequence[Any], ulps: float
) -> list[str]:
    """The first instruction whose result is not the reference kernel's."""
    other = _Writers()
    with watched_by(other):
        simulate(reference)(*_copies(arrays))
    pairs = zip(mine, other.executed, strict=False)
    for count, (one, two) in enumerate(pairs, 1):
        departure = difference_between(one, two, ulps, RUNS)
        if departure is not None:
            return [f"instruction {count} {departure}"]
    return []


def _shown(step: ExecutedInstruction) -> list[str]:
    return [] if step.place is None else [f"  {step.place}", *step.place.excerpt()]
