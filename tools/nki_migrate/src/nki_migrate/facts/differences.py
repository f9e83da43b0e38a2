"""The difference of two spellings of integers, shorter than `a - b`: `(t + 1) * n - t * n` is n."""

from __future__ import annotations

import ast
from functools import lru_cache

from nki_migrate.facts.polynomials import Polynomial

_SIMPLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
_PRODUCT = (ast.FloorDiv, ast.Mod)


@lru_cache(maxsize=1024)
def product_of_difference(one: str, other: str) -> tuple[str, bool] | None:
    """`one - other` as a product, and whether that is a single name or the like.

    None where it is none. A name has to mean the same in both.
    """
    a, b = _polynomial(one), _polynomial(other)
    rest = a - b if a is not None and b is not None else None
    if rest is None or len(rest.terms) != 1:
        return None
    ((atoms, factor),) = rest.terms
    if factor < 1 or not atoms:
        return None
    if factor == 1 and len(atoms) == 1:
        return atoms[0], isinstance(_expression(atoms[0]), _SIMPLE)
    return " * ".join([*([str(factor)] if factor > 1 else []), *map(_enclosed, atoms)]), False


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _enclosed(atom: str) -> str:
    return atom if isinstance(_expression(atom), _SIMPLE) else f"({atom})"


def _polynomial(text: str) -> Polynomial | None:
    """The text over the names, quotients and calls in it; None where it has other operators."""
    node = _expression(text)
    return None if node is None else _value(node)


def _value(node: ast.expr) -> Polynomial | None:
    match node:
        case ast.Constant(value=int(value)):
            return Polynomial.number(value)
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() as operator, right):
            return _combined(_value(left), operator, _value(right))
        case ast.BinOp(op=operator) if isinstance(operator, _PRODUCT):
            return Polynomial.atom(ast.unparse(node))
    return Polynomial.atom(ast.unparse(node)) if isinstance(node, _SIMPLE) else None


def _combined(
    a: Polynomial | None, operator: ast.operator, b: Polynomial | None
) -> Polynomial | None:
    if a is None or b is None:
        return None
    if isinstance(operator, ast.Mult):
        return a * b
    return a + b if isinstance(operator, ast.Add) else a - b
