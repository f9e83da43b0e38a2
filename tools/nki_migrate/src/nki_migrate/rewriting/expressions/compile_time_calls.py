"""Calls that make no tile: index tensors, program ids, slices, rounding, `min` and `max`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from neuroncore.findings import Safety, Severity
from nki_migrate.comments.todos import todo_text
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import (
    ATOM,
    LOOSE,
    Const,
    DeviceSlice,
    Grid,
    Index,
    Seq,
    Slice,
    Sym,
    Tensor,
    Value,
)
from nki_migrate.index import is_shadowed, walk
from nki_migrate.index.grids import CORES
from nki_migrate.rewriting.context.call_site import Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason, Unsupported
from nki_migrate.rewriting.context.source_text import as_number, text_of
from nki_migrate.rewriting.inference.observations import (
    is_seen_core,
    seen_counts,
    seen_programs,
    was_without_grid,
)
from nki_migrate.rewriting.operations.calls import rewrite_call
from nki_migrate.rewriting.operations.operators import binary_operator
from nki_migrate.rewriting.views.slices import is_colon


def makes_tile(ctx: Context, node: ast.expr) -> bool:
    """Whether an expression computes a new tile rather than naming one."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return not isinstance(node, ast.Name | ast.Attribute)


def value_into(ctx: Context, node: ast.expr, target: Target) -> Value:
    """The value of an expression; if it is one instruction, the instruction writes to `target`."""
    if isinstance(node, ast.Call):
        canonical = ctx.index.canonical(node.func)
        if KNOWN_CALLS.get(canonical or builtin_name(ctx, node)) is None:
            return rewrite_call(ctx, node, canonical, target)
    if isinstance(node, ast.BinOp):
        left, right = ctx.value_of(node.left), ctx.value_of(node.right)
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return binary_operator(ctx, node, left, right, target)
    return ctx.value_of(node)


def is_device_call(ctx: Context, node: ast.expr) -> bool:
    name = ctx.index.canonical(node.func) if isinstance(node, ast.Call) else None
    return name is not None and name.partition(".")[0] in {"nl", "nisa"} and name not in KNOWN_CALLS


