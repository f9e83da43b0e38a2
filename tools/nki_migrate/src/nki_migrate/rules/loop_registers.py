"""Registers of a device loop: the ones that carry a number from turn to turn, and its variable.

State between turns is held in SBUF or HBM [NKI 0.6 dynamic loop migration guide], so a register
that the body writes, and a later turn or the code below reads, goes through a cell of SBUF.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nki_migrate.facts.live_variables import Variables, bindings
from nki_migrate.index import bound_names, walk
from nki_migrate.rules.loop_state import DeviceLoop, Kind, ObstacleError
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import allocation_of, argument

_WRITERS = {"nisa.register_move", "nisa.register_load"}
_READERS = (*_WRITERS, "nisa.register_store")


def register_of(loop: ast.While, site: Site) -> str | None:
    """The register that a `while` tests: nothing but registers is bound to the name, or none
    that is visible and a register function writes it."""
    function = site.function_of(loop)
    if function is None or not isinstance(loop.test, ast.Name):
        return None
    if is_register(loop.test, site):
        return loop.test.id
    nodes = walk(function.node)
    is_number = any(map(_is_number, _bindings_of(loop.test, site)))
    is_written = any(written_by(n, site) == loop.test.id for n in nodes)
    return loop.test.id if is_written and not is_number else None


def _bindings_of(name: ast.Name, site: Site) -> list[ast.AST | None]:
    """The nodes around each place of its function that binds a name."""
    function = site.function_of(name)
    nodes = walk(function.node) if function is not None else []
    return [site.index.parent(n) for n in bound_names(nodes) if n.id == name.id]


def _is_register(statement: ast.AST | None, site: Site) -> bool:
    value = getattr(statement, "value", None) if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and site.canonical(value.func) == "nisa.register_alloc"


def _is_number(statement: ast.AST | None) -> bool:
    return isinstance(getattr(statement, "value", None), ast.Constant)


def is_register(name: ast.expr, site: Site) -> bool:
    """Whether every binding of a name in its function is a register's allocation."""
    bound = _bindings_of(name, site) if isinstance(name, ast.Name) else []
    return bool(bound) and all(_is_register(b, site) for b in bound)


def written_by(node: ast.AST, site: Site) -> str | None:
    """The register that a call writes."""
    if not isinstance(node, ast.Call) or site.canonical(node.func) not in _WRITERS:
        return None
    dst = argument(node, "dst", 0)
    return dst.id if isinstance(dst, ast.Name) else None


def carried_registers(loop: DeviceLoop, site: Site, condition: str | None) -> dict[str, str]:
    """Registers that the body writes and that a later turn or the code below reads: name → dtype.

    Raises ObstacleError for a register of floats: no document says how one is stored.
    """
    contents = Variables(lambda call: written_by(call, site))
    needed = contents.block(loop.body).needed | contents.needed_after(loop, site.index)
    own = {name for name, _ in bindings(loop.body)} | {condition}
    written = {name for node in _inside(loop) for name in _maybe_written(node, site)}
    carried = sorted((written & needed) - own)
    return {name: _dtype_of(name, loop, site) for name in carried}


def is_read_below(register: str, loop: DeviceLoop, site: Site) -> bool:
    """Whether the code below the loop may read what the register holds."""
    contents = Variables(lambda call: written_by(call, site))
    return register in contents.needed_after(loop, site.index)


def _inside(loop: DeviceLoop) -> Iterator[ast.AST]:
    return (node for statement in loop.body for node in walk(statement))


def _maybe_written(node: ast.AST, site: Site) -> Iterator[str]:
    """Registers that a call writes, itself or in a function of the user's."""
    name = written_by(node, site)
    if name is not None:
        yield name
    elif isinstance(node, ast.Call) and _is_users(node.func, site):
        for given, inner in _parameters(node, site):
            if is_register(given, site) and (inner is None or _writes(*inner, site)):
                yield given.id


def _is_users(func: ast.expr, site: Site) -> bool:
    name = site.canonical(func) or ""
    return isinstance(func, ast.Name) and not name.startswith(("nl.", "nisa."))


