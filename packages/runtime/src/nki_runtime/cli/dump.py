"""`nki-run --dump`: what the tensors of every kernel held, as .npz files.

A tensor is named by `name=` or by the variable it was assigned to; a result of an instruction that
has a name, by that. Of several with one name the second is `name.1`. Floats narrower than float32
are widened, which changes no number.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore.commands.files import naming_output, write_whole
from neuroncore.errors import LaunchError
from neuroncore.machine.launch import RUNNING, running, tensors_by_name
from neuroncore.machine.observe import Event, Watcher
from neuroncore.machine.results import result_arrays, widened
from neuroncore.memory import Storage
from neuroncore.program import assigned_name


class Dumper(Watcher):
    """Writes a file for every launch that ends well; one that ends in an error leaves none.

    Raises LaunchError for a folder that cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as reason:
            raise LaunchError(f"--dump {folder}: {reason.strerror}", expected="a folder") from None
        self.folder = folder
        self._launches: dict[int, _Launch] = {}
        """Running launches by id of their core."""
        self._last = threading.local()
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        launch = running("a dump")
        self._launches.pop(getattr(self._last, "key", 0), None)  # one that ended in an error
        self._last.key = id(launch.core)
        now = self._launches[id(launch.core)] = _Launch()
        if launch.body is not None:
            named = tensors_by_name(launch.body, args, kwargs)
            now.tensors += [(name, view.storage) for name, view in named]

    def allocated(self, storage: Storage) -> None:
        if RUNNING.get() is not None:  # else it is an argument
            self._now().tensors.append((None, storage))

    def _now(self) -> _Launch:
        """The state of the launch; its programs may run in several threads."""
        return self._launches[id(running("a dump").core)]

    def did(self, event: Event) -> None:
        if event.name is not None:
            for array in result_arrays(event).values():
                self._now().named.append((event.name, widened(array)))

    def ended(self, value: Any) -> None:
        launch = running("a dump")
        kernel = launch.kernel
        arrays = _arrays(self._launches.pop(id(launch.core)))
        with self._lock:
            count = self._counts[kernel] = self._counts.get(kernel, -1) + 1
            stem = re.sub(r"\W", "_", kernel) or "kernel"
            file = self.folder / (f"{stem}.{count}.npz" if count else f"{stem}.npz")
            with naming_output("--dump", file):
                write_whole(file, lambda aside: _save(aside, arrays))
        sys.stderr.write(f"nki-run: --dump: {file}: {', '.join(arrays)}\n")


class _Launch:
    """Tensors of a launch so far."""

    def __init__(self) -> None:
        self.tensors: list[tuple[str | None, Storage]] = []
        """Each with its name, if it is an argument."""
        self.named: list[tuple[str, np.ndarray]] = []


def _arrays(launch: _Launch) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for given, storage in launch.tensors:
        if not storage.fresh:
            name = given or storage.name or assigned_name(storage.place) or "tensor"
            _add(found, name, widened(storage.flat.reshape(storage.shape)))
    for name, array in launch.named:
        _add(found, name, array)
    return found


def _add(found: dict[str, np.ndarray], name: str, array: np.ndarray) -> None:
    count = 0
    key = name
    while key in found:
        count += 1
        key = f"{name}.{count}"
    found[key] = array


def _save(file: Path, arrays: Mapping[str, np.ndarray]) -> None:
    with file.open("wb") as stream:  # savez appends .npz to names
        np.savez(stream, **arrays)  # type: ignore[arg-type]
