"""Rules of operations that the planner and the rewriter of tokens rely on.

The reader accepts every file in which each part can be decoded; here are numbers, kinds and shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from tokenplan.tile_ir.bytecode.control_flow import ENDS, is_left, leaving
from tokenplan.tile_ir.bytecode.errors import BytecodeError
from tokenplan.tile_ir.bytecode.module import Function, Operation, Value
from tokenplan.tile_ir.bytecode.types import DYNAMIC, ITEM_BITS, TOKEN, Type, is_view, tile

MOST_ELEMENTS = 2**24
"""Of a tile."""
_INTEGERS = ("i8", "i16", "i32", "i64")


def verify(function: Function) -> None:
    """Raises BytecodeError for the first operation that breaks a rule."""
    _check_parameters(function)
    for end in leaving(function.body):
        if end.name != "return":
            raise BytecodeError(f"{end.name} is in no loop of {function.name}")
    for op in function.body.walk():
        for rule in (_kinds, _ends, _RULES.get(op.name)):
            what = rule(op) if rule else None
            if what:
                where = f"line {op.place.line}" if op.place else None
                raise BytecodeError(f"{op.name} {what}", got=where)


def _check_parameters(function: Function) -> None:
    for value in function.body.arguments:
        if value.type.kind != "tile" or value.type["shape"]:
            raise BytecodeError(
                f"a parameter of {function.name} is not a scalar", got=str(value.type)
            )


def is_pointer(kind: Type) -> bool:
    """Whether it is a tile of pointers."""
    return kind.kind == "tile" and kind["element"].kind == "ptr"


def _is_element(kind: Type) -> bool:
    return kind.kind in ITEM_BITS


def _is_index(kind: Type) -> bool:
    return kind.kind == "tile" and not kind["shape"] and kind["element"].kind in _INTEGERS


_KINDS: dict[str, Callable[[Type], bool]] = {
    "token": lambda kind: kind == TOKEN,
    "view": is_view,
    "tensor": lambda kind: kind.kind == "tensor_view" and _is_element(kind["element"]),
    "pointers": is_pointer,
    "pointer": lambda kind: is_pointer(kind) and not kind["shape"],
    "index": _is_index,
    "rows": lambda kind: kind.kind == "tile" and kind["element"].kind in _INTEGERS,
    "tile": lambda kind: kind.kind == "tile",
}
_TABLE = """
load_view_tko view:view index:rows token:token > tile token
store_view_tko tile:tile view:view index:rows token:token > token
load_ptr_tko source:pointers token:token > tile token
store_ptr_tko pointers:pointers value:tile token:token > token
atomic_rmw_tko pointers:pointers value:tile token:token > tile token
atomic_cas_tko pointers:pointers value:tile token:token > tile token
make_token > token
join_tokens tokens:token > token
make_tensor_view base:pointer shape:index strides:index > tensor
make_partition_view tensor_view:tensor > view
make_strided_view tensor_view:tensor > view
make_gather_scatter_view tensor_view:tensor > view
offset pointers:pointers offsets:tile > pointers
get_tile_block_id > index index index
addi lhs:tile rhs:tile > tile
subi lhs:tile rhs:tile > tile
muli lhs:tile rhs:tile > tile
exti source:tile > tile
trunci source:tile > tile
constant > tile
"""
"""By operation, kinds of operands and of all results."""


def _signature(line: str) -> tuple[str, tuple[dict[str, str], list[str]]]:
    (name, *operands), results = (part.split() for part in line.split(">"))
    return name, (dict(operand.split(":") for operand in operands), results)


_SIGNATURES = dict(map(_signature, _TABLE.strip().splitlines()))


def _kinds(op: Operation) -> str | None:
    operands, results = _SIGNATURES.get(op.name, ({}, None))
    for name, kind in operands.items():
        for value in op.operands[name]:
            if not _KINDS[kind](value.type):
                return f"has {value.type} as {name}"
    found = _types(op.results)
    if any(kind.kind == "tile" and prod(kind["shape"]) > MOST_ELEMENTS for kind in found):
        return "has a tile of more than 2^24 elements"
    return None if results is None else _results(found, results)


def _results(found: Sequence[Type], expected: Sequence[str]) -> str | None:
    fit = [_KINDS[name](kind) for name, kind in zip(expected, found, strict=False)]
    if len(found) == len(expected) and all(fit):
        return None
    return f"has the results {', '.join(map(str, found)) or 'none'}"


def _index(op: Operation) -> str | None:
    found, kind = op.operands["index"], op.operand("view").type
    sparse = kind["sparse_dim"] if kind.kind == "gather_scatter_view" else None
    if len(found) != len(kind["tile"]):
        return f"has {len(found)} indices for a view of {len(kind['tile'])} dimensions"
    if any(at != sparse and not _is_index(value.type) for at, value in enumerate(found)):
        return "has an index that is not a scalar"
    return None


def _tensor(op: Operation) -> str | None:
    kind = op.results[0].type
    if len(kind["shape"]) != len(kind["strides"]):
        return "has not one stride per dimension"
    for name, static in (("shape", kind["shape"]), ("strides", kind["strides"])):
        if len(op.operands[name]) != static.count(DYNAMIC):
            return f"has {len(op.operands[name])} operands for the {name} of {kind}"
    return None


def _view(op: Operation) -> str | None:
    kind, tensor = op.results[0].type, op.operand("tensor_view").type
    rank, tile = len(tensor["shape"]), kind["tile"]
    if f"make_{kind.kind}" != op.name or kind["tensor_view"] != tensor:
        return f"makes {kind} of {tensor}"
    lists = [tile]
    if kind.kind == "gather_scatter_view":
        if not 0 <= kind["sparse_dim"] < rank:
            return f"has no dimension {kind['sparse_dim']}"
    elif sorted(kind["dim_map"]) != list(range(rank)):
        return "has a dim_map that is not a permutation"
    if kind.kind == "strided_view":
        lists.append(kind["traversal"])
    if any(len(sizes) != rank or min(sizes, default=1) < 1 for sizes in lists):
        return f"has a tile that does not fit {tensor}"
    return None


def _constant(op: Operation) -> str | None:
    kind = op.results[0].type
    size, data = ITEM_BITS.get(kind["element"].kind, 0) // 8, len(op.attributes["value"])
    if min(kind["shape"], default=1) < 1 or data not in (size, size * prod(kind["shape"])):
        return f"has {data} bytes for {kind}"
    return None


def _same_width(op: Operation) -> str | None:
    kinds = {value.type for value in (*op.inputs, *op.results)}
    return f"mixes {', '.join(sorted(map(str, kinds)))}" if len(kinds) > 1 else None


def _for(op: Operation) -> str | None:
    inits = _types(op.operands["inits"])
    bounds = {op.operand(name).type for name in ("lower", "upper", "step")}
    if len(bounds) != 1 or not _is_index(*bounds):
        return "has bounds that are not scalars of one type"
    return _passes(op, {"continue": inits}, [*bounds, *inits], inits)


def _ends(op: Operation) -> str | None:
    for body in op.regions:
        if any(inner.name in ENDS for inner in body.operations[:-1]):
            return "has operations behind the end of a block"
    return None


def _loop(op: Operation) -> str | None:
    inits = _types(op.operands["inits"])
    return _passes(op, {"continue": inits, "break": _types(op.results)}, inits, None)


def _passes(
    op: Operation,
    passed: Mapping[str, list[Type]],
    arguments: list[Type],
    results: list[Type] | None,
) -> str | None:
    """A rule on the types of its arguments, its results and what its iterations pass on."""
    (body,) = op.regions
    if _types(body.arguments) != arguments or results not in (None, _types(op.results)):
        return "has other initial values than its arguments or results"
    for end in leaving(body):
        if end.name != "return" and _types(end.operands["values"]) != passed.get(end.name):
            return f"has a {end.name} with other types than it passes on"
    return None if is_left(body) else "has a body that does not end with continue"


def _if(op: Operation) -> str | None:
    if op.operand("condition").type != tile("i1") or any(body.arguments for body in op.regions):
        return "has no condition, or branches with arguments"
    for body in op.regions:
        last = body.operations[-1] if body.operations else op
        if last.name not in ENDS:
            return "has a branch without an end"
        if last.name == "yield" and _types(last.operands["values"]) != _types(op.results):
            return "has branches that yield other types than its results"
    return None


def _types(values: Sequence[Value] | Iterator[Value]) -> list[Type]:
    return [value.type for value in values]


_RULES: dict[str, Callable[[Operation], str | None]] = {
    "load_view_tko": _index, "store_view_tko": _index, "make_tensor_view": _tensor,
    "make_partition_view": _view, "make_strided_view": _view, "make_gather_scatter_view": _view,
    "constant": _constant, "addi": _same_width, "subi": _same_width, "muli": _same_width,
    "for": _for, "loop": _loop, "if": _if,
}  # fmt: skip