def builtin_name(ctx: Context, node: ast.Call) -> str:
    """The builtin that is called; "" if the name is another function's here."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    return "" if name in KNOWN_CALLS and is_shadowed(ctx.index, node, name) else name


def _arange(ctx: Context, node: ast.Call) -> Value | None:
    ctx.require(Reason.INDEX_TENSOR)
    numbers = [as_number(ctx, ctx.value_of(a)) for a in node.args]
    if node.keywords or not 1 <= len(numbers) <= 2 or any(n is None for n in numbers):
        raise Cannot(
            Reason.INDEX_TENSOR, "`nl.arange` with bounds that are not compile-time numbers", node
        )
    start = numbers[0] if len(numbers) == 2 else Sym.number(0)
    stop = numbers[-1]
    assert start is not None and stop is not None
    return Index((stop - start,), ((0, Sym.number(1)),), start)


def _ds(ctx: Context, node: ast.Call) -> Value | None:
    found = [ctx.value_of(a) for a in (*node.args, *(k.value for k in node.keywords))]
    values = [as_number(ctx, v) for v in found]
    if len(values) == 2 and isinstance(found[0], Tensor) and values[1] is not None:
        return DeviceSlice(found[0], values[1])
    if len(values) != 2 or any(v is None for v in values):
        raise Cannot(
            Reason.DYNAMIC_INDEX, "`nl.ds` with a start that is not a compile-time number", node
        )
    return Const(tuple(values), text_of(ctx, node))


def _slice(ctx: Context, node: ast.Call) -> Value | None:
    """`slice(a, b)`: the subscript that it is used in has the bounds themselves."""
    values = [as_number(ctx, ctx.value_of(a)) for a in node.args]
    bounds = [v for v in values if v is not None]
    if node.keywords or len(bounds) != len(values) or not 1 <= len(bounds) <= 2:
        raise Cannot(Reason.DYNAMIC_INDEX, "a `slice` of something else than numbers", node)
    start = bounds[0] if len(bounds) == 2 else Sym.number(0)
    return Slice(start, bounds[-1] - start)


def _par_dim(ctx: Context, node: ast.Call) -> Value | None:
    ctx.report(
        Reason.PARTITION_MARK, node, "`nl.par_dim` is gone: the partition dimension is the first"
    )
    value = ctx.value_of(node.args[0])
    ctx.rewrites[node] = text_of(ctx, node.args[0])
    return value


def _ceil(ctx: Context, node: ast.Call) -> Value | None:
    argument = node.args[0]
    if isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Div):
        a, b = (as_number(ctx, ctx.value_of(x)) for x in (argument.left, argument.right))
        if a is not None and b is not None and not (a.is_float or b.is_float):
            text = text_of(ctx, node)
            return Sym(ctx.facts.quotient(a.poly, b.poly, up=True), text, names=a.names | b.names)
    number = as_number(ctx, ctx.value_of(argument))
    return _opaque_number(ctx, node) if number is not None else None


def joined_sizes(ctx: Context, *parts: Value) -> Seq | None:
    """The sequences of numbers as one; None where another value is among them."""
    items: list[Value] = []
    marks: set[int] = set()
    for part in parts:
        if not isinstance(part, Seq) or any(as_number(ctx, i) is None for i in part.items):
            return None
        marks |= {len(items) + mark for mark in part.partition_marks}
        items += part.items
    return Seq(tuple(items), "", frozenset(marks))


def _copied_sizes(ctx: Context, node: ast.Call) -> Value | None:
    """`list(x.shape)`."""
    if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
        return None
    found = joined_sizes(ctx, ctx.value_of(node.args[0]))
    return replace(found, text=text_of(ctx, node)) if found is not None else None


_CHOICES: dict[str, Callable[[list[int]], int]] = {"min": min, "max": max}


def _opaque_number(ctx: Context, node: ast.Call) -> Value | None:
    """A function of numbers that stays as it is: equal texts are equal numbers."""
    values = [as_number(ctx, ctx.value_of(a)) for a in node.args]
    if any(v is None for v in values) or node.keywords:
        return None
    numbers = [v for v in values if v]
    polys = ", ".join(str(v.poly) for v in numbers)
    constants = [v.value for v in numbers if v.value is not None]
    text, choose = text_of(ctx, node), _CHOICES.get(builtin_name(ctx, node))
    if choose is not None and len(constants) == len(numbers) > 1:
        return Sym(Poly.number(choose(constants)), text)
    names = frozenset().union(*(v.names for v in numbers))
    return Sym(Poly.atom(f"{text_of(ctx, node.func)}({polys})"), text, names=names)


def _program_id(ctx: Context, node: ast.Call) -> Value | None:
    axis = _axis_argument(ctx, node, "axis")
    made = ctx.program_ids.get(axis) if axis is not None else None
    if made is not None:
        ctx.report(
            Reason.PROGRAM_ID,
            node,
            f"program {axis} of the grid is the loop variable `{made.text}`",
        )
        ctx.rewrites[node] = made.text
        return made
    text = text_of(ctx, node)
    if ctx.program_ids:
        return Sym(Poly.atom(text), text)
    if axis is not None:
        ctx.unknown_programs[text] = axis, node
    if axis == 0 and is_seen_core(ctx, node) and not _asks_of_other_axes(ctx):
        ctx.report(Reason.PROGRAM_ID, node, FEW_PROGRAMS, severity=Severity.NOTE)
    elif (left := _not_a_core(ctx, node, axis)) is not None:
        _leave_open(ctx, node, f"{left}: turn the axis into a loop")
    else:
        ctx.report(
            Reason.PROGRAM_ID, node, NO_GRID, severity=Severity.WARNING, safety=Safety.MANUAL
        )
    return Sym(Poly.atom(text), text)


def _leave_open(ctx: Context, node: ast.Call, message: str) -> None:
    """A finding of a statement that converts, and of which a human has to do the rest."""
    ctx.report(Reason.PROGRAM_ID, node, message, safety=Safety.MANUAL)
    ctx.marks.append(todo_text(ctx.rules.id_of(Reason.PROGRAM_ID), message))


def _not_a_core(ctx: Context, node: ast.Call, axis: int | None) -> str | None:
    """Why a program id is not the number of a core; None if it may be one."""
    if axis is None:
        return "a launch has one axis, of cores, and which axis is requested is not known here"
    if axis > 0:
        says = f"no launch in view says how large axis {axis} is"
        return f"a launch has one axis, of cores, and {says}"
    programs = seen_programs(ctx, node)
    if programs > CORES:
        return f"the observed grid had {programs} programs, which are not cores"
    return None


def _asks_of_other_axes(ctx: Context) -> bool:
    calls = [n for n in walk(ctx.function.node) if isinstance(n, ast.Call)]
    ids = [n for n in calls if ctx.index.canonical(n.func) in {"nl.program_id", "nl.num_programs"}]
    given = [n.args[0] if n.args else n.keywords[0].value for n in ids if n.args or n.keywords]
    return any(not (isinstance(g, ast.Constant) and g.value == 0) for g in given)


NO_GRID = (
    "no launch in view says how large the grid is; the program id is now a core number (LNC)."
    " If this kernel was launched with a larger grid, turn that axis into a loop"
)


FEW_PROGRAMS = (
    "every observed grid had at most two programs: the program id is a core number (LNC), and a"
    " launch with more is rejected"
)


_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Attribute, ast.Subscript)


def _num_programs(ctx: Context, node: ast.Call) -> Value | None:
    axis = _axis_argument(ctx, node, "axes")
    made = ctx.program_counts.get(axis) if axis is not None else None
    if made is not None:
        ctx.report(Reason.PROGRAM_ID, node, f"the extent of grid axis {axis} is `{made.text}`")
        is_operand = isinstance(ctx.index.parent(node), _OPERATORS)
        ctx.rewrites[node] = made.at(ATOM if is_operand else LOOSE)
        return made
    text = text_of(ctx, node)
    if not ctx.program_ids:
        _report_count(ctx, node, axis)
    return Sym(Poly.atom(text), text)


def _report_count(ctx: Context, node: ast.Call, axis: int | None) -> None:
    """The count of programs is one of cores now, and stays one only on a launch with as many."""
    counts = seen_counts(ctx, node) or (1,) * was_without_grid(ctx)
    if axis is None or axis > 0 or any(n > CORES for n in counts) or _asks_of_other_axes(ctx):
        says = f"the observed grid had {max(counts)}" if counts else "no launch in view says it"
        text = f"how many programs there are, of which only cores are left: {says}"
        _leave_open(ctx, node, text)
    elif counts:
        ctx.report(Reason.PROGRAM_ID, node, FEW_PROGRAMS, severity=Severity.NOTE)
    else:
        ctx.report(
            Reason.PROGRAM_ID, node, NO_GRID, severity=Severity.WARNING, safety=Safety.MANUAL
        )


def _axis_argument(ctx: Context, node: ast.Call, keyword: str) -> int | None:
    given = (
        node.args[0]
        if node.args
        else next((k.value for k in node.keywords if k.arg == keyword), None)
    )
    if given is None:
        return 0
    number = as_number(ctx, ctx.value_of(given))
    return number.value if number else None


def _len(ctx: Context, node: ast.Call) -> Value | None:
    value = ctx.value_of(node.args[0]) if node.args else None
    if isinstance(value, Seq):
        return Sym(Poly.number(len(value.items)), text_of(ctx, node))
    return None


def _typed_number(ctx: Context, node: ast.Call) -> Value | None:
    """`nl.int32(n)`, `nl.float32(n)`: 0.2 numbers carry no dtype, and a tile's own decides."""
    number = as_number(ctx, ctx.value_of(node.args[0])) if len(node.args) == 1 else None
    if number is None or node.keywords:
        return None
    is_float = ctx.index.canonical(node.func) == "nl.float32"
    if number.is_float and not is_float:
        return None  # rounds
    ctx.report(Reason.NUMPY_DTYPE, node, "dtypes are not functions: the number itself")
    ctx.rewrites[node] = text = text_of(ctx, node.args[0])
    if is_float:
        return Sym(Poly.atom(f"float {text}"), text, 0, True, number.names)
    if number.value is not None:
        return Sym.number(number.value)
    return Sym(Poly.atom(ctx.atom("int32")), text, number.level, False, number.names)


