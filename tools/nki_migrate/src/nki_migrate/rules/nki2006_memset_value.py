"""`memset`: the value is of the tile's kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import allocation_of, argument

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


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
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
        yield site.finding("NKI2006", value, said, severity=Severity.ERROR, safety=Safety.MANUAL)


def _number(node: ast.expr) -> tuple[int | float | None, str]:
    sign = "-" if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else ""
    inner = node.operand if isinstance(node, ast.UnaryOp) and sign else node
    is_number = isinstance(inner, ast.Constant) and type(inner.value) in (int, float)
    return (inner.value if is_number else None), sign  # type: ignore[attr-defined]


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
