"""`device`: constructs that this machine runs and a device rejects or computes differently.

- every documented limit of the record, with nothing that is only a warning here: start partitions
  above all;
- the access pattern of operands in SBUF and PSUM, in hardware's own terms;
- the values that reach an activation table, against its documented range;
- functions of a language that documents say a device does not run;
- in 0.2, the names of tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from neuroncore.activations import Activation
from neuroncore.checks._check import Check
from neuroncore.checks.report import Report
from neuroncore.checks.tensor_labels import described, merged_dims, tensors_in
from neuroncore.enums import Engine, MemorySpace
from neuroncore.errors import AccessError, Violation
from neuroncore.findings import Certainty, Finding, Severity
from neuroncore.instructions import Call, TableInput
from neuroncore.instructions import check as violations
from neuroncore.machine.launch import RUNNING
from neuroncore.machine.observe import Event, Watcher
from neuroncore.memory import Storage, View
from neuroncore.options import Options
from neuroncore.source_location import Place
from neuroncore.spec import Spec

FREE_DIMS = 4  # NKI architecture guide: access patterns; the partition dimension is apart
MOST_IN_DIM = (1 << 16) - 1  # uint16 sizes
FARTHEST_STEP = (1 << 15) - 1  # int16 strides, in elements
VIEW_DIMS = 5  # NKI: NkiTensor views
PATTERN = "NKI architecture guide: access patterns of the engines"
RANGE = "NKI: supported activation functions, valid input range"


class Device(Watcher):
    """Checks every call once, and the input of activation tables every time."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._known: dict[Call, list[tuple[str, Violation]]] = {}
        self._names = Names()
        self._is_0_2 = False

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._names = Names()

    def allocated(self, storage: Storage) -> None:
        self._names.made(storage)

    def ended(self, value: Any) -> None:
        if self._is_0_2:
            self._names.ended(tensors_in(value), self.report)

    def will(self, event: Event) -> None:
        call = event.call
        self._is_0_2 = call.version == (0, 2)
        found = self._known.get(call)
        if found is None:
            found = self._known[call] = [*_limits(call), *_patterns(call)]
        for code, wrong in found:
            self.report.add(wrong.finding("device", event.place, call.record.name, code))
        if call.record.table_input is not None and np.isfinite(call.op.valid).any():
            self._range(event, call.record.table_input, call.op)

    def unsupported(self, function: str, why: Violation, place: Place | None, sure: bool) -> None:
        found = why.finding("device", place, function, "function")
        if not sure:
            assumed = Severity.WARNING, Certainty.ASSUMED
            found = replace(found, code="assumption", severity=assumed[0], certainty=assumed[1])
        self.report.add(found)

    def _range(self, event: Event, table_input: TableInput, function: Activation) -> None:
        outputs = event.call.record.outputs
        inputs = [view for name, view in event.views.items() if name not in outputs]
        if any(isinstance(v, View) and v.storage.fresh for v in inputs):
            return  # nothing was written: the memory check says so
        x = table_input(event.call, event.views)
        seen = x if event.mask is None else x[event.mask.reshape(x.shape)]
        size = np.abs(seen) if function.valid_of_magnitude else seen
        low, high = function.valid
        outside = seen[(size < low) | (size > high)]  # NaN comes from elsewhere and stays NaN
        if not outside.size:
            return
        found = Finding(
            "device", f"{function.name} outside its valid range", event.place, code="range",
            instruction=event.call.record.name, operand="data",
        )  # fmt: skip
        if self.report.again(found):
            return
        x_name = "|x|" if function.valid_of_magnitude else "x"
        self.report.add(
            replace(
                found,
                message=f"{function.name} of {outside.size:,} of {seen.size:,} elements outside "
                "its valid range",
                expected=f"{x_name} in [{low:g}, {high:g}], x being "
                + ("data * scale + bias" if "scale" in event.views else "op1(op0(data))"),
                got=f"outside: {outside.min():g} to {outside.max():g}; "
                f"all: {np.nanmin(seen):g} to {np.nanmax(seen):g}",
                cure="a device gives garbage there: clamp or shift the input first",
                source=RANGE,
            )
        )


