"""Comparisons of objects: the parser compared fields, Python compares what the class says.

A class without `__eq__` compares by identity under Python, so a branch may be another one in 0.7.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.index import Function, bound_names, walk
from nki_migrate.rules.object_fields import becomes_dataclass
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_OTHER_BASES = {"Enum", "IntEnum", "StrEnum", "NamedTuple", "Protocol", "TypedDict"}
_COMPARED = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def _classes(site: Site) -> dict[str, ast.ClassDef]:
    return {n.name: n for n in site.index.nodes if isinstance(n, ast.ClassDef)}


def _class_of(node: ast.expr | None, site: Site) -> ast.ClassDef | None:
    """The class of this file that a name is known to be an object of."""
    if isinstance(node, ast.Call):
        return _classes(site).get(node.func.id) if isinstance(node.func, ast.Name) else None
    function = site.function_of(node) if isinstance(node, ast.Name) else None
    if function is None or not isinstance(node, ast.Name):
        return None
    found = set(_possible_classes(node.id, function, site))
    return found.pop() if len(found) == 1 else None


def _possible_classes(name: str, function: Function, site: Site) -> Iterator[ast.ClassDef | None]:
    """Classes that each parameter and assignment of a name may have."""
    for node in walk(function.node):
        if isinstance(node, ast.arg) and node.arg == name:
            yield _annotated(node.annotation, site)
    for node in bound_names(walk(function.node)):
        if node.id == name:
            yield _class_of(_constructed(site.index.parent(node)), site)


def _constructed(statement: ast.AST | None) -> ast.Call | None:
    value = statement.value if isinstance(statement, ast.Assign) else None
    return value if isinstance(value, ast.Call) else None


def _annotated(annotation: ast.expr | None, site: Site) -> ast.ClassDef | None:
    """The class of an annotation: `C`, `"C"`, `C | None`, `Optional[C]`."""
    if annotation is None:
        return None
    words = {n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)}
    words |= {str(n.value) for n in ast.walk(annotation) if isinstance(n, ast.Constant)}
    found = [c for name, c in _classes(site).items() if name in words]
    return found[0] if len(found) == 1 else None


def _decorators(node: ast.ClassDef) -> dict[str, ast.expr]:
    plain = [(d.func if isinstance(d, ast.Call) else d, d) for d in node.decorator_list]
    return {ast.unparse(f).rpartition(".")[2]: d for f, d in plain}


def _has_option(decorator: ast.expr, name: str, value: bool) -> bool:
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    given = [k.value for k in keywords if k.arg == name]
    return any(isinstance(v, ast.Constant) and v.value is value for v in given)


def _defines(node: ast.ClassDef, method: str) -> bool:
    return any(isinstance(s, ast.FunctionDef) and s.name == method for s in node.body)


def _compares_identity(node: ast.ClassDef, site: Site) -> bool:
    """Whether Python compares objects of the class, as it is migrated, by identity."""
    bases = {ast.unparse(b).rpartition(".")[2] for b in node.bases}
    if bases & _OTHER_BASES or bases - {"NKIObject", "object"} or _defines(node, "__eq__"):
        return False
    made = _decorators(node).get("dataclass")
    if made is None:
        return not becomes_dataclass(node, site)
    return _has_option(made, "eq", False)


def _fields(node: ast.ClassDef) -> list[str]:
    """The fields that the parser compares: the annotated ones, or what the constructor sets."""
    targets = [s.target for s in node.body if isinstance(s, ast.AnnAssign)]
    own = [t.id for t in targets if isinstance(t, ast.Name)]
    made = [s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
    places = [n for s in made for n in ast.walk(s) if isinstance(n, ast.Attribute)]
    stored = [n for n in places if isinstance(n.ctx, ast.Store)]
    return own or list(dict.fromkeys(n.attr for n in stored if ast.unparse(n.value) == "self"))


def _check_comparison(node: ast.Compare, site: Site) -> Iterator[Finding]:
    """NKI6009: `==` between objects of a class that does not define it."""
    if site.function_of(node) is None or not any(isinstance(o, _COMPARED) for o in node.ops):
        return
    sides = [node.left, *node.comparators]
    classes = [c for side in sides if (c := _class_of(side, site))]
    made = next((c for c in classes if _compares_identity(c, site)), None)
    if made is None or any(isinstance(s, ast.Constant) for s in sides):
        return
    said = (
        f"`{site.source(node)}` compared the fields of `{made.name}` up to 0.6; Python compares "
        f"identity, as `{made.name}` has no `__eq__`: compare fields, or make it a dataclass"
    )
    text = _by_fields(node, made, site)
    if text is None:
        yield site.manual("NKI6009", node, said)
        return
    yield site.finding(
        "NKI6009", node, said, edits=[site.replace(node, text)], safety=Safety.UNSAFE,
        assumption="the fields are what is meant to be compared",
    )  # fmt: skip


_SIGNS: dict[type[ast.cmpop], str] = {ast.Eq: "==", ast.NotEq: "!="}


def _by_fields(node: ast.Compare, made: ast.ClassDef, site: Site) -> str | None:
    """The comparison field by field, of two names of the class."""
    sides, fields = [node.left, *node.comparators], _fields(made)
    names = [s.id for s in sides if isinstance(s, ast.Name) and _class_of(s, site) is made]
    sign = _SIGNS.get(type(node.ops[0]))
    if len(sides) != 2 or len(names) != 2 or not fields or sign is None:
        return None
    texts = [", ".join(f"{name}.{field}" for field in fields) for name in names]
    one = len(fields) == 1
    return f"({texts[0]} {sign} {texts[1]})" if one else f"(({texts[0]}) {sign} ({texts[1]}))"


_CACHES = {"cache", "lru_cache"}


def _check_key(node: ast.Dict | ast.Subscript | ast.FunctionDef, site: Site) -> Iterator[Finding]:
    """NKI6010: objects as keys of dicts and caches."""
    if site.function_of(node) is None:
        return
    for key in _keys(node):
        is_parameter = isinstance(key, ast.arg)
        made = _annotated(key.annotation, site) if is_parameter else _class_of(key, site)
        if made is not None and not _hashes_fields(made):
            said = (
                f"objects of `{made.name}` are keys here: Python hashes them by identity, or not "
                "at all once they define `==`; make the class @dataclass(frozen=True)"
            )
            yield site.warn("NKI6010", key, said)


def _hashes_fields(made: ast.ClassDef) -> bool:
    decorator = _decorators(made).get("dataclass")
    is_frozen = decorator is not None and _has_option(decorator, "frozen", True)
    return is_frozen or _defines(made, "__hash__")


def _keys(node: ast.Dict | ast.Subscript | ast.FunctionDef) -> list[ast.expr | ast.arg]:
    if isinstance(node, ast.Dict):
        return [k for k in node.keys if k is not None]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    names = {ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list}
    is_cached = any(name.rpartition(".")[2] in _CACHES for name in names)
    return [*node.args.args] if is_cached else []


_METHODS = {
    "index": "`list.index` gave None where nothing is found, and raises ValueError in Python",
    "remove": "`list.remove` removed every equal element, and removes the first in Python",
    "count": "`list.count` gave the length, and counts equal elements in Python",
}


def _check_method(node: ast.Call | ast.Compare, site: Site) -> Iterator[Finding]:
    """NKI6011: what the parser's own lists and comparisons did."""
    if site.function_of(node) is None:
        return
    if isinstance(node, ast.Compare):
        if len(node.ops) > 1 and any(isinstance(c, ast.Call) for c in node.comparators[1:]):
            said = "up to 0.6 all parts of a chained comparison ran; Python stops at a false one"
            note = Severity.NOTE
            yield site.finding("NKI6011", node, said, severity=note, safety=Safety.MANUAL)
        return
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr in _METHODS and _is_list(func.value, site):
        yield site.warn("NKI6011", node, f"{_METHODS[func.attr]}: write out what is meant")


def _is_list(node: ast.expr, site: Site) -> bool:
    function = site.function_of(node)
    if not isinstance(node, ast.Name) or function is None:
        return isinstance(node, ast.List)
    bound = [site.index.parent(n) for n in bound_names(walk(function.node)) if n.id == node.id]
    values = [b.value for b in bound if isinstance(b, ast.Assign)]
    return bool(values) and all(isinstance(v, ast.List | ast.ListComp) for v in values)


HOOKS = {
    "NKI6009": Hooks(nodes=(ast.Compare,), check=_check_comparison),
    "NKI6010": Hooks(nodes=(ast.Dict, ast.Subscript, ast.FunctionDef), check=_check_key),
    "NKI6011": Hooks(nodes=(ast.Call, ast.Compare), check=_check_method),
}
