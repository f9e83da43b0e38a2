"""Calls that depend on the dtype, the rank or the memory of a tile."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.arguments import has_unknown_arguments, is_device_call, keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import (
    Allocation,
    allocation_of,
    argument,
    base_of,
    elements,
    fresh_name,
    is_whole_statement,
    lines_of,
    literal_sizes,
)


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2001: DMA does not read PSUM from 0.3 on."""
    if not is_device_call(call, site, "nisa.dma_copy") or has_unknown_arguments(call):
        return
    source = argument(call, "src", 1)
    made = allocation_of(source, site)
    name = base_of(source)
    if source is None or name is None or made is None or made.buffer != "nl.psum":
        return
    said = f"DMA does not read PSUM: `{name.id}` is copied to SBUF first"
    language, instructions = site.index.alias_for("nl"), site.index.alias_for("nisa")
    if language is None or instructions is None or not is_whole_statement(call, site):
        yield site.manual("NKI2001", call, said)
        return
    staged = fresh_name(f"{name.id}_sbuf", site)
    part = site.source(source)[len(name.id) :]
    above = lines_of(
        site,
        call,
        f"{staged} = {language}.ndarray({name.id}.shape, dtype={name.id}.dtype, "
        f"buffer={language}.sbuf)",
        f"{instructions}.tensor_copy(dst={staged}{part}, src={name.id}{part})",
        "",
    )
    edits = [site.insert_before(call, above), site.replace(source, f"{staged}{part}")]
    basis = (f"`{name.id}` is allocated in PSUM",)
    yield site.finding("NKI2001", call, said, edits=edits, basis=basis)


_HARDWARE = 2  # the integer code of nisa.dge_mode.hwdge