def _limits(call: Call) -> Iterator[tuple[str, Violation]]:
    """Violations that the record itself reports, under strict options; options set
    to "ignore" stay so.
    """
    options = replace(call.options, start_partition="error", **_overridden(call.options))
    strict = Call(call.record, call.specs, call.attrs, call.target, options, call.version)
    for violation in violations(strict):
        yield violation.error.__name__.removesuffix("Error").lower(), violation


def _overridden(options: Options) -> dict[str, Any]:
    names = ("transpose_dge_none", "column_tiling")
    return {name: "error" for name in names if getattr(options, name) != "ignore"}


def _patterns(call: Call) -> Iterator[tuple[str, Violation]]:
    for name, spec in call.tiles.items():
        if spec.rank > VIEW_DIMS and call.version >= (0, 2):
            yield "rank", _pattern(
                name, spec, f"{name} is a view of {spec.rank} dimensions",
                f"at most {VIEW_DIMS}", "NKI: NkiTensor views",
            )  # fmt: skip
        if spec.space.on_chip and call.engine is not Engine.dma:
            yield from _hardware_pattern(name, spec)


def _hardware_pattern(name: str, spec: Spec) -> Iterator[tuple[str, Violation]]:
    dims = merged_dims(spec)
    needed = sum(2 if size > MOST_IN_DIM else 1 for size, _ in dims)
    if needed > FREE_DIMS:
        yield "dimensions", _pattern(
            name, spec, f"{name} takes {needed} free dimensions to address",
            f"at most {FREE_DIMS} [stride, count] pairs per partition of at most {MOST_IN_DIM}",
        )  # fmt: skip
    far = [step for _, step in dims if abs(step) > FARTHEST_STEP]
    if far:
        yield "stride", _pattern(
            name, spec, f"{name} steps {far[0]} elements at once",
            f"strides of at most {FARTHEST_STEP} elements",
        )  # fmt: skip


def _pattern(name: str, spec: Spec, what: str, expected: str, rule: str = PATTERN) -> Violation:
    pairs: list[Any] = [[s, n] for s, n in zip(spec.strides, spec.shape, strict=True)]
    return Violation(
        AccessError, what, name, expected=expected,
        got=f"shape {spec!r}, [stride, count] {pairs}",
        hint="copy it to a dense tile by DMA first, or take it in parts", rule=rule,
    )  # fmt: skip


RULE = "NKI 0.2: tensors, names are unique per core and required in shared HBM"


class Names:
    """Follows the names of a launch's tensors; says at its end what 0.2 does not take."""

    def __init__(self) -> None:
        self._named: dict[tuple[object, str], Storage] = {}
        self._found: list[Finding] = []
        self._unnamed: dict[int, Storage] = {}

    def made(self, storage: Storage) -> None:
        """A tensor of the kernel."""
        launch = RUNNING.get()
        if launch is None or not storage.fresh or storage.constant:
            return
        if not storage.name:
            if storage.space is MemorySpace.shared_hbm:
                self._unnamed[id(storage)] = storage
            return
        first = self._named.setdefault((launch.program, storage.name), storage)
        if first.place != storage.place:
            what = f"a second tensor is called {storage.name!r}"
            self._found.append(_finding(what, "another name", storage, first))

    def ended(self, results: Iterable[View], report: Report) -> None:
        """All programs have run; `results` need no name."""
        returned = {id(view.storage): view.storage for view in results}
        named: dict[str, Storage] = {}
        for storage in returned.values():
            first = named.setdefault(storage.name, storage)
            if storage.name and first is not storage and first.place == storage.place:
                what = f"a second result is called {storage.name!r}"
                self._found.append(_finding(what, "another name", storage, first))
        for number, storage in self._unnamed.items():
            if number not in returned:
                what = "a tensor in shared HBM that is not a result has no name"
                self._found.append(_finding(what, "name=", storage, None))
        for finding in self._found:
            report.add(finding)


def _finding(what: str, expected: str, storage: Storage, first: Storage | None) -> Finding:
    notes = () if first is None else (f"the first is made at {first.place}",)
    return Finding(
        "device", what, storage.place, expected=expected, got=described(storage),
        cure="give it a name of its own: nl.ndarray(…, name=…)", source=RULE, code="name",
        notes=notes,
    )  # fmt: skip


CHECK = Check("device", "every instruction keeps to what a device accepts and defines", Device)
