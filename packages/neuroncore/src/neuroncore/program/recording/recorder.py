"""Watches a kernel run and gives its allocations and instructions as a program."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import UnsupportedError
from neuroncore.instructions._accumulate import mark_written, written_part
from neuroncore.machine.kernels import name_of
from neuroncore.machine.launch import running, tensors_by_name, tensors_in
from neuroncore.machine.observe import Event, Watcher
from neuroncore.memory import Core, Storage, StridedView, View
from neuroncore.options import Options
from neuroncore.program.ir.naming import assigned_name, named_like_source, unused
from neuroncore.program.ir.nodes import plain_number
from neuroncore.program.ir.program import Program
from neuroncore.program.loop_rerolling.reroll import loops_in
from neuroncore.program.loop_rerolling.statement_kinds import number_look
from neuroncore.program.recording.trace import (
    Layout,
    RecordedCall,
    RecordedTensor,
    RecordedView,
    RunColumns,
)
from neuroncore.source_location import Place, find_place
from neuroncore.spec import Spec, row_major
from nki_dtypes import cast

BETA1 = (0, 1)
OFFSETS_KEPT = 1 << 16


class Recorder(Watcher):
    """Receives what one launch does; `program` gives it as statements.

    While the kernel runs, only numbers are written down; statements are made of them at the end.
    `kernel` None is the one that is launched. `for_time`: what memory holds does not matter, but
    data that a language moved without an instruction does, because the program is not compared
    with the run. Without `needs_values`, which is for time only, nothing needs to be executed.
    """

    def __init__(
        self, kernel: Callable[..., Any] | None = None, for_time: bool = False,
        needs_values: bool = True,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.for_time = for_time
        self.needs_values = needs_values
        self.timed_alone: UnsupportedError | None = None
        """Why the program has the time of this run, and is not what the kernel does in all runs."""
        self._unsupported: UnsupportedError | None = None
        self.core: Core | None = None
        self._version: tuple[int, int] | None = None
        self._columns = RunColumns(for_time)
        self._tensors: dict[int, RecordedTensor] = {}
        """By id of the storage; a storage that dies is replaced by the next with its id."""
        self._forms: dict[tuple[int, int, str | None], _Form] = {}
        self._looks: dict[Hashable, int] = {}
        self._makers: dict[tuple[int, int], int] = {}
        """The model of what makes tensors, by their look and the id of the place."""
        self._layouts: dict[tuple[Any, ...], Layout] = {}
        self._dense: dict[Spec, bool] = {}
        self._offsets: dict[int, tuple[np.ndarray, int]] = {}
        """By id of an array: itself, and where it begins in its tensor. Only where nothing is
        executed: tensors that look alike share arrays there, and their memory need not be freed."""
        self._constants: dict[tuple[Any, ...], RecordedTensor] = {}
        self._registers: set[int] = set()
        """The ids of their storages."""
        self._parameters: list[RecordedTensor] = []
        self._returned = False

    @property
    def options(self) -> Options | None:
        """The options that the kernel ran under."""
        return self.core.options if self.core else None

    # -- what happens -----------------------------------------------------------------------------

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if self._returned or self._parameters:
            raise UnsupportedError("capture of more than one launch")
        kernel: Any = self.kernel or running("a recorder").body
        self.kernel = kernel
        for name, view in tensors_by_name(kernel, args, kwargs):
            tensor = self._tensors[id(view.storage)]
            tensor.is_gathered = False
            taken = {t.parameter for t in self._parameters if t.parameter}
            tensor.parameter = unused(re.sub(r"\W", "_", name), taken, "x")
            tensor.look = self._look(("parameter", tensor.parameter))
            self._parameters.append(tensor)
            self.core = view.core

    def allocated(self, storage: Storage) -> None:
        shape, dtype, space, address = storage.shape, storage.dtype, storage.space, storage.address
        columns, place = self._columns, storage.place
        number = len(columns.tensors)
        self._registers.discard(id(storage))
        fresh = storage.fresh
        key = shape, id(dtype), id(space), address
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = Layout(shape, dtype, space, address)
        look = self._look(id(layout) if fresh else ("tensor", number))
        tensor = self._tensors[id(storage)] = RecordedTensor(
            number, layout, look, storage.flat.nbytes, storage.name, place,
            not (fresh or storage.constant), number,
        )  # fmt: skip
        columns.tensors.append(tensor)
        if storage.constant:
            self._note_constant(tensor, storage)
        if fresh:
            model = self._makers.get((look, id(place)))
            if model is None:
                model = self._makers[look, id(place)] = columns.model(tensor)
            columns.made.append((len(columns.rows), number))
            columns.rows.append(model)

    def register(self, cell: View) -> None:
        self._registers.add(id(cell.storage))

    def number_read(self, cell: View) -> None:
        if self.timed_alone is not None:
            return
        self._reject(
            "a number that the device computes is used as one of the kernel", find_place(), True,
            expected="compile-time ints; a loaded scalar as scalar_offset or in scalar_store",
            got=repr(cell), hint="compute with tensors; give the loop a known bound",
        )  # fmt: skip

    def _set(self, cell: View, src: View | None) -> None:
        """A register holds a compile-time number from now on: it is the constant of that number."""
        if src is not None:  # another register, or the variable of a loop
            held = self._tensors[id(src.storage)].elements
            if held is None:
                self.number_read(src)
        else:
            held = np.array(cell.array, cell.spec.storage)
        if held is None:
            return  # never set: reads of it are reads of its own memory, which nothing writes
        key = (cell.shape, cell.dtype, held.tobytes())
        known = self._constants.get(key)
        if known is None:
            number, tensors = len(self._columns.tensors), self._columns.tensors
            known = self._constants[key] = RecordedTensor(
                number, Layout(cell.shape, cell.dtype, MemorySpace.shared_hbm, None),
                self._look(("tensor", number)), held.nbytes, cell.name, cell.storage.place, False,
                number, held,
            )  # fmt: skip
            tensors.append(known)
        self._tensors[id(cell.storage)] = known

    def _look(self, looks: Hashable) -> int:
        return self._looks.setdefault(looks, len(self._looks))

    def _note_constant(self, tensor: RecordedTensor, storage: Storage) -> None:
        held, dtype = storage.flat, storage.dtype
        elements = held if held.dtype == dtype.storage else cast(held, dtype)
        key = (storage.shape, dtype, elements.tobytes())
        same = self._constants.setdefault(key, tensor)
        if same is tensor:
            tensor.elements = elements
        tensor.which, tensor.look = same.number, same.look

    def will(self, event: Event) -> None:
        attrs = event.call.attrs
        if "accumulate" not in attrs or attrs.get("is_transpose"):
            return
        dst = event.views["dst"]
        written, asked = written_part(dst), attrs["accumulate"]
        same = asked is None or asked is written
        if asked and written is not True and _adds_anyway(event):
            if not self.for_time:
                _holds_zeros(dst, written, event.place)
            same = True  # 0 + x: as if it had been written
        columns = self._columns
        columns.matmuls.append((len(columns.rows), self._tensors[id(dst.storage)].number, same))

    def did(self, event: Event) -> None:
        call, views, place, name, _ = event
        key = (id(call), id(place), name)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = _Form(event)
            self._reject_unsupported_event(event)
        note = self._note
        looks = tuple([note(views[operand]) for operand in form.tiles])
        if form.numbers:
            looks += tuple([number_look(plain_number(views[n])) for n in form.numbers])
        model = form.models.get(looks)
        if model is None:
            model = form.models[looks] = self._columns.model(self._call(event))
        self._columns.rows.append(model)
        if form.is_old or self.core is None:
            self._first_touch(event)
        if not self.needs_values:
            form.count_as_written(views)

    def _reject_unsupported_event(self, event: Event) -> None:
        """A program holds for any content of its tensors, and has no indices of free elements."""
        call = event.call
        if call.record.name == "register_load":
            self._reject(
                "a register is loaded from a tensor, which no program says", event.place, True,
                expected="registers that hold compile-time ints, or none",
                hint="scalar_offset also takes a (1, 1) tensor; write a loop with a known bound",
            )  # fmt: skip
        picked = [n for n, s in call.tiles.items() if s.indirect and s.indirect.kind == "free"]
        if picked:
            self._reject(
                "tensor indirection, which no program says", event.place, got=f"{picked[0]}="
                f"{event.views[picked[0]]!r}", hint="checks and dumps see such a kernel; for its "
                "program and its time leave the access out",
            )  # fmt: skip

    def _reject(self, what: str, place: Place | None, has_time: bool = False, **more: Any) -> None:
        reason = UnsupportedError(what, place=place, **more)
        if has_time and self.for_time:
            self.timed_alone = self.timed_alone or reason
            return
        self._unsupported = self._unsupported or reason
        if not self.needs_values:
            raise self._unsupported  # what follows may need values, and nothing comes of it

    def _note(self, view: StridedView) -> Hashable:
        """Write down an access, after its index; its model."""
        tensor = self._tensors[id(view.storage)]
        look: Hashable = tensor.look
        if view.dynamic is not None:
            look = look, self._note(view.dynamic.index)
        columns = self._columns
        columns.buffers.append(tensor.which)
        array = view.array
        if self.needs_values:
            spec = view.spec
            dense = self._dense.get(spec)
            if dense is None:
                dense = self._dense[spec] = spec.strides == row_major(spec.shape)
            whole = dense and array.nbytes == tensor.num_bytes
            columns.offsets.append(0 if whole else tensor.offset(array, view.storage.flat))
            return look
        known = self._offsets.get(id(array))
        if known is None:
            offset = tensor.offset(array, view.storage.flat)
            if len(self._offsets) >= OFFSETS_KEPT:
                self._offsets.clear()
            known = self._offsets[id(array)] = array, offset
        columns.offsets.append(known[1])
        return look

    def _call(self, event: Event) -> RecordedCall:
        if self._version is None:
            self._version = event.call.version
        operands = [
            self._view(value) if isinstance(value, View) else plain_number(value)
            for value in event.views.values()
        ]
        return RecordedCall(event.call, tuple(event.views), operands, event.name, event.place)

    def _view(self, view: StridedView) -> RecordedView:
        index = None if view.dynamic is None else self._view(view.dynamic.index)
        return RecordedView(self._tensors[id(view.storage)], view.spec, index)

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
        if id(dst.storage) in self._registers:
            self._set(dst, src)
        elif self.for_time and self._unsupported is None:
            self._unsupported = UnsupportedError(
                "data is moved without an instruction, which no program says",
                got=f"{dst!r} is filled from {'a constant' if src is None else repr(src)}",
                hint="write HBM with nisa.dma_copy; where a mask is not a rectangle, compute the "
                "whole tile and choose with nisa.affine_select or nl.where",
            )

    def told(self, consumer: Place | None, producers: Sequence[Place | None]) -> None:
        if producers:
            self._reject(
                "an edge of depends_on or with_schedule, which no program says", consumer, True,
                got=f"it waits for {', '.join(map(str, producers))}",
                hint="checks and estimates know the kernel; for a program or a plan leave it out",
            )  # fmt: skip

    def received(self, dst: View, src: View) -> None:
        self._needs_both_cores("cores exchange data", f"nisa.sendrecv into {dst!r}")

    def arrived(self, data: View) -> None:
        self._needs_both_cores("cores wait for each other", f"nisa.core_barrier of {data!r}")

    def _needs_both_cores(self, what: str, got: str) -> None:
        self._unsupported = self._unsupported or UnsupportedError(
            f"{what}, and a program is what one core does", got=got,
            hint="capture or estimate the kernel on one core",
        )  # fmt: skip

    def returned(self, value: Any) -> None:
        if not self._returned:
            self._returned = True
            self._columns.results += [self._result(view) for _, view in tensors_in(value, "result")]

    def _result(self, view: View) -> RecordedTensor:
        tensor = self._tensors[id(view.storage)]
        is_whole = view.shape == tensor.layout.shape and view.spec.dtype is tensor.layout.dtype
        if not (is_whole or self.for_time):
            raise UnsupportedError(
                "the kernel returns a part of a tensor", expected="whole tensors", got=repr(view),
                hint="copy the part into a tensor of its own",
            )  # fmt: skip
        return tensor

    # -- as nodes ---------------------------------------------------------------------------------

    def program(self, rolled: bool = True) -> Program:
        """The recorded program, named like the source; tensors without an access are omitted.

        `rolled`: with the loops that are found. An accumulation group that begins with its PSUM
        tensor is written with accumulate=None. Raises UnsupportedError for what no program says.
        """
        if self._unsupported is not None:
            raise self._unsupported
        rows, forms, pinned = self._columns.as_rows()
        self.timed_alone = self.timed_alone or self._columns.timed_alone
        program = Program(
            name_of(self.kernel),
            tuple(forms.buffers[t.number] for t in self._parameters),
            loops_in(rows, forms, pinned) if rolled else forms.nodes(rows),
            tuple(forms.buffers[t.which].name for t in self._columns.results),
            self.core.target.name if self.core else "trn2",
            ".".join(map(str, self._version or (0, 6))),
        )
        named = lru_cache(maxsize=None)(assigned_name)
        tensors = self._columns.tensors
        made = ((buffer.name, tensors[number]) for number, buffer in forms.buffers.items())
        names = {
            n: named(t.touched_at) or t.given_name or named(t.made_at) or "tile" for n, t in made
        }
        return named_like_source(program, names)


class _Form:
    """The common parts of calls of one kind from one place."""

    __slots__ = ("_kept", "is_old", "models", "numbers", "outputs", "sums", "tiles")

    def __init__(self, event: Event) -> None:
        self._kept = event.call, event.place  # so that their ids remain their own
        views = event.views
        self.tiles = [n for n, value in views.items() if isinstance(value, View)]
        self.numbers = [n for n, v in views.items() if v is not None and n not in self.tiles]
        self.outputs = [n for n in event.call.record.outputs if n in self.tiles]
        self.sums = "accumulate" in event.call.attrs
        self.is_old = event.call.version == BETA1
        self.models: dict[tuple[Hashable, ...], int] = {}
        """By what its operands look like."""

    def count_as_written(self, views: Mapping[str, Any]) -> None:
        """Mark the memory of the results of a call that was not executed."""
        for output in self.outputs:
            views[output].claim()
            if self.sums:
                mark_written(views[output])


def _adds_anyway(event: Event) -> bool:
    return event.call.options.accumulate_on_unwritten == "add"


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
        instruction="nc_matmul", place=place,
    )  # fmt: skip
