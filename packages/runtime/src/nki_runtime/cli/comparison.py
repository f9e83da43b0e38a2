"""`nki-run --compare NAME=VALUE`: the first instruction whose result another choice changes.

The program runs twice at the same time, each in a process of its own: one sends the result of every
instruction through a pipe, the other compares it with its own. Instructions are paired in the
order in which they run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from math import prod
from typing import IO

import numpy as np

from neuroncore.commands.user_folder import our_command
from neuroncore.errors import LaunchError, Place
from neuroncore.machine.launch import RUNNING
from neuroncore.machine.observe import Event, Watcher
from neuroncore.machine.results import result_arrays, widened
from nki_dtypes import DType, finfo, resolve

CHANGES = {"nki": "--nki", "target": "--target", "backend": "--backend"}
"""What `--compare` may change besides fields of Options, and the option that says it."""
DIFFERENT = 3
"""Exit code of the comparing process: it has said where results depart."""
ROLE = "NKI_RUN_COMPARES"
"""Set for the two processes: the words of `Role`, with commas."""


@dataclass(frozen=True, slots=True)
class ExecutedInstruction:
    """An instruction that one of the runs has executed, and its results by operand."""

    name: str
    kernel: str
    place: Place | None
    dtypes: Mapping[str, str]
    results: Mapping[str, np.ndarray]


def options_of(change: str) -> list[str]:
    """The options of nki-run that say NAME=VALUE. Raises LaunchError where it is none."""
    name, equals, value = change.partition("=")
    if not equals or not name or not value:
        raise LaunchError(
            f"--compare {change} changes nothing", expected="NAME=VALUE, such as nki=0.5, "
            "target=trn1 or precise=false", operand="change",
        )  # fmt: skip
    return [CHANGES[name], value] if name in CHANGES else ["--option", change]


def compare(
    options: Sequence[str],
    more: Sequence[str],
    program: Sequence[str],
    change: str,
    bound: float,
) -> int:
    """Run `nki-run OPTIONS PROGRAM` as it is and with `more`, which says `change`; 0 when all
    results agree.
    """
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb"), os.fdopen(writes, "wb"):
        as_it_is = _start(options, program, f"sends,{writes},{bound},{change}", writes)
        changed = _start([*options, *more], program, f"compares,{reads},{bound},{change}", reads)
    status, other = as_it_is.wait(), changed.wait()
    if other == DIFFERENT:
        return 1
    if status or other:
        which = "as it is" if status else f"with {change}"
        sys.stderr.write(f"nki-run: --compare: the program failed {which}\n")
    return status or other


def _start(
    options: Sequence[str], program: Sequence[str], role: str, pipe: int
) -> subprocess.Popen[bytes]:
    """One of the runs; only the first one's output is shown."""
    return subprocess.Popen(
        [*our_command("nki_runtime.cli"), *options, *program],
        env=os.environ | {ROLE: role},
        pass_fds=[pipe],
        stdout=None if role.startswith("sends") else subprocess.DEVNULL,
    )


def role_here() -> ResultSender | ResultComparer | None:
    """The part of this process in a comparison, if it has one."""
    words = os.environ.pop(ROLE, "").split(",", 3)
    if len(words) < 4:
        return None
    what, pipe, bound, change = words
    if what == "sends":
        return ResultSender(os.fdopen(int(pipe), "wb"))
    return ResultComparer(os.fdopen(int(pipe), "rb"), float(bound), change)


