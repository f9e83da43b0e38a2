"""tensor_copy_predicated and select_reduce: elements chosen by a predicate tile.

src, on_true, predicate, dst (P, F…); on_false: a number or (P, 1); reduce_res (P, 1). Free
dimensions may be split differently as long as F is equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.alu import alu_op
from neuroncore.effects import reads
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, MemorySpace, ReduceCmd
from neuroncore.errors import AttributeValueError, DTypeError
from neuroncore.instructions._accumulators import VECTOR, folding, giving, register_effects
from neuroncore.instructions._convert import flag, member
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import (
    FLOATS,
    choose,
    common_shape,
    lane_value,
    like,
    raw_reader,
    reader,
    writer,
)
from neuroncore.instructions._record import (
    Attr,
    Call,
    Example,
    In,
    Instruction,
    Out,
    operand_effects,
)
from neuroncore.instructions._rules import (
    free_dims,
    not_both_in_psum,
    one_of,
    one_per_partition,
    rule,
    same_free,
    same_partitions,
)
from neuroncore.instructions.memset import constant_in
from neuroncore.memory import View
from neuroncore.spec import Spec
from neuroncore.work import MicroOp
from nki_dtypes import ALL, int8, int16, int32, tfloat32, uint8, uint16, uint32

_TILE = np.arange(8.0).reshape(2, 4)
_CHOSEN = np.array([[1, 0, 0, 1], [0, 2, 0, 0]])


def _chooses(c: Call, shape: tuple[int, ...]) -> Callable[[View], np.ndarray]:
    """Where the predicate selects, as bool."""
    read = raw_reader(c.predicate, shape)
    if c.reverse_pred:
        return lambda view: read(view) == 0
    return lambda view: read(view) != 0


# -- tensor_copy_predicated -----------------------------------------------------------------------


def tensor_copy_predicated(c: Call) -> Callable[..., None]:
    """dst = src where the predicate is not zero (zero with reverse_pred); the rest of dst stays."""
    shape = c.dst.shape
    chooses = _chooses(c, shape)
    if isinstance(c.src, Spec):
        read = raw_reader(c.src, shape)
    else:
        dtype, storage = c.dst.dtype, c.dst.storage

        def read(number: Any) -> np.ndarray:
            return constant_in(number, dtype).astype(storage)

    def copy(dst: View, src: Any, predicate: View) -> None:
        dst.array[...] = choose(chooses(predicate), read(src), dst.array)

    return copy


def _number_of_its_kind(c: Call) -> bool:
    """From 0.7 on a number is a float for floats and an int for integers; its width is any."""
    if c.version < (0, 7) or isinstance(c.src, Spec):
        return True
    return c.dst.dtype.is_float == issubclass(c.src, (float, np.floating))


def _copy_work(c: Call) -> list[MicroOp]:
    """N with one of src and predicate in PSUM, otherwise 2 N [NKI 0.1 API documents]."""
    spaces = [c.tiles[n].space for n in ("src", "predicate") if n in c.tiles]
    return one_pass(c, c.dst.free * (1 if MemorySpace.psum in spaces else 2))


TENSOR_COPY_PREDICATED = Instruction(
    name="tensor_copy_predicated",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP),
        "src": In("P F", ON_CHIP, number=True),
        "predicate": In("P F", ON_CHIP, dtypes=frozenset({uint8, uint16, uint32})),
    },
    attrs={"reverse_pred": Attr(False, flag)},
    limits=[
        same_partitions("dst", "src", "predicate", src="float32[8, 4] sbuf"),
        same_free("dst", "src", "predicate", predicate="uint8[2, 5] sbuf"),
        not_both_in_psum(
            "src", "predicate", src="float32[2, 4] psum", predicate="uint8[2, 4] psum"
        ),
        rule(
            lambda c: not isinstance(c.src, Spec) or c.src.dtype is c.dst.dtype,
            DTypeError, "src", "src is {c.src.dtype}, dst {c.dst.dtype}", expected="{c.dst.dtype}",
            hint="this copy does not convert: use tensor_copy first", section="dtypes",
            src="bfloat16[2, 4] sbuf",
        ),
        free_dims(3, "dst", "src", "predicate", dst="float32[2, 1, 1, 1, 4] sbuf"),
        rule(
            lambda c: c.version < (0, 7) or not c.reverse_pred or not isinstance(c.src, Spec),
            AttributeValueError, "reverse_pred", "reverse_pred with a tile as src",
            expected="a number as src from 0.7 on", hint="copy src to dst, then what dst had where "
            "the predicate is not zero", section="NKI 0.7: {c.record.name}", version=(0, 7),
            reverse_pred=True,
        ),
        rule(
            _number_of_its_kind, DTypeError, "src", "a {c.src.__name__} for {c.dst.dtype} elements",
            expected=lambda c: f"{'a float' if c.dst.dtype.is_float else 'an int'} from 0.7 on",
            got="{c.src.__name__}", section="NKI 0.7: {c.record.name}", version=(0, 7), src=1,
        ),
    ],
    effects=lambda c: reads("dst") + operand_effects(c),
    work=_copy_work,
    run=tensor_copy_predicated,
    result=like("dst"),
    mask=MaskBehaviour.elementwise,
    gathers=("dst", "predicate"),
    covers=lambda c: False,
    chooses=lambda c, views: _chooses(c, c.dst.shape)(views["predicate"]),
    moves_bits=lambda c: isinstance(c.src, Spec),
    examples=[
        Example({"dst": -np.ones((2, 4)), "src": _TILE, "predicate": ("sbuf uint8", _CHOSEN)},
                {"dst": np.array([[0.0, -1, -1, 3], [-1, 5, -1, -1]])}),
        Example({"dst": -np.ones((2, 4)), "src": 7.0, "predicate": ("psum uint16", _CHOSEN),
                 "reverse_pred": True}, {"dst": np.where(_CHOSEN == 0, 7.0, -1.0)}),
    ],
)  # fmt: skip


# -- select_reduce --------------------------------------------------------------------------------


def select_reduce(c: Call) -> Callable[..., None]:
    """dst = on_true where the predicate is not zero, else on_false; VectorE's registers take the
    maximum of the selected values before they are rounded. reduce_cmd idle leaves them undefined.
    """
    shape = common_shape(c.dst, c.on_true, c.predicate)
    chooses, read, write = _chooses(c, shape), reader(c.on_true, shape), writer(c.dst)
    other = lane_value(c.on_false, shape)
    fold, give = folding(c, VECTOR, c.on_true, c.reduce_op), giving(c.reduce_res)

    def select(
        dst: View, predicate: View, on_true: View, on_false: Any, reduce_res: View | None
    ) -> None:
        chosen = choose(chooses(predicate), read(on_true), other(on_false))
        write(dst, chosen)
        give(reduce_res, fold(dst.core, chosen, None))

    return select


_ON_TRUE = frozenset(ALL) - {tfloat32, int32, uint32}

SELECT_REDUCE = Instruction(
    name="select_reduce",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F", ON_CHIP),
        "predicate": In("P F", ON_CHIP, dtypes=frozenset({int8, uint8, int16, uint16})),
        "on_true": In("P F", ON_CHIP, dtypes=_ON_TRUE),
        "on_false": In("P 1", ON_CHIP, number=True),
        "reduce_res": Out("P 1", ON_CHIP, optional=True, dtypes=FLOATS),
    },
    attrs={
        "reduce_cmd": Attr(ReduceCmd.idle, member(ReduceCmd, "reduce_cmd")),
        "reduce_op": Attr("maximum", alu_op),
        "reverse_pred": Attr(False, flag),
    },
    limits=[
        same_partitions("dst", "predicate", "on_true", on_true="float32[8, 4] sbuf"),
        same_free("dst", "predicate", "on_true", predicate="uint8[2, 5] sbuf"),
        one_per_partition("on_true", "on_false", "reduce_res", on_false="float32[2, 4] sbuf"),
        not_both_in_psum(
            "on_true", "predicate", on_true="float32[2, 4] psum", predicate="uint8[2, 4] psum"
        ),
        one_of("reduce_op", "maximum", reduce_op="add"),
        one_of("reduce_cmd", "idle", "reset_reduce", "reduce", reduce_cmd=ReduceCmd.load_reduce),
    ],
    effects=lambda c: operand_effects(c) + register_effects(c, VECTOR),
    # Not in the published table; the same data volume as tensor_copy_predicated in SBUF.
    work=lambda c: one_pass(c, 2 * c.dst.free),
    run=select_reduce,
    result=like("dst"),
    mask=MaskBehaviour.rectangular,
    examples=[
        Example({"dst": "float32[2, 4] sbuf", "predicate": ("sbuf uint8", _CHOSEN),
                 "on_true": _TILE, "on_false": -1.0, "reduce_res": "float32[2, 1] sbuf",
                 "reduce_cmd": ReduceCmd.reset_reduce},
                {"dst": np.where(_CHOSEN != 0, _TILE, -1), "reduce_res": np.array([[3.0], [5.0]])}),
        Example({"dst": "float32[2, 4] sbuf", "predicate": ("sbuf int16", -_CHOSEN),
                 "on_true": _TILE, "on_false": np.array([[10.0], [20.0]]), "reverse_pred": True},
                {"dst": np.where(_CHOSEN == 0, _TILE, [[10.0], [20.0]])}),
    ],
)  # fmt: skip
