"""widen: the iterations of a loop around one instruction become one wider instruction.

for n in range(4):                                   load(t[:, 0:4, :], x[128*m …, 0:2048])
    load(t[:, n, :], x[128*m …, 512*n …])      →
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from neuroncore.enums import ReduceCmd
from neuroncore.program import Access, Affine, Call, Loop, Program
from nkigym.analysis.accesses import ADD, WRITE, CallAccess
from nkigym.analysis.claims import Claims, StepResult
from nkigym.analysis.disjointness import LATER
from nkigym.analysis.legality import check_legal
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import loop_at, replaced, with_operands
from nkigym.transforms._transform import Transform


@dataclass(frozen=True, slots=True)
class Wide:
    """The operands that grow with the free axes; the others must be the same in every iteration."""

    grow: tuple[str, ...]
    is_reshaping: bool = False
    """Whether elements are paired by their number, also in operands of other shapes."""


WIDE: Mapping[str, Wide] = {
    "dma_copy": Wide(("dst", "src"), is_reshaping=True),
    "tensor_copy": Wide(("dst", "src")),
    "activation": Wide(("dst", "data")),
    "reciprocal": Wide(("dst", "data")),
    "tensor_scalar": Wide(("dst", "data")),
    "tensor_tensor": Wide(("dst", "data1", "data2")),
    "scalar_tensor_tensor": Wide(("dst", "data", "operand1")),
    "memset": Wide(("dst",)),
    "nc_matmul": Wide(("dst", "moving")),
}
"""Instructions of which neighbouring tiles can be one; each element of dst has its own data."""


def _widen(program: Program, step: TransformStep) -> StepResult:
    loop = loop_at(program, step.at)
    call = loop.body[0] if len(loop.body) == 1 else None
    if not isinstance(call, Call):
        raise TransformError(f"loop {loop.variable} contains more than one instruction")
    rule = rule_of(call)
    claims = Claims(program, step.at)
    call_accesses = writing(claims.accesses((call,)))
    claims.require_disjoint(
        call_accesses,
        call_accesses,
        ((loop, LATER),),
        f"iterations of {loop.variable} need an order",
    )
    wide = wider(call, loop, rule)
    inside = {r.variable: range(r.start, r.stop, r.step) for r in claims.around}
    check_legal(wide, inside, claims.reader.buffers, program)
    return claims.result(replaced(program, step.at, (wide,)))


def rule_of(call: Call) -> Wide:
    """Which operands of a call grow. Raises TransformError where tiles of it cannot be one."""
    rule = WIDE.get(call.instruction)
    if rule is None:
        raise TransformError(f"{call.instruction} has no wider form")
    if call.attrs.get("reduce_cmd", ReduceCmd.idle) is not ReduceCmd.idle or (
        call.operands.get("reduce_res") is not None
    ):
        raise TransformError(f"{call.instruction} sums up over each tile")
    return rule


def writing(call_accesses: Iterable[CallAccess]) -> list[CallAccess]:
    """The touches, sums as writes: what one instruction adds to has to lie apart."""
    return [t._replace(kind=WRITE) if t.kind == ADD else t for t in call_accesses]


def wider(call: Call, loop: Loop, rule: Wide) -> Call:
    """The call with a new free dimension for the loop, one with the next where they are dense."""
    grown: dict[str, Access] = {}
    for name, value in call.operands.items():
        if not isinstance(value, Access):
            continue
        move = dict(value.offset.terms).get(loop.variable, 0)
        if name in rule.grow:
            grown[name] = _with_dimension(value, loop, move)
        elif move:
            raise TransformError(f"{name} of {call.instruction} differs from tile to tile")
        if name == "dst" and not move:
            raise TransformError(f"dst of {call.instruction} is the same in every iteration")
    _check_rows(call, rule, grown)
    if all(_is_dense(access) for access in grown.values()):
        grown = {name: _merged(access) for name, access in grown.items()}
    return with_operands(call, {**call.operands, **grown})


def _check_rows(call: Call, rule: Wide, grown: Mapping[str, Access]) -> None:
    """Raise TransformError where a dimension behind the rows pairs other elements."""
    if rule.is_reshaping and len({access.shape[0] for access in grown.values()}) > 1:
        raise TransformError(f"{call.instruction} has other rows in each of its operands")


def _with_dimension(access: Access, loop: Loop, move: int) -> Access:
    if access.indirect is not None:
        raise TransformError(f"an index on the device moves the access to {access.buffer}")
    offset = access.offset.substitute({loop.variable: Affine(loop.start)})
    shape = (access.shape[0], loop.trips, *access.shape[1:])
    strides = (access.strides[0], move * loop.step, *access.strides[1:])
    return Access(access.buffer, offset, shape, strides, access.dtype)


def _is_dense(access: Access) -> bool:
    """Whether dimension 1 continues where dimension 2 ends."""
    return len(access.shape) > 2 and access.strides[1] == access.shape[2] * access.strides[2]


def _merged(access: Access) -> Access:
    """Dimensions 1 and 2 as one."""
    p, t, f, *rest = access.shape
    first, _, *strides = access.strides
    shape = (p, t * f, *rest)
    return Access(access.buffer, access.offset, shape, (first, *strides), access.dtype)


def _widens(program: Program, at: Path, loop: Loop) -> Iterator[TransformStep]:
    if len(loop.body) == 1 and isinstance(loop.body[0], Call) and loop.body[0].instruction in WIDE:
        yield TransformStep("widen", at)


WIDEN = Transform(
    "widen", "a loop around one instruction as one wider instruction", _widens, _widen, rank=10
)