_Inner = tuple[ast.FunctionDef, str]
"""A function of this file and its parameter."""


def _parameters(call: ast.Call, site: Site) -> Iterator[tuple[ast.Name, _Inner | None]]:
    """The names that a call passes, each with the parameter that gets it, where that is known."""
    called = site.index.definition(call.func.id) if isinstance(call.func, ast.Name) else None
    function = called if isinstance(called, ast.FunctionDef) else None
    names = [p.arg for p in (*function.args.posonlyargs, *function.args.args)] if function else []
    by_place = zip([*names, *[None] * len(call.args)], call.args, strict=False)
    for parameter, value in [*by_place, *((k.arg, k.value) for k in call.keywords)]:
        if isinstance(value, ast.Name):
            yield value, (function, parameter) if function and parameter else None


def _writes(function: ast.FunctionDef, parameter: str, site: Site, depth: int = 4) -> bool:
    for node in walk(function):
        if written_by(node, site) == parameter:
            return True
        if isinstance(node, ast.Call) and _is_users(node.func, site):
            for given, inner in _parameters(node, site):
                is_it = given.id == parameter
                if is_it and (inner is None or not depth or _writes(*inner, site, depth - 1)):
                    return True
    return False


def _dtype_of(name: str, loop: DeviceLoop, site: Site) -> str:
    function = site.function_of(loop)
    assert function is not None
    found = set()
    for node in walk(function.node):
        if isinstance(node, ast.Call) and written_by(node, site) == name:
            tile = allocation_of(argument(node, "src", 1), site)
            found.add(tile.dtype if tile is not None and tile.dtype is not None else "")
    floats = {dtype for dtype in found if "float" in dtype}
    if floats:
        raise ObstacleError(Kind.STATE, f"the body carries floats in the register {name}")
    return "uint32" if found == {"nl.uint32"} else "int32"


# -- the variable of a loop


def needs_register(loop: ast.For, site: Site) -> bool:
    """Whether the body uses the variable as a register, which a scalar may not replace."""
    assert isinstance(loop.target, ast.Name)
    return uses_as_register(_inside(loop), loop.target.id, site)


def uses_as_register(nodes: Iterable[ast.AST], name: str, site: Site, depth: int = 4) -> bool:
    """Whether a register function gets the name, or a function of which that is not known."""
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    return any(_takes_register(call, name, site, depth) for call in calls)


def _takes_register(call: ast.Call, name: str, site: Site, depth: int) -> bool:
    if site.canonical(call.func) in _READERS:
        arguments = [*call.args, *(k.value for k in call.keywords)]
        return any(isinstance(a, ast.Name) and a.id == name for a in arguments)
    inner = [i for given, i in _parameters(call, site) if given.id == name]
    return _is_users(call.func, site) and any(_inside_takes(i, site, depth) for i in inner)


def _inside_takes(inner: _Inner | None, site: Site, depth: int) -> bool:
    if inner is None or not depth:
        return True
    function, parameter = inner
    return uses_as_register(walk(function), parameter, site, depth - 1)


def is_known_number(node: ast.expr, site: Site) -> bool:
    """Whether an expression is a compile-time int: not a register, not a scalar of the device."""
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.BinOp(left=left, right=right):
            return is_known_number(left, site) and is_known_number(right, site)
        case ast.UnaryOp(operand=operand):
            return is_known_number(operand, site)
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
        case ast.Call(func=ast.Name(id=called)):
            return called in {"len", "min", "max", "int", "abs", "round"}
        case ast.Name():
            return _is_known_name(node, site)
    return False


def _is_known_name(node: ast.Name, site: Site) -> bool:
    function, bound = site.function_of(node), _bindings_of(node, site)
    if function is None or node.id in function.parameters:
        return False
    if not bound:
        return site.index.constant(node.id) is not None
    values = [b.value for b in bound if isinstance(b, ast.Assign)]
    is_plain = len(values) == len(bound) and not any(isinstance(v, ast.Name) for v in values)
    return is_plain and all(is_known_number(v, site) for v in values)