def _float(ctx: Context, node: ast.Call) -> Value | None:
    """A function of the host that gives a float: `float(n)`, `np.sqrt(n)`."""
    numbers = [as_number(ctx, ctx.value_of(a)) for a in node.args]
    known = [n for n in numbers if n is not None]
    if node.keywords or not numbers or len(known) < len(numbers):
        return None
    names = frozenset().union(*(n.names for n in known))
    text = text_of(ctx, node)
    return Sym(Poly.atom(f"float {text}"), text, ATOM, True, names)


_FLOAT_FUNCTIONS = ("float", *(
    f"{module}.{name}"
    for module in ("math", "np")
    for name in ("sqrt", "exp", "log", "log2", "sin", "cos", "tanh", "pow")
))  # fmt: skip


KNOWN_CALLS: dict[str, Callable[[Context, ast.Call], Value | None]] = {
    "nl.arange": _arange,
    "nl.ds": _ds,
    "nl.par_dim": _par_dim,
    "slice": _slice,
    "nl.program_id": _program_id,
    "nl.num_programs": _num_programs,
    "math.ceil": _ceil,
    "np.ceil": _ceil,
    "math.floor": _opaque_number,
    "int": lambda ctx, node: ctx.value_of(node.args[0]) if len(node.args) == 1 else None,
    "min": _opaque_number,
    "max": _opaque_number,
    "len": _len,
    "list": _copied_sizes,
    "tuple": _copied_sizes,
    "nl.int32": _typed_number,
    "nl.float32": _typed_number,
    **dict.fromkeys(_FLOAT_FUNCTIONS, _float),
}


