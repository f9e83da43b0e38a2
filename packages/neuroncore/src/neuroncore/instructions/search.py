"""nc_find_index8 and nc_match_replace8: where eight values occur in each partition.

data (P, F), flattened in row-major order; vals, dst_idx (P, 8). Values are compared in float32; a
place that one value has matched is not matched again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, MemorySpace
from neuroncore.errors import ShapeError
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import like, reader, writer
from neuroncore.instructions._record import Call, Example, In, Instruction, Limit, Number, Out
from neuroncore.instructions._rules import each, rule, same_free, same_partitions
from neuroncore.memory import View
from neuroncore.spec import Spec
from nki_dtypes import uint16, uint32

_INDEX = frozenset({uint16, uint32})
MISSING = -1


def find_places(rows: np.ndarray, vals: np.ndarray, order: Iterable[int]) -> np.ndarray:
    """(P, 8) places of the values of `vals` in `rows` (P, F, overwritten), MISSING where none is.

    Columns are taken in `order`; each takes the first place that is left. NaN matches nothing.
    """
    lines = np.arange(len(rows))
    places = np.full(vals.shape, MISSING, np.int64)
    for column in order:
        matches = rows == vals[:, column, None]
        first = matches.argmax(1)
        found = matches[lines, first]
        places[found, column] = first[found]
        rows[lines[found], first[found]] = np.nan  # taken
    return places


def _indices(c: Call, spec: Spec) -> Callable[[View, np.ndarray], None]:
    """Stores places; a missing one is all ones, or 0 (Options.missing_index)."""
    zero, kind, shape = c.options.missing_index == "zero", spec.storage.type, spec.shape

    def store(view: View, places: np.ndarray) -> None:
        stored = np.maximum(places, 0) if zero else places
        view.array[...] = stored.astype(kind).reshape(shape)  # -1 wraps to all ones

    return store


def _own_copy(c: Call) -> Callable[[View], np.ndarray]:
    read = reader(c.data, (c.data.partitions, c.data.free))
    return lambda view: read(view).copy()


def _eight(*names: str, **breaks: Any) -> Limit:
    """The named operands have 8 elements per partition and the partitions of data."""
    return each(
        names, lambda c, spec: (spec.partitions, spec.free) == (c.data.partitions, 8), ShapeError,
        "{name} is not 8 values per partition", expected="({c.data.partitions}, 8)", **breaks,
    )  # fmt: skip


def _free_between(least: int, **breaks: Any) -> Limit:
    return rule(
        lambda c: least <= c.data.free <= c.target.search_free_max,
        ShapeError, "data", "data has {c.data.free} elements per partition",
        expected=f"{least} to {{c.target.search_free_max}}", section="tile size", **breaks,
    )  # fmt: skip


_DATA = np.array([[1.0, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]])
_VALS = np.array([[3.0, 8, 8, 8, 8, 8, 8, 8]])


# -- nc_find_index8 -------------------------------------------------------------------------------


def nc_find_index8(c: Call) -> Callable[..., None]:
    """dst[p, j] = first place in row p of data that holds vals[p, j].

    Equal values take successive places in ascending order of j. A value that does not occur gives
    all ones.
    """
    copy, vals_of, store = _own_copy(c), reader(c.vals, (c.data.partitions, 8)), _indices(c, c.dst)

    def find(dst: View, data: View, vals: View) -> None:
        store(dst, find_places(copy(data), vals_of(vals), range(8)))

    return find


def _most_data(c: Call) -> int:
    """3 dimensions; documents before 0.4 allow data 5."""
    return 3 if c.version >= (0, 4) else 5


_RANK = rule(
    lambda c: c.data.rank <= _most_data(c), ShapeError, "data", "data has {it.rank} dimensions",
    expected=lambda c: f"at most {_most_data(c)}", section="shapes",
    data="float32[1, 2, 3, 4] sbuf",
)  # fmt: skip

NC_FIND_INDEX8 = Instruction(
    name="nc_find_index8",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P 8", ON_CHIP, dtypes=_INDEX),
        "data": In("P F", ON_CHIP),
        "vals": In("P 8", ON_CHIP),
    },
    limits=[
        _eight("dst", "vals", vals="float32[1, 7] sbuf"),
        _free_between(8, data="float32[1, 7] sbuf"),
        _RANK,
        each(
            ["vals"], lambda c, spec: spec.rank <= 3, ShapeError, "{name} has {it.rank} dimensions",
            expected="at most 3", vals="float32[1, 2, 2, 2] sbuf",
        ),
        Limit(_RANK.check, {"data": "float32[1, 1, 1, 2, 3, 4] sbuf", "version": (0, 3)}),
    ],
    work=lambda c: one_pass(c, c.data.free),  # [NKI 0.1 API documents]
    run=nc_find_index8,
    result=lambda c: ((c.data.partitions, 8), uint32, MemorySpace.sbuf),
    mask=MaskBehaviour.rectangular,
    examples=[
        Example({"dst": "uint32[1, 8] sbuf", "data": _DATA, "vals": _VALS},
                {"dst": np.array([[2, 4, 5, 6, 7, 8, 9, 10]])}),
        Example({"dst": "uint16[1, 8] sbuf", "data": _DATA, "vals": np.arange(8.0).reshape(1, 8)},
                {"dst": np.array([[65535, 0, 1, 2, 3, 65535, 65535, 65535]])},
                note="0, 5, 6 and 7 do not occur"),
    ],
)  # fmt: skip


# -- nc_match_replace8 ----------------------------------------------------------------------------


def nc_match_replace8(c: Call) -> Callable[..., None]:
    """dst = data with the first place of each value of vals replaced by imm; dst_idx the places.

    Columns 7 to 0 take places in turn (0.6); up to 0.5 documents go from 0 to 7, which pairs equal
    values with places the other way round.
    """
    shape = (c.data.partitions, c.data.free)
    copy, vals_of, write = _own_copy(c), reader(c.vals, (shape[0], 8)), writer(c.dst)
    order = range(7, -1, -1) if c.version >= (0, 6) else range(8)
    store = _indices(c, c.dst_idx) if c.dst_idx is not None else lambda view, places: None

    def replace(dst: View, data: View, vals: View, imm: float, dst_idx: View | None) -> None:
        rows = copy(data)
        places = find_places(rows.copy(), vals_of(vals), order)
        lines, columns = np.nonzero(places != MISSING)
        rows[lines, places[lines, columns]] = np.float32(imm)
        write(dst, rows)
        store(dst_idx, places)  # type: ignore[arg-type]

    return replace


NC_MATCH_REPLACE8 = Instruction(
    name="nc_match_replace8",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP),
        "data": In("P F", ON_CHIP),
        "vals": In("P 8", ON_CHIP),
        "imm": Number(),
        "dst_idx": Out("P 8", ON_CHIP, optional=True, dtypes=_INDEX),
    },
    limits=[
        same_partitions("dst", "data", dst="float32[2, 11] sbuf"),
        same_free("dst", "data", dst="float32[1, 12] sbuf"),
        _eight("vals", "dst_idx", dst_idx="uint32[1, 7] sbuf"),
        _free_between(1, data="float32[1, 16385] sbuf", dst="float32[1, 16385] sbuf"),
    ],
    work=lambda c: one_pass(c, c.data.free),  # [NKI 0.1 API documents, printed as min(MIN_II, N)]
    run=nc_match_replace8,
    result=like("data"),
    mask=MaskBehaviour.rectangular,
    examples=[
        Example({"dst": "float32[1, 11] sbuf", "data": _DATA, "vals": _VALS, "imm": 0.0,
                 "dst_idx": "uint32[1, 8] sbuf"},
                {"dst": np.array([[1.0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0]]),
                 "dst_idx": np.array([[2, 10, 9, 8, 7, 6, 5, 4]])}),
        Example({"dst": "float32[1, 11] sbuf", "data": _DATA, "vals": _VALS, "imm": -1.0,
                 "dst_idx": "uint32[1, 8] sbuf", "version": (0, 5)},
                {"dst": np.array([[1.0, 2, -1, 4, -1, -1, -1, -1, -1, -1, -1]]),
                 "dst_idx": np.array([[2, 4, 5, 6, 7, 8, 9, 10]])}),
    ],
)  # fmt: skip
