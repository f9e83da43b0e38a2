"""Watches a kernel run and writes down its allocations and instructions, without loops."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from neuroncore._caret import Place
from neuroncore.core import NeuronCore
from neuroncore.errors import UnsupportedError
from neuroncore.instructions._psum import mark_written, written_part
from neuroncore.memory import Storage, View
from neuroncore.observe import Event, Watcher
from neuroncore.options import Options
from neuroncore.program.affine import Affine
from neuroncore.program.box import canonical
from neuroncore.program.naming import assigned_name
from neuroncore.program.nodes import (
    Access,
    Allocate,
    Buffer,
    Call,
    Indirect,
    Program,
    accesses,
    plain_number,
)

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


@dataclass(slots=True)
class _Matmul:
    """An accumulating call: where it stands, what it asked for, what PSUM held (None: mixed)."""

    at: int
    accumulate: bool | None
    written: bool | None

    @property
    def starts_or_continues(self) -> bool:
        """Whether accumulate=None says the same: the first write overwrites, later ones add."""
        return self.accumulate is None or self.accumulate is self.written


@dataclass(slots=True)
class _Tensor:
    """A tensor of the run: its buffer, what the source calls it, the matmuls into it."""

    buffer: Buffer
    hint: str | None
    is_constant: bool
    matmuls: list[_Matmul] = field(default_factory=list)
    is_touched: bool = False


class Recorder(Watcher):
    """Receives what one launch does; `program` gives it as statements.

    Without `needs_values` nothing needs to be executed for it. `refuses_moves` raises
    UnsupportedError where a language moves data without an instruction: for whoever does not
    compare the program with the run.
    """

    def __init__(
        self, kernel: Callable[..., Any], needs_values: bool = True, refuses_moves: bool = False
    ) -> None:
        self.kernel = kernel
        self.needs_values = needs_values
        self.refuses_moves = refuses_moves
        self.core: NeuronCore | None = None
        self._tensors: dict[int, _Tensor] = {}
        """By id of the storage; a storage that dies is replaced by the next with its id."""
        self._all: list[_Tensor] = []
        self._body: list[Allocate | Call] = []
        self._nki = ""
        self._parameters: list[Buffer] = []
        self._results: list[Buffer] | None = None

    @property
    def options(self) -> Options | None:
        """Those that the kernel ran under."""
        return self.core.options if self.core else None

    # -- what happens -----------------------------------------------------------------------------

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if self._results is not None or self._parameters:
            raise UnsupportedError("capture of more than one launch")
        for name, view in self._arguments(args, kwargs):
            tensor = self._tensors[id(view.storage)]
            tensor.is_constant = False
            tensor.buffer = replace(tensor.buffer, name=name)
            self._parameters.append(tensor.buffer)
            self.core = view.core

    def _arguments(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Iterator[tuple[str, View]]:
        try:
            bound = inspect.signature(self.kernel).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):
            bound = {f"x{i}": value for i, value in enumerate(args)} | dict(kwargs)
        for name, value in bound.items():
            yield from _views(value, name)

    def allocated(self, storage: Storage) -> None:
        place = storage.place
        buffer = Buffer(
            f"tile.{len(self._all)}", storage.shape, storage.dtype, storage.space, storage.address
        )
        hint = storage.name or assigned_name(place)
        tensor = self._tensors[id(storage)] = _Tensor(buffer, hint, not storage.fresh)
        self._all.append(tensor)
        if storage.fresh:
            self._body.append(Allocate(buffer, place))

    def will(self, event: Event) -> None:
        attrs = event.call.attrs
        if "accumulate" not in attrs or attrs.get("is_transpose"):
            return
        dst = event.views["dst"]
        written = written_part(dst)
        adds_anyway = event.call.options.accumulate_on_unwritten == "add"
        if attrs["accumulate"] and adds_anyway and written is not True:
            if self.needs_values:
                _holds_zeros(dst, written, event.place)
            written = True if written is False else None  # 0 + x: as if it had been written
            self._at(dst).matmuls.append(_Matmul(len(self._body), None, written))
            return
        state = written if isinstance(written, bool) else None
        self._at(dst).matmuls.append(_Matmul(len(self._body), attrs["accumulate"], state))

    def did(self, event: Event) -> None:
        call = event.call
        self._nki = self._nki or ".".join(map(str, call.version))
        operands = {name: self._operand(value) for name, value in event.views.items()}
        for name in call.record.outputs:
            view = event.views.get(name)
            if isinstance(view, View):
                self.core = self.core or view.core
                self._touch(self._at(view), event)
        self._body.append(
            Call(call.record.name, operands, dict(call.attrs), event.name, event.place)
        )
        if not self.needs_values:
            _as_if_executed(event)

    def moved(
        self,
        dst: View,
        src: View | None,
        at: np.ndarray | None = None,
        of: np.ndarray | None = None,
    ) -> None:
        if self.refuses_moves:
            raise UnsupportedError(
                "data is moved without an instruction, which no program says",
                got=f"{dst!r} is filled from {'a constant' if src is None else repr(src)}",
                hint="write HBM with nisa.dma_copy; where a mask is no rectangle, compute the whole "
                "tile and choose with nisa.affine_select or nl.where",
            )

    def _touch(self, tensor: _Tensor, event: Event) -> None:
        """The first write names the tiles of 0.1, which come to life when they are used."""
        if not tensor.is_touched and event.call.version == BETA1:
            tensor.hint = assigned_name(event.place) or tensor.hint
        tensor.is_touched = True

    def returned(self, value: Any) -> None:
        if self._results is None:
            self._results = [self._result(view) for _, view in _views(value, "result")]

    # -- as nodes ---------------------------------------------------------------------------------

    def _at(self, view: View) -> _Tensor:
        return self._tensors[id(view.storage)]

    def _operand(self, value: Any) -> Any:
        return self._access(value) if isinstance(value, View) else plain_number(value)

    def _access(self, view: View) -> Access:
        tensor = self._at(view)
        buffer = tensor.buffer
        if tensor.is_constant:
            raise UnsupportedError(
                "a constant tensor in a program",
                got=repr(view),
                hint="pass it to the kernel as an argument",
            )
        dtype = None if view.spec.dtype is buffer.dtype else view.spec.dtype
        indirect = None
        if view.dynamic is not None:
            moved = view.spec.indirect
            assert moved is not None
            indirect = Indirect(moved.kind, self._access(view.dynamic.index), moved.dim)
        offset = Affine(view.offset)
        made = Access(buffer.name, offset, view.shape, view.strides, dtype, indirect)
        return canonical(made, buffer)

    def _result(self, view: View) -> Buffer:
        buffer = self._at(view).buffer
        if view.shape != buffer.shape or view.spec.dtype is not buffer.dtype:
            raise UnsupportedError(
                "the kernel returns a part of a tensor",
                expected="whole tensors",
                got=repr(view),
                hint="copy the part into a tensor of its own",
            )
        return buffer

    def names(self) -> dict[str, str]:
        """Buffer → what the source calls it."""
        return {t.buffer.name: t.hint or "tile" for t in self._all}

    def program(self) -> Program:
        """What happened, one statement after the other; tensors that nobody touches are left out.

        An accumulation group that begins with its PSUM tensor is written with accumulate=None.
        """
        body = list(self._body)
        for tensor in self._all:
            if all(m.starts_or_continues for m in tensor.matmuls):
                for m in tensor.matmuls:
                    body[m.at] = _defaulted(body[m.at])
        results = tuple(b.name for b in self._results or ())
        used = {a.buffer for statement in body for a in accesses(statement)} | set(results)
        kept = [s for s in body if isinstance(s, Call) or s.buffer.name in used]
        return Program(
            getattr(self.kernel, "__name__", "kernel"),
            tuple(self._parameters),
            tuple(kept),
            results,
            self.core.target.name if self.core else "trn2",
            self._nki or "0.6",
        )


def _as_if_executed(event: Event) -> None:
    """What executing leaves behind beside values: memory that counts as written."""
    for name in event.call.record.outputs:
        view = event.views.get(name)
        if isinstance(view, View):
            view.claim()
            if "accumulate" in event.call.attrs:
                mark_written(view)


def _defaulted(statement: Allocate | Call) -> Call:
    assert isinstance(statement, Call)
    return replace(statement, attrs={**statement.attrs, "accumulate": None})


def _holds_zeros(dst: View, written: np.ndarray | bool, place: Place | None) -> None:
    """0.1 adds a matmul to what PSUM holds; only zeros can be said with an accumulation group."""
    unwritten = np.broadcast_to(np.logical_not(written), dst.shape)
    if not dst.storage.fresh and not np.any(dst.array[unwritten]):
        return
    raise UnsupportedError(
        "a matmul is added to PSUM content that is not zero and no matmul has written",
        hint="add the product to it with an instruction of the vector engine",
        instruction="nc_matmul",
        place=place,
    )
