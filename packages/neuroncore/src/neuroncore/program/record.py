"""Watches a kernel run and writes down its allocations and instructions, without loops."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from neuroncore._caret import Place
from neuroncore.core import NeuronCore
from neuroncore.errors import UnsupportedError
from neuroncore.instructions._psum import mark_written, written_part
from neuroncore.launch import running
from neuroncore.memory import Storage, View
from neuroncore.observe import Event, Watcher
from neuroncore.options import Options
from neuroncore.program.naming import assigned_name
from neuroncore.program.nodes import Program
from neuroncore.program.notes import Matmul, NotedCall, NotedTensor, NotedView, statements
from neuroncore.spec import Spec, row_major
from nki_dtypes import cast

BETA1 = (0, 1)


def _views(value: Any, path: str) -> Iterator[tuple[str, View]]:
    """The tensors in an argument with a name for each."""
    if isinstance(value, View):
        yield path, value
    elif isinstance(value, (tuple, list)):
        for i, element in enumerate(value):
            yield from _views(element, f"{path}_{i}")
    elif isinstance(value, dict):
        for key, element in value.items():
            yield from _views(element, f"{path}_{key}")


class Recorder(Watcher):
    """Receives what one launch does; `program` gives it as statements.

    While the kernel runs, only numbers are written down; statements are made of them at the end.
    `kernel` None is the one that is launched. `for_time`: what memory holds does not matter, but
    data that a language moved without an instruction does, because nobody compares the program
    with the run. Without `needs_values`, which is for time only, nothing needs to be executed.
    """

    def __init__(
        self,
        kernel: Callable[..., Any] | None = None,
        for_time: bool = False,
        needs_values: bool = True,
    ) -> None:
        self.kernel = kernel
        self.for_time = for_time
        self.needs_values = needs_values
        self._refused: UnsupportedError | None = None
        self.core: NeuronCore | None = None
        self._tensors: dict[int, NotedTensor] = {}
        """By id of the storage; a storage that dies is replaced by the next with its id."""
        self._all: list[NotedTensor] = []
        self._notes: list[NotedTensor | NotedCall] = []
        """Tensors that were made and calls, in order."""
        self._dense: dict[Spec, bool] = {}
        self._constants: dict[tuple[Any, ...], NotedTensor] = {}
        self._parameters: list[NotedTensor] = []
        self._results: list[NotedTensor] | None = None

    @property
    def options(self) -> Options | None:
        """Those that the kernel ran under."""
        return self.core.options if self.core else None

    # -- what happens -----------------------------------------------------------------------------

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if self._results is not None or self._parameters:
            raise UnsupportedError("capture of more than one launch")
        if self.kernel is None:
            self.kernel = running("a recorder").body
        for name, view in self._arguments(args, kwargs):
            tensor = self._tensors[id(view.storage)]
            tensor.is_gathered = False
            tensor.parameter = name
            self._parameters.append(tensor)
            self.core = view.core

    def _arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Iterator[tuple[str, View]]:
        kernel: Any = self.kernel
        try:
            bound = inspect.signature(kernel).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):
            bound = {f"x{i}": value for i, value in enumerate(args)} | dict(kwargs)
        for name, value in bound.items():
            yield from _views(value, name)

    def allocated(self, storage: Storage) -> None:
        tensor = self._tensors[id(storage)] = NotedTensor(
            len(self._all), storage.shape, storage.dtype, storage.space, storage.address,
            storage.name, storage.place, not (storage.fresh or storage.constant),
            storage.flat.nbytes,
        )  # fmt: skip
        if storage.constant:
            self._note_constant(tensor, storage)
        self._all.append(tensor)
        if storage.fresh:
            self._notes.append(tensor)

    def _note_constant(self, tensor: NotedTensor, storage: Storage) -> None:
        held, dtype = storage.flat, storage.dtype
        elements = held if held.dtype == dtype.storage else cast(held, dtype)
        key = (storage.shape, dtype, elements.tobytes())
        tensor.same_as = self._constants.get(key)
        if tensor.same_as is None:
            tensor.elements = elements
            self._constants[key] = tensor

    def will(self, event: Event) -> None:
        attrs = event.call.attrs
        if "accumulate" not in attrs or attrs.get("is_transpose"):
            return
        dst = event.views["dst"]
        written = written_part(dst)
        at, tensor = len(self._notes), self._tensors[id(dst.storage)]
        adds_anyway = event.call.options.accumulate_on_unwritten == "add"
        if attrs["accumulate"] and adds_anyway and written is not True:
            if not self.for_time:
                _holds_zeros(dst, written, event.place)
            written = True if written is False else None  # 0 + x: as if it had been written
            tensor.accumulates(Matmul(at, None, written))
            return
        state = written if isinstance(written, bool) else None
        tensor.accumulates(Matmul(at, attrs["accumulate"], state))

    def did(self, event: Event) -> None:
        call, views, place = event.call, event.views, event.place
        operands = [
            self._noted(value) if isinstance(value, View) else value for value in views.values()
        ]
        self._notes.append(NotedCall(call, tuple(views), operands, event.name, place))
        if call.version == BETA1 or self.core is None:
            self._first_touch(event)
        if not self.needs_values:
            _as_if_executed(event)

    def _noted(self, view: View) -> NotedView:
        tensor, spec, array = self._tensors[id(view.storage)], view.spec, view.array
        last = tensor.last
        if last is not None and last.spec is spec:
            return last
        dense = self._dense.get(spec)
        if dense is None:
            dense = self._dense[spec] = spec.strides == row_major(spec.shape)
        starts = dense and array.nbytes == tensor.num_bytes
        offset = 0 if starts else tensor.offset(array, view.storage.flat)
        index = None if view.dynamic is None else self._noted(view.dynamic.index)
        noted = NotedView(tensor, spec, offset, index)
        if starts and index is None:
            tensor.last = noted
        return noted

    def _first_touch(self, event: Event) -> None:
        for name in event.call.record.outputs:
            view = event.views.get(name)
            if isinstance(view, View):
                self.core = self.core or view.core
                tensor = self._tensors[id(view.storage)]
                if tensor.touched_at is None and event.call.version == BETA1:
                    tensor.touched_at = event.place

    def moved(
        self,
        dst: View,
        src: View | None,
        at: np.ndarray | None = None,
        of: np.ndarray | None = None,
    ) -> None:
        if self.for_time and self._refused is None:
            self._refused = UnsupportedError(
                "data is moved without an instruction, which no program says",
                got=f"{dst!r} is filled from {'a constant' if src is None else repr(src)}",
                hint="write HBM with nisa.dma_copy; where a mask is no rectangle, compute the "
                "whole tile and choose with nisa.affine_select or nl.where",
            )

    def returned(self, value: Any) -> None:
        if self._results is None:
            self._results = [self._result(view) for _, view in _views(value, "result")]

    def _result(self, view: View) -> NotedTensor:
        tensor = self._tensors[id(view.storage)]
        if view.shape != tensor.shape or view.spec.dtype is not tensor.dtype:
            raise UnsupportedError(
                "the kernel returns a part of a tensor",
                expected="whole tensors",
                got=repr(view),
                hint="copy the part into a tensor of its own",
            )
        return tensor

    # -- as nodes ---------------------------------------------------------------------------------

    def names(self) -> dict[str, str]:
        """Buffer → what the source calls it."""
        named = lru_cache(maxsize=None)(assigned_name)
        return {
            t.buffer.name: named(t.touched_at) or t.given_name or named(t.made_at) or "tile"
            for t in self._all
            if t.same_as is None
        }

    def program(self) -> Program:
        """What happened, one statement after the other; tensors that nobody touches are left out.

        An accumulation group that begins with its PSUM tensor is written with accumulate=None.
        Raises UnsupportedError for what no program says.
        """
        if self._refused is not None:
            raise self._refused
        version = next((n.call.version for n in self._notes if isinstance(n, NotedCall)), (0, 6))
        return Program(
            getattr(self.kernel, "__name__", "kernel"),
            tuple(t.buffer for t in self._parameters),
            statements(self._notes, self._all, self._results or ()),
            tuple(t.buffer.name for t in self._results or ()),
            self.core.target.name if self.core else "trn2",
            ".".join(map(str, version)),
        )


def _as_if_executed(event: Event) -> None:
    """What executing leaves behind beside values: memory that counts as written."""
    for name in event.call.record.outputs:
        view = event.views.get(name)
        if isinstance(view, View):
            view.claim()
            if "accumulate" in event.call.attrs:
                mark_written(view)


def _holds_zeros(dst: View, written: np.ndarray | bool, place: Place | None) -> None:
    """0.1 adds a matmul to what PSUM holds; only zeros can be said with an accumulation group."""
    held = dst.array
    if written is not False:
        held = held[np.broadcast_to(np.logical_not(written), dst.shape)]
    if not dst.storage.fresh and not held.any():
        return
    raise UnsupportedError(
        "a matmul is added to PSUM content that is not zero and no matmul has written",
        hint="add the product to it with an instruction of the vector engine",
        instruction="nc_matmul",
        place=place,
    )
