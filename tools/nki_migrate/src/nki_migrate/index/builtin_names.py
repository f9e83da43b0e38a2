"""Builtins that are something else at a place: new code must not call them there by that name.

`range` may be a function of the module, `min` a parameter or a tile. Python decides by scope: a
name that a function binds anywhere is its own from its first line to its last.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from nki_migrate.index.file import FileIndex
from nki_migrate.index.walking import children

_NAMES = frozenset(n for n in dir(builtins) if n.isidentifier() and not n.startswith("_"))
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*\(")
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Own = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def is_shadowed(index: FileIndex, node: ast.AST, name: str) -> bool:
    """Whether the name of a builtin is rebound where the node is."""
    around = tuple(index.ancestors(node)) or (node,)
    for scope in (s for s in around if isinstance(s, _Scope | ast.Module)):
        if name in _bound_in(scope):
            return True
    inner = (s for s in around if isinstance(s, _Own))
    return any(name in _stored(g.target) for comp in inner for g in comp.generators)


def shadowed_call(
    index: FileIndex, node: ast.AST, old: Iterable[str], new: Iterable[str]
) -> str | None:
    """A builtin that new code at the node calls, and the old did not, where it is another thing.

    A call of the old code is the file's own, and may be in the new code as often as before.
    """
    called = _calls(new)
    more = called - _calls(old) if called else called
    return next((n for n in sorted(more) if is_shadowed(index, node, n)), None)


def _calls(texts: Iterable[str]) -> Counter[str]:
    return Counter(n for text in texts for n in _CALLED.findall(text) if n in _NAMES)


@lru_cache(maxsize=64)
def _bound_in(scope: ast.AST) -> frozenset[str]:
    """The builtins' names that a function or a module binds itself."""
    names: set[str] = set()
    outside: set[str] = set()
    queue = children(scope)
    for node in queue:
        names.update(_bound(node))
        if isinstance(node, ast.Global | ast.Nonlocal):
            outside.update(node.names)
        if not isinstance(node, _Scope | ast.ClassDef):
            queue += [c for c in children(node) if not _is_comprehension_target(node, c)]
        elif not isinstance(node, ast.Lambda):
            queue += node.decorator_list
    if isinstance(scope, ast.Module):
        names |= _made_global(scope)
    return frozenset((names - outside) & _NAMES)


def _is_comprehension_target(parent: ast.AST, child: ast.AST) -> bool:
    return isinstance(parent, ast.comprehension) and child is parent.target


def _made_global(module: ast.Module) -> set[str]:
    """Names that functions bind in the module by `global`."""
    return {n for node in ast.walk(module) if isinstance(node, ast.Global) for n in node.names}


def _stored(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del()):
            yield node.id
        case ast.arg():
            yield node.arg
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.alias():
            yield node.asname or node.name.partition(".")[0]
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar() if node.name:
            yield node.name
        case ast.MatchMapping() if node.rest:
            yield node.rest