class ResultSender(Watcher):
    """Sends what every instruction computes."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe: IO[bytes] | None = pipe
        self._lock = threading.Lock()

    def did(self, event: Event) -> None:
        with self._lock:
            if self._pipe is None:
                return
            try:
                _send(executed(event), self._pipe)
            except BrokenPipeError:  # the reader has ended: it has its difference
                self._pipe = None

    def finish(self) -> int:
        with self._lock:
            if self._pipe is not None:
                with suppress(BrokenPipeError):  # the reader has ended
                    _send(None, self._pipe)
                    self._pipe.close()
        return 0


class ResultComparer(Watcher):
    """Compares what every instruction computes with what the other process says.

    The first difference ends this process: what follows from it would depart as well.
    """

    def __init__(self, pipe: IO[bytes], bound: float, change: str) -> None:
        self._pipe, self._bound, self._change = pipe, bound, change
        self._lock = threading.Lock()
        self._count = 0

    def did(self, event: Event) -> None:
        with self._lock:
            self._count += 1
            departure = difference_between(self._received(), executed(event), self._bound)
            if departure is not None:
                self._say(departure)

    def finish(self) -> int:
        other = self._received()
        if other is not None:
            self._say(difference_between(other, None, self._bound) or "")
        sys.stderr.write(
            f"nki-run: --compare {self._change}: the results of {self._count} instructions agree "
            f"within {self._bound:g} ulps\n"
        )
        return 0

    def _received(self) -> ExecutedInstruction | None:
        try:
            return _receive(self._pipe)
        except (EOFError, ValueError):
            raise SystemExit(1) from None  # the other one has failed, and says so

    def _say(self, departure: str) -> None:
        sys.stderr.write(
            f"nki-run: --compare {self._change}: instruction {self._count or 1} {departure}\n"
        )
        sys.stderr.flush()
        sys.stdout.flush()
        os._exit(DIFFERENT)  # in whichever thread the kernel runs


def _send(executed: ExecutedInstruction | None, pipe: IO[bytes]) -> None:
    """A line of JSON, and the bytes of the results; None is the end."""
    if executed is None:
        pipe.write(b"null\n")
        return
    arrays = {name: np.ascontiguousarray(array) for name, array in executed.results.items()}
    head = {
        "name": executed.name,
        "kernel": executed.kernel,
        "place": executed.place and astuple(executed.place),
        "dtypes": dict(executed.dtypes),
        "arrays": {name: (array.dtype.str, array.shape) for name, array in arrays.items()},
    }
    pipe.write(json.dumps(head).encode() + b"\n")
    for array in arrays.values():
        pipe.write(array.tobytes())


def _receive(pipe: IO[bytes]) -> ExecutedInstruction | None:
    """The next of `_send`. Raises EOFError where the sender has ended, ValueError for others."""
    line = pipe.readline()
    if not line:
        raise EOFError
    head = json.loads(line)
    if head is None:
        return None
    results = {
        name: _array(pipe, np.dtype(dtype), shape)
        for name, (dtype, shape) in head.pop("arrays").items()
    }
    place = head.pop("place")
    return ExecutedInstruction(**head, place=place and Place(*place), results=results)


def _array(pipe: IO[bytes], dtype: np.dtype, shape: Sequence[int]) -> np.ndarray:
    return np.frombuffer(pipe.read(dtype.itemsize * prod(shape)), dtype).reshape(shape)


def difference_between(
    one: ExecutedInstruction | None,
    other: ExecutedInstruction | None,
    bound: float,
    names: tuple[str, str] = ("as it is", "with the change"),
) -> str | None:
    """How the second run differs from the first by more than `bound` ulps; None: it agrees.

    `names` are what the runs are called in the answer.
    """
    if one is None or other is None:
        only = one or other
        assert only is not None
        return f"is run {names[other is not None]} only\n{_line(only)}"
    if one.name != other.name or one.results.keys() != other.results.keys():
        both = f"{one.name} {names[0]}, {other.name} {names[1]}"
        return f"is {both}\n{_line(one)}\n{_line(other)}"
    found = (_result_difference(one, other, operand, bound, names) for operand in one.results)
    return next((text for text in found if text is not None), None)


def _result_difference(
    one: ExecutedInstruction,
    other: ExecutedInstruction,
    operand: str,
    bound: float,
    names: tuple[str, str],
) -> str | None:
    mine, theirs = one.results[operand], other.results[operand]
    if mine.shape != theirs.shape:
        return f"gives shape {mine.shape}, {theirs.shape} {names[1]}\n{_line(one)}"
    distance = distance_in_ulps(mine, theirs, resolve(one.dtypes[operand]))
    if not distance.size or not distance.max() > bound:
        return None
    worst = np.unravel_index(np.argmax(distance), distance.shape)
    at = tuple(map(int, worst))
    return (
        f"is the first whose result departs: by {distance[worst]:.4g} ulps of "
        f"{one.dtypes[operand]} at {at} of {operand}: {mine[worst]!r} {names[0]}, "
        f"{theirs[worst]!r} {names[1]}\n{_line(one)}"
    )


def distance_in_ulps(one: np.ndarray, other: np.ndarray, dtype: DType) -> np.ndarray:
    """How far elements are apart, in units of the last place of the larger one; integers in ones.

    Where both are NaN or the same they are 0 apart, where one alone is not finite infinitely.
    """
    mine, theirs = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        distance = np.abs(mine - theirs)
    if dtype.is_float and dtype.lanes == 1:
        limits = finfo(dtype)
        magnitude = np.maximum(np.maximum(np.abs(mine), np.abs(theirs)), limits.smallest_normal)
        exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 1))[1] - 1
        distance = distance / np.exp2(exponent.astype(np.float64) - limits.mantissa_bits)
    same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    return np.where(same, 0.0, np.where(np.isfinite(distance), distance, np.inf))


def executed(event: Event) -> ExecutedInstruction:
    """An instruction that has just run, with copies of its results."""
    results = {name: widened(array) for name, array in result_arrays(event).items()}
    dtypes = {name: str(event.views[name].dtype) for name in results}
    launch = RUNNING.get()
    kernel = launch.kernel if launch else ""
    return ExecutedInstruction(event.call.record.name, kernel, event.place, dtypes, results)


def _line(step: ExecutedInstruction) -> str:
    if step.place is None:
        return f"{step.kernel}: {step.name}"
    return "\n".join([f"{step.place}: {step.kernel}: {step.name}", *step.place.excerpt()])