def _check_dge_mode(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2002: Descriptors made in hardware do not cast."""
    given = keyword(call, "dge_mode")
    if given is None or not is_device_call(call, site, "nisa.dma_copy"):
        return
    code = given.value.value if isinstance(given.value, ast.Constant) else None
    if site.canonical(given.value) != "nisa.dge_mode.hwdge" and code != _HARDWARE:
        return
    tiles = [allocation_of(argument(call, n, i), site) for i, n in enumerate(("dst", "src"))]
    dtypes = [t.dtype if t is not None else None for t in tiles]
    if None in dtypes or dtypes[0] == dtypes[1]:
        return
    instructions = site.index.alias_for("nisa")
    said = f"a DMA with dge_mode=hwdge does not cast {dtypes[1]} to {dtypes[0]}"
    text = f"{instructions}.dge_mode.unknown"
    if instructions is None:
        yield site.manual("NKI2002", call, said)
        return
    basis = (f"dst is allocated as {dtypes[0]}, src as {dtypes[1]}",)
    edits = [site.replace(given.value, text)]
    yield site.finding("NKI2002", call, f"{said}: {text}", edits=edits, basis=basis)


def _check_reduced_axis(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2004: `tensor_reduce(axis=1)` means axis 1."""
    if not is_device_call(call, site, "nisa.tensor_reduce"):
        return
    axis, source = argument(call, "axis", 3), argument(call, "data", 2)
    if not (isinstance(axis, ast.Constant) and axis.value == 1 and type(axis.value) is int):
        return
    data = allocation_of(source, site) if isinstance(source, ast.Name) else None
    if data is None or data.rank is None or data.rank < 3:
        return
    target = argument(call, "dst", 0)
    made = allocation_of(target, site) if isinstance(target, ast.Name) else None
    reduced = _reduced_axis(data, made, site)
    if reduced == 1:
        return
    last = data.rank - 1
    said = f"axis=1 meant the last axis in 0.2; from 0.3 on it is axis 1 of {data.rank}"
    if reduced == last:
        basis = ("dst has the shape of data without its last axis",)
        edits = [site.replace(axis, str(last))]
        yield site.finding("NKI2004", axis, said, edits=edits, basis=basis)
    else:
        yield site.manual("NKI2004", axis, f"{said}: which is meant?")


def _reduced_axis(data: Allocation, dst: Allocation | None, site: Site) -> int | None:
    """The one axis, 1 or the last, that dst lacks (or has as 1); None if both would do."""
    if dst is None or dst.shape is None or data.shape is None:
        return None
    before, after = ([site.source(s) for s in t] for t in (data.shape, dst.shape))
    fits = [axis for axis in (1, len(before) - 1) if after in _without(before, axis)]
    return fits[0] if len(fits) == 1 else None


def _without(sizes: list[str], axis: int) -> tuple[list[str], list[str]]:
    rest = sizes[axis + 1 :]
    return [*sizes[:axis], *rest], [*sizes[:axis], "1", *rest]


_INTEGERS = {f"nl.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32)}
_FLOATS = {
    "nl.float32",
    "nl.tfloat32",
    "nl.float16",
    "nl.bfloat16",
    "nl.float8_e4m3",
    "nl.float8_e5m2",
    "nl.float8_e4m3fn",
}


def _check_memset_value(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2006: `memset`: the value is of the tile's kind."""
    value = argument(call, "value", 1)
    if value is None or not is_device_call(call, site, "nisa.memset"):
        return
    given, sign = _number(value)
    tile = allocation_of(argument(call, "dst", 0), site)
    dtype = tile.dtype if tile is not None else None
    if given is None or dtype is None:
        return
    if dtype in _INTEGERS and isinstance(given, float):
        yield from _integer_tile(value, given, sign, dtype, site)
    elif dtype in _FLOATS and type(given) is int:
        yield site.finding(
            "NKI2006",
            value,
            f"the tile is {dtype}: the value has to be a float",
            edits=[site.replace(value, f"{sign}{float(given)!r}")],
            basis=(f"the tile is allocated with dtype {dtype}",),
        )


def _integer_tile(
    value: ast.expr, given: float, sign: str, dtype: str, site: Site
) -> Iterator[Finding]:
    said = f"the tile is {dtype}: the value has to be an integer"
    if given.is_integer():
        edit = site.replace(value, f"{sign}{int(given)}")
        basis = (f"the tile is allocated with dtype {dtype}",)
        yield site.finding("NKI2006", value, said, edits=[edit], basis=basis)
    else:
        yield site.manual("NKI2006", value, said)


def _number(node: ast.expr) -> tuple[int | float | None, str]:
    sign = "-" if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else ""
    inner = node.operand if isinstance(node, ast.UnaryOp) and sign else node
    is_number = isinstance(inner, ast.Constant) and type(inner.value) in (int, float)
    return (inner.value if is_number else None), sign  # type: ignore[attr-defined]


def _check_transposed_ranks(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI3001: `dma_transpose`: both sides have the same rank."""
    if not is_device_call(call, site, "nisa.dma_transpose"):
        return
    dst, src = (_rank(argument(call, n, i), site) for i, n in enumerate(("dst", "src")))
    if dst is not None and src is not None and dst != src:
        said = f"dma_transpose from rank {src} to rank {dst}: both have one rank from 0.4 on"
        yield site.manual("NKI3001", call, said)


def _rank(tile: ast.expr | None, site: Site) -> int | None:
    """The rank of a whole tile, or of slices of one."""
    made = allocation_of(tile, site)
    if made is None or made.rank is None:
        return None
    if isinstance(tile, ast.Subscript):
        index = tile.slice.elts if isinstance(tile.slice, ast.Tuple) else [tile.slice]
        if isinstance(tile.value, ast.Subscript) or not all(
            isinstance(i, ast.Slice) for i in index
        ):
            return None
    return made.rank


def _check_rsqrt_of_psum(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI4001: `nl.rsqrt` does not read PSUM from 0.5 on."""
    if not is_device_call(call, site, "nl.rsqrt") or not call.args:
        return
    made = allocation_of(call.args[0], site)
    if made is None or made.buffer != "nl.psum":
        return
    said = "nl.rsqrt does not read PSUM from 0.5 on: an activation does"
    text = _activation(call, site)
    edits = [site.replace(site.index.parent(call), text)] if text is not None else []  # type: ignore[arg-type]
    safety = Safety.SAFE if edits else Safety.MANUAL
    yield site.finding("NKI4001", call, said, edits=edits, safety=safety)


def _activation(call: ast.Call, site: Site) -> str | None:
    """Allocation and activation for `y = nl.rsqrt(x)` of a whole tile; None for other forms."""
    statement, source = site.index.parent(call), call.args[0]
    language, instructions = site.index.alias_for("nl"), site.index.alias_for("nisa")
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or call.keywords:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(source, ast.Name) or len(call.args) > 1:
        return None
    if target.id == getattr(base_of(source), "id", None) or not (language and instructions):
        return None
    line, column, end_line, _ = site.index.source.span(statement)
    if line != end_line or site.index.source.lines[line - 1][: column - 1].strip():
        return None
    x, y = source.id, target.id
    return lines_of(
        site,
        statement,
        f"{y} = {language}.ndarray({x}.shape, dtype={x}.dtype, buffer={language}.sbuf)",
        f"{instructions}.activation(dst={y}, op={language}.rsqrt, data={x})",
    )


def _check_reshape(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI4002: `.reshape` keeps the number of elements."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "reshape":
        return
    if not isinstance(func.value, ast.Name) or site.function_of(call) is None:
        return
    made = allocation_of(func.value, site)
    first = call.args[0] if len(call.args) == 1 else None
    given = first.elts if isinstance(first, ast.Tuple | ast.List) else call.args
    wanted = literal_sizes(tuple(given)) if given and not call.keywords else None
    if made is None or made.sizes is None or wanted is None:
        return
    if elements(made.sizes) != elements(wanted):
        before, after = elements(made.sizes), elements(wanted)
        said = f"a reshape from {before} to {after} elements is an error from 0.5 on"
        yield site.manual("NKI4002", call, said)


HOOKS = {
    "NKI2001": Hooks(nodes=(ast.Call,), check=_check),
    "NKI2002": Hooks(nodes=(ast.Call,), check=_check_dge_mode),
    "NKI2004": Hooks(nodes=(ast.Call,), check=_check_reduced_axis),
    "NKI2006": Hooks(nodes=(ast.Call,), check=_check_memset_value),
    "NKI3001": Hooks(nodes=(ast.Call,), check=_check_transposed_ranks),
    "NKI4001": Hooks(nodes=(ast.Call,), check=_check_rsqrt_of_psum),
    "NKI4002": Hooks(nodes=(ast.Call,), check=_check_reshape),
}
