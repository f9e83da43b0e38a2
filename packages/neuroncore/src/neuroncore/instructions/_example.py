"""Turns what an example or a broken limit writes into operands on a core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroncore.core import NeuronCore
from neuroncore.engines import Space
from neuroncore.instructions._execute import plan
from neuroncore.instructions._record import Call, Example, Instruction
from neuroncore.memory import View
from neuroncore.options import Options
from neuroncore.spec import Spec, row_major
from neuroncore.spec_text import parse_spec
from nki_dtypes import cast, resolve

_SETTINGS = ("target", "version", "options")


@dataclass(frozen=True, slots=True)
class Use:
    """One use of an instruction: the call and the operands to execute it on."""

    call: Call
    operands: Mapping[str, Any]

    def run(self) -> None:
        """Check and execute; raises what is wrong with the call."""
        plan(self.call)(*self.operands.values())


def example_call(record: Instruction, example: Example, **changes: Any) -> Use:
    """`example` of `record` with some fields replaced.

    Fields are operands (spec text for a tile of undefined content; an array for float32 in SBUF;
    `("hbm", array)` for another memory and `("sbuf uint8", array)` for another dtype too; a
    function of the core that makes the view; a number; None), attributes as a kernel writes them,
    and `target` (trn2), `version` ((0, 6)) and `options`.
    """
    given = {**example.given, **changes}
    target, version, options = (given.pop(name, None) for name in _SETTINGS)
    core = NeuronCore(target or "trn2", options or Options())
    operands = {f: make_operand(core, given.pop(f, None)) for f in record.operands}
    attrs = record.attributes({f: given.pop(f) for f in record.attrs if f in given})
    assert not given, f"{record.name} has no {', '.join(given)}"
    specs = {f: v.spec if isinstance(v, View) else _kind(v) for f, v in operands.items()}
    return Use(Call(record, specs, attrs, core.target, core.options, version or (0, 6)), operands)


def make_operand(core: NeuronCore, given: Any) -> Any:
    """An operand on `core`, as `example_call` describes; its memory is settled."""
    if isinstance(given, str):
        return make_view(core, parse_spec(given))
    if isinstance(given, tuple):
        space, _, dtype = given[0].partition(" ")
        return _filled(core, Space[space], given[1], dtype or "float32")
    if isinstance(given, np.ndarray):
        return _filled(core, Space.sbuf, given)
    return given(core) if callable(given) else given


def gathering(source: str, index: str, rows: int) -> Callable[[Any], View]:
    """`rows` rows of `source` (spec text, 2-D), named by an index tile (spec text)."""
    return _rows(source, index, rows, "vector_offset", f", named by {index}")


def moving(source: str, index: str, rows: int) -> Callable[[Any], View]:
    """`rows` rows of `source` (spec text, 2-D) from one that an index tile (spec text) names."""
    return _rows(source, index, rows, "scalar_offset", f" from {index} on")


def _rows(source: str, index: str, rows: int, offset: str, which: str) -> Callable[[Any], View]:
    def make(core: Any) -> View:
        base, at = make_operand(core, source), make_operand(core, index)
        width = base.shape[1]
        return base.ap([[width, rows], [1, width]], **{offset: at})

    make.__doc__ = f"{rows} rows of {source}{which}"
    return make


def make_view(core: NeuronCore, spec: Spec) -> View:
    """A new tensor that looks like `spec`; a limit may be broken by it, so nothing is checked."""
    storage = core.stored_as(spec.dtype)
    dense = spec.strides == row_major(spec.shape)
    row = spec.strides[0] if spec.space.on_chip else 0
    shape = spec.shape if dense else (spec.shape[0], row) if row else (_reach(spec),)
    first = spec.start if spec.space.on_chip else 0
    array = np.zeros((shape[0] + first, *shape[1:]), storage)
    whole = core.adopt(array, spec.space, spec.mutable, dtype=spec.dtype)
    whole.storage.poison(zero=core.options.uninitialized == "zero")
    view = whole.derive(whole.array[first:], spec.start)
    if dense:
        return view
    return view.ap([list(p) for p in zip(spec.strides, spec.shape, strict=True)])


def _reach(spec: Spec) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True))


def _filled(core: NeuronCore, space: Space, array: np.ndarray, dtype: str = "float32") -> View:
    kind = resolve(dtype)
    exact = array.astype(kind.storage) if kind.is_integer else cast(np.float32(array), kind)
    stored = np.ascontiguousarray(exact, core.stored_as(kind))
    return core.adopt(stored, space, dtype=kind)


def _kind(value: Any) -> type | None:
    return None if value is None else type(value)
