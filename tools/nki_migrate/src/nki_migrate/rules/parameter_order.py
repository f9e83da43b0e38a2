"""Calls whose parameters changed places."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.arguments import Order, is_device_call, moved_arguments
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_OLD = Order.of("dst pattern offset channel_multiplier on_true_tile on_false_value cmp_op= name=")
_NEW = Order.of("dst pattern channel_multiplier on_true_tile on_false_value cmp_op= offset= name=")


def _fits(bound: dict[str, ast.expr], site: Site) -> bool | None:
    """The comparison is a comparison, and the tile is not a number."""
    if "cmp_op" in bound:
        name = site.canonical(bound["cmp_op"])
        if name is None and not isinstance(bound["cmp_op"], ast.Constant):
            return None
        return name is not None and name.startswith("nl.")
    if _is_number(bound["on_true_tile"]):
        return False
    return None


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


_OLD_COMPUTE = Order.of("dst srcs scales reduce_op name=")
_NEW_COMPUTE = Order.of("dst srcs reduce_op scales= unique_indices= name=")


def _fits_compute(bound: dict[str, ast.expr], site: Site) -> bool | None:
    """NKI2007: `dma_compute`: `scales` moved behind `reduce_op`."""
    name = site.canonical(bound["reduce_op"])
    if name is not None:
        return name.startswith("nl.")
    return False if isinstance(bound["reduce_op"], ast.List | ast.Tuple | ast.Constant) else None


_FLAGS = "dst stationary moving is_stationary_onezero= is_moving_onezero= is_transpose="
_REST = "tile_position= tile_size= perf_mode= name="


def _fits_flags(bound: dict[str, ast.expr], site: Site) -> bool | None:
    """A place and a size are pairs, `accumulate` is a truth."""
    pairs = [bound[p] for p in ("tile_position", "tile_size") if p in bound]
    flag = bound.get("accumulate")
    if isinstance(flag, ast.Tuple | ast.List) or any(isinstance(p, ast.Constant) for p in pairs):
        return False
    certain = isinstance(flag, ast.Constant) or any(
        isinstance(p, ast.Tuple | ast.List) for p in pairs
    )
    return True if certain else None


_MODES = {"oob_mode": "nisa.oob_mode.", "dge_mode": "nisa.dge_mode.", "engine": "nisa.engine."}


def _fits_modes(bound: dict[str, ast.expr], site: Site) -> bool | None:
    """Whether every mode parameter got a member of its own enum."""
    named = {
        parameter: site.canonical(bound[parameter]) for parameter in _MODES if parameter in bound
    }
    if any(name and not name.startswith(_MODES[p]) for p, name in named.items()):
        return False
    if any(isinstance(bound[p], ast.Constant) for p in named):
        return False
    return True if any(named.values()) else None


_COPY = moved_arguments(
    "NKI3007",
    "nisa.dma_copy",
    Order.of("dst src oob_mode= dge_mode= engine= name="),
    Order.of("dst src priority= oob_mode= dge_mode= engine= name="),
    _fits_modes,
)
_TRANSPOSE = moved_arguments(
    "NKI3007",
    "nisa.dma_transpose",
    Order.of("dst src axes= dge_mode= oob_mode= name="),
    Order.of("dst src axes= priority= dge_mode= oob_mode= name="),
    _fits_modes,
    first=3,
)


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI3007: `dma_copy` and `dma_transpose`: `priority` was inserted before the modes."""
    yield from _COPY(call, site)
    yield from _TRANSPOSE(call, site)


# function → the place of `name` before 0.4 (0-based)
_NAME_IN_03 = {"nisa.tensor_scalar_reduce": 7, "nisa.dma_compute": 5}
_NAME_IN_05 = {"nisa.tensor_scalar_reduce": 9}


def _name_by_position(
    rule: str, places: dict[str, int], call: ast.Call, site: Site
) -> Iterator[Finding]:
    """The last positional argument is a string where a name used to be: write `name=`."""
    if not is_device_call(call, site, *places):
        return
    function = str(site.canonical(call.func))
    place = places[function]
    if len(call.args) == place + 1 and _is_text(call.args[place]):
        yield site.finding(
            rule,
            call,
            f"{function}: a parameter was inserted before name; write name=",
            edits=[site.insert_before(call.args[place], "name=")],
        )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


HOOKS = {
    "NKI2005": Hooks(
        nodes=(ast.Call,), check=moved_arguments("NKI2005", "nisa.affine_select", _OLD, _NEW, _fits)
    ),
    "NKI2007": Hooks(
        nodes=(ast.Call,),
        check=moved_arguments(
            "NKI2007", "nisa.dma_compute", _OLD_COMPUTE, _NEW_COMPUTE, _fits_compute
        ),
    ),
    "NKI2020": Hooks(
        nodes=(ast.Call,),
        check=moved_arguments(
            "NKI2020",
            "nisa.nc_matmul",
            Order.of(f"{_FLAGS} {_REST}"),
            Order.of(f"{_FLAGS} accumulate= {_REST}"),
            _fits_flags,
            first=6,
        ),
    ),
    "NKI3007": Hooks(nodes=(ast.Call,), check=_check),
    "NKI3008": Hooks(
        nodes=(ast.Call,),
        check=lambda call, site: _name_by_position("NKI3008", _NAME_IN_03, call, site),
    ),
    "NKI5006": Hooks(
        nodes=(ast.Call,),
        check=lambda call, site: _name_by_position("NKI5006", _NAME_IN_05, call, site),
    ),
}