def index_grid(ctx: Context, node: ast.Subscript) -> Value:
    """`nl.mgrid[0:P, 0:F]`: an index tensor for each axis."""
    ctx.require(Reason.INDEX_GRID)
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    ends = [_grid_bounds(ctx, part, node) for part in parts]
    rank = len(ends)
    axes = []
    for a, (start, extent) in enumerate(ends):
        extents = tuple(extent if b == a else Sym.number(1) for b in range(rank))
        axes.append(Index(extents, ((a, Sym.number(1)),), start))
    return Grid(tuple(axes))


def _grid_bounds(ctx: Context, part: ast.expr, node: ast.Subscript) -> tuple[Sym, Sym]:
    """Start and extent of one axis of `nl.mgrid`."""
    if not isinstance(part, ast.Slice) or part.step is not None or part.upper is None:
        raise Cannot(Reason.INDEX_GRID, "an `nl.mgrid` axis that is not `start:stop`", node)
    lower = as_number(ctx, ctx.value_of(part.lower)) if part.lower else Sym.number(0)
    upper = as_number(ctx, ctx.value_of(part.upper))
    if lower is None or upper is None:
        text = "an `nl.mgrid` bound that is not a compile-time number"
        raise Cannot(Reason.INDEX_GRID, text, node)
    return lower, upper - lower


def with_new_axes(ctx: Context, base: Index, node: ast.Subscript) -> Value:
    """`nl.arange(P)[:, None]`: each None adds an axis of extent 1, each `:` keeps one."""
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    extents: list[Sym] = []
    moved: dict[int, int] = {}
    for part in parts:
        if isinstance(part, ast.Constant) and part.value is None:
            extents.append(Sym.number(1))
        elif isinstance(part, ast.Slice) and is_colon(part):
            moved[len(moved)] = len(extents)
            extents.append(
                base.extents[len(moved) - 1] if len(moved) <= len(base.extents) else Sym.number(1)
            )
        else:
            return Unsupported(
                "an index tensor indexed by something else than `:` and None", Reason.INDEX_TENSOR
            )
    if len(moved) != len(base.extents):
        return Unsupported("an index tensor with a wrong number of axes", Reason.INDEX_TENSOR)
    return Index(tuple(extents), tuple((moved[a], c) for a, c in base.terms), base.offset)
