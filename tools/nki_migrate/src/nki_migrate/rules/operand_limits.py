"""Instructions of 0.7 with fewer dimensions, or with other reductions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding
from nki_migrate.rules.arguments import has_unknown_arguments, is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import (
    allocation_of,
    argument,
    fresh_name,
    is_whole_statement,
    lines_of,
)

# function → parameters that are tiles with their places, and how many free dimensions they have
_FREE_DIMENSIONS: dict[str, tuple[int, dict[str, int]]] = {
    "nisa.tensor_copy_predicated": (3, {"dst": 0, "src": 1, "predicate": 2}),
    "nisa.tensor_scalar_reduce": (3, {"dst": 0, "data": 1}),
    "nisa.exponential": (3, {"dst": 0, "src": 1}),
    "nisa.memset": (4, {"dst": 0}),
}


def _check_dimensions(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI6017: at most 3 or 4 free dimensions."""
    if not is_device_call(call, site, *_FREE_DIMENSIONS) or has_unknown_arguments(call):
        return
    most, places = _FREE_DIMENSIONS[str(site.canonical(call.func))]
    tiles = list(_tiles(call, places))
    ranks = [_rank(tile, site) for tile in tiles]
    highest = max(ranks, default=0)
    if highest <= most + 1:
        return
    said = f"{site.source(call.func)} takes {most} free dimensions, and gets {highest - 1}"
    are_whole = all(isinstance(t, ast.Name) for t in tiles) and set(ranks) == {highest}
    if not are_whole:
        yield site.manual("NKI6017", call, f"{said}: merge two, or loop over one")
        return
    last = highest - most  # dimensions 1 to `last` become one
    edits = [site.replace(t, f"{site.source(t)}.flatten_dims(1, {last})") for t in tiles]
    yield site.finding("NKI6017", call, f"{said}: merge two", edits=edits)


def _tiles(call: ast.Call, places: dict[str, int]) -> Iterator[ast.expr]:
    given = (argument(call, name, place) for name, place in places.items())
    return (tile for tile in given if tile is not None)


def _rank(tile: ast.expr, site: Site) -> int:
    """How many dimensions the tile under an expression has; 0: not known."""
    made = allocation_of(tile, site)
    return (made.rank or 0) if made is not None else 0


def _check_predicate(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI6016: `reverse_pred` with a tile as source."""
    if not is_device_call(call, site, "nisa.tensor_copy_predicated"):
        return
    reverse, source = argument(call, "reverse_pred", 3), argument(call, "src", 1)
    is_reversed = isinstance(reverse, ast.Constant) and reverse.value is True
    if not is_reversed or source is None or isinstance(source, ast.Constant | ast.UnaryOp):
        return
    said = "tensor_copy_predicated takes reverse_pred with a number alone: swap the tiles"
    text = _swapped(call, source, site)
    if text is None:
        yield site.manual("NKI6016", call, said)
    else:
        basis = ("the source is a tile",)
        yield site.finding("NKI6016", call, said, edits=[site.replace(call, text)], basis=basis)


def _swapped(call: ast.Call, source: ast.expr, site: Site) -> str | None:
    """Copy the source to the destination, and the old values back where the predicate holds."""
    target, predicate = argument(call, "dst", 0), argument(call, "predicate", 2)
    language, instructions = site.index.alias_for("nl"), site.index.alias_for("nisa")
    is_tile = isinstance(source, ast.Subscript) or allocation_of(source, site) is not None
    is_plain = isinstance(target, ast.Name) and is_whole_statement(call, site)
    if not (is_tile and is_plain and predicate is not None and language and instructions):
        return None
    assert isinstance(target, ast.Name)
    name, old = target.id, fresh_name(f"{target.id}_old", site)
    return lines_of(
        site,
        call,
        f"{old} = {language}.ndarray({name}.shape, dtype={name}.dtype, buffer={language}.sbuf)",
        f"{instructions}.tensor_copy(dst={old}, src={name})",
        f"{instructions}.tensor_copy(dst={name}, src={site.source(source)})",
        f"{instructions}.tensor_copy_predicated(dst={name}, src={old}, "
        f"predicate={site.source(predicate)})",
    )


_PLACES = {"nisa.activation": (5, 6), "nisa.activation_reduce": (3, 4)}  # reduce_op, reduce_res


def _check_reduction(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI6018: ScalarE's accumulator only adds."""
    if not is_device_call(call, site, *_PLACES) or has_unknown_arguments(call):
        return
    place, result_place = _PLACES[str(site.canonical(call.func))]
    operation = argument(call, "reduce_op", place)
    result = argument(call, "reduce_res", result_place)
    name = site.canonical(operation)
    if operation is None or name is None or name == "nl.add":
        return
    said = f"{site.source(call.func)} reduces with nl.add alone: reduce with tensor_reduce"
    edits = _split(call, operation, result, site)
    if edits is None:
        yield site.manual("NKI6018", call, said)
    else:
        basis = ("dst is a float32 tile of two dimensions",)
        yield site.finding("NKI6018", call, said, edits=edits, basis=basis)


def _split(
    call: ast.Call, operation: ast.expr, result: ast.expr | None, site: Site
) -> list[Edit] | None:
    """The activation alone, and the reduction of what it wrote."""
    target, instructions = argument(call, "dst", 0), site.index.alias_for("nisa")
    if target is None or result is None or instructions is None or not _is_plain(call, site):
        return None
    rest = [*call.args, *(k for k in call.keywords if k.arg not in ("reduce_op", "reduce_res"))]
    text = lines_of(
        site,
        call,
        f"{instructions}.activation({', '.join(site.source(a) for a in rest)})",
        f"{instructions}.tensor_reduce(dst={site.source(result)}, op={site.source(operation)}, "
        f"data={site.source(target)}, axis=1)",
    )
    return [site.replace(call, text)]


def _is_plain(call: ast.Call, site: Site) -> bool:
    """Whether what is written is what the accumulator adds: a float32 tile of two dimensions."""
    target, named = argument(call, "dst", 0), {k.arg for k in call.keywords}
    if call.args[3:] or named & {"reduce_cmd", "name"} or not is_whole_statement(call, site):
        return False
    made = allocation_of(target, site) if isinstance(target, ast.Name) else None
    return made is not None and made.dtype == "nl.float32" and made.rank == 2


HOOKS = {
    "NKI6016": Hooks(nodes=(ast.Call,), check=_check_predicate),
    "NKI6017": Hooks(nodes=(ast.Call,), check=_check_dimensions),
    "NKI6018": Hooks(nodes=(ast.Call,), check=_check_reduction),
}
