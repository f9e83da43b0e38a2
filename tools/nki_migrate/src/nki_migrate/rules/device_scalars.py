"""Numbers of the device: registers, and the scalars of 0.7."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.index import bound_names, walk
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.loop_registers import is_known_number, is_register, uses_as_register
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import allocation_of, argument, is_whole_statement

_PLACES = {"lower": 0, "upper": 1, "body_fun": 2}


def _check_variable(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI6005: a body of `fori_loop` that uses its variable as a register."""
    if not is_device_call(call, site, "nl.fori_loop"):
        return
    lower, upper, body = (argument(call, name, place) for name, place in _PLACES.items())
    variable = _variable_used_as_register(body, site)
    bounds = [bound for bound in (upper, lower) if bound is not None]
    if variable is None or any(_gives_registers(bound, site) for bound in bounds):
        return
    said = f"the variable {variable} is a scalar where no bound is a register, and is used as one"
    bound = next((b for b in bounds if is_known_number(b, site)), None)
    instructions = site.index.alias_for("nisa")
    if bound is None or instructions is None:
        yield site.manual("NKI6005", call, f"{said}: make a bound a register")
        return
    edits = [site.replace(bound, f"{instructions}.register_alloc({site.source(bound)})")]
    yield site.finding("NKI6005", call, f"{said}: so is a bound", edits=edits)


def _variable_used_as_register(body: ast.expr | None, site: Site) -> str | None:
    """The parameter of a body, if register functions get it."""
    if isinstance(body, ast.Lambda):
        function: ast.FunctionDef | ast.Lambda | None = body
    else:
        function = _function_near(body, site) if isinstance(body, ast.Name) else None
    if function is None or len(function.args.args) != 1:
        return None
    name = function.args.args[0].arg
    return name if uses_as_register(walk(function), name, site) else None


def _function_near(name: ast.Name, site: Site) -> ast.FunctionDef | None:
    """The function of a name: the last one defined above the call in a block around it."""
    found = [n for n in site.index.nodes if isinstance(n, ast.FunctionDef) and n.name == name.id]
    around = [*site.index.ancestors(name)]
    visible = [n for n in found if site.index.parent(n) in around and n.lineno < name.lineno]
    return max(visible, key=lambda n: n.lineno, default=None)


def _gives_registers(bound: ast.expr, site: Site) -> bool:
    """Whether a bound is a register."""
    func = bound.func if isinstance(bound, ast.Call) else None
    return site.canonical(func) == "nisa.register_alloc" or is_register(bound, site)


def _check_scalar(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI6006: a register that only chooses an address may be a scalar."""
    if not is_device_call(call, site, "nisa.register_load"):
        return
    register, cell = argument(call, "dst", 0), argument(call, "src", 1)
    if not isinstance(register, ast.Name) or not _is_int32(cell, site):
        return
    allocation = _only_allocation(register, site)
    is_plain = is_whole_statement(call, site) and _only_offsets(register, call, site)
    if allocation is None or cell is None or not is_plain:
        return
    instructions = site.index.alias_for("nisa")
    said = f"`{register.id}` only chooses an address: nisa.scalar_load gives a scalar"
    text = f"{register.id} = {instructions}.scalar_load({site.source(cell)})"
    edits = [site.remove_line(allocation), site.replace(call, text)]
    basis = ("the cell is int32 of shape (1, 1)",)
    severity = Severity.WARNING
    yield site.finding("NKI6006", call, said, edits=edits, basis=basis, severity=severity)


def _is_int32(cell: ast.expr | None, site: Site) -> bool:
    made = allocation_of(cell, site)
    return made is not None and made.dtype == "nl.int32" and made.sizes == (1, 1)


def _only_allocation(register: ast.Name, site: Site) -> ast.Assign | None:
    """The one `register = nisa.register_alloc()`, without a value."""
    function = site.function_of(register)
    bound = bound_names(walk(function.node)) if function is not None else []
    statements = [site.index.parent(n) for n in bound if n.id == register.id]
    made = statements[0] if len(statements) == 1 and is_register(register, site) else None
    value = made.value if isinstance(made, ast.Assign) else None
    is_bare = isinstance(value, ast.Call) and not value.args and not value.keywords
    return made if isinstance(made, ast.Assign) and is_bare else None


def _only_offsets(register: ast.Name, load: ast.Call, site: Site) -> bool:
    """Whether every other use of the register is `scalar_offset=`, below in the same block."""
    function = site.function_of(register)
    assert function is not None
    uses = [n for n in _reads(function.node, register.id) if n is not register]
    block = site.index.parent(site.index.statement_of(load) or load)
    below = {n for n in _reads(block or load, register.id) if n.lineno > load.lineno}
    offsets = [n for n in uses if getattr(site.index.parent(n), "arg", "") == "scalar_offset"]
    return bool(uses) and len(offsets) == len(uses) and set(uses) <= below


def _reads(node: ast.AST, name: str) -> list[ast.Name]:
    names = [n for n in walk(node) if isinstance(n, ast.Name) and n.id == name]
    return [n for n in names if isinstance(n.ctx, ast.Load)]


_COMPUTES = {"nisa.tensor_scalar", "nisa.tensor_tensor"}


def _check_computed(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI6007: an address that instructions compute in a cell."""
    if not is_device_call(call, site, "nisa.register_load"):
        return
    cell, function = argument(call, "src", 1), site.function_of(call)
    assert function is not None
    calls = [n for n in walk(function.node) if isinstance(n, ast.Call)]
    writes = [c for c in calls if site.canonical(c.func) in _COMPUTES]
    targets = {ast.dump(t) for c in writes if (t := argument(c, "dst", 0)) is not None}
    made = allocation_of(cell, site)
    if cell is not None and ast.dump(cell) in targets and made and made.dtype == "nl.int32":
        said = "a scalar computes: `s = nisa.scalar_load(cell)`, then `s * 4 + 1` as an offset"
        note = Severity.NOTE
        yield site.finding("NKI6007", call, said, severity=note, safety=Safety.MANUAL)


HOOKS = {
    "NKI6005": Hooks(nodes=(ast.Call,), check=_check_variable),
    "NKI6006": Hooks(nodes=(ast.Call,), check=_check_scalar),
    "NKI6007": Hooks(nodes=(ast.Call,), check=_check_computed),
}
