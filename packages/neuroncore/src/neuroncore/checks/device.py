"""`device`: what the machine runs here and a device does not, or not with these results.

- every documented limit of the record, with nothing that is only a warning here: start partitions
  above all;
- the access pattern of operands in SBUF and PSUM, in hardware's own terms;
- the values that reach an activation table, against its documented range;
- functions of a language that documents say a device does not run;
- in 0.2, the names of tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from neuroncore._caret import Place
from neuroncore.activations import Activation
from neuroncore.checks._names import Names
from neuroncore.checks._tensors import tensors_in
from neuroncore.checks.findings import Finding, Report, from_violation
from neuroncore.engines import Engine
from neuroncore.errors import AccessError, Violation
from neuroncore.instructions import Call, TableInput
from neuroncore.instructions import check as violations
from neuroncore.memory import Storage, View
from neuroncore.observe import Event, Watcher
from neuroncore.options import Options
from neuroncore.spec import Spec

FREE_DIMS = 4  # NKI architecture guide: access patterns; the partition dimension is apart
MOST_IN_DIM = (1 << 16) - 1  # uint16 sizes
FARTHEST_STEP = (1 << 15) - 1  # int16 strides, in elements
VIEW_DIMS = 5  # NKI: NkiTensor views
PATTERN = "NKI architecture guide: access patterns of the engines"
RANGE = "NKI: supported activation functions, valid input range"


class Device(Watcher):
    """Looks at every call once, and at the input of activation tables every time."""

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
            self.report.add(from_violation("device", wrong, event.place, call.record.name, code))
        if call.record.table_input is not None and np.isfinite(call.op.valid).any():
            self._range(event, call.record.table_input, call.op)

    def unsupported(self, function: str, why: Violation, place: Place | None, sure: bool) -> None:
        found = from_violation("device", why, place, function, "function")
        self.report.add(found if sure else replace(found, code="doubt", severity="warning"))

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
                hint="a device gives garbage there: clamp or shift the input first",
                rule=RANGE,
            )
        )


def _limits(call: Call) -> Iterator[tuple[str, Violation]]:
    """What the record itself says, where nothing is let pass; doubts that a program's options
    settle ("ignore") are none.
    """
    options = replace(call.options, start_partition="error", **_doubts(call.options))
    strict = Call(call.record, call.specs, call.attrs, call.target, options, call.version)
    for violation in violations(strict):
        yield violation.error.__name__.removesuffix("Error").lower(), violation


def _doubts(options: Options) -> dict[str, Any]:
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
    dims = _merged(spec)
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


def _merged(spec: Spec) -> list[tuple[int, int]]:
    """(size, stride) of the free dimensions, those that run on into one another as one."""
    dims: list[tuple[int, int]] = []
    for size, stride in zip(spec.shape[1:], spec.strides[1:], strict=True):
        if size == 1:
            continue
        if dims and dims[-1][1] == size * stride:
            dims[-1] = dims[-1][0] * size, stride
        else:
            dims.append((size, stride))
    return dims


def _pattern(name: str, spec: Spec, what: str, expected: str, rule: str = PATTERN) -> Violation:
    pairs: list[Any] = [[s, n] for s, n in zip(spec.strides, spec.shape, strict=True)]
    return Violation(
        AccessError, what, name, expected=expected,
        got=f"shape {spec!r}, [stride, count] {pairs}",
        hint="copy it to a dense tile by DMA first, or take it in parts", rule=rule,
    )  # fmt: skip
