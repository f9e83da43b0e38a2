"""Whether a package that is not ours answers to a name, found without importing it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType

_NOTHING: Mapping[str, ModuleType] = {}


def find_real(root: str, imported: Mapping[str, ModuleType] = _NOTHING) -> str | None:
    """Where the package `root` comes from, or None when no package of that name can be imported.

    `imported` is what sys.modules contains beneath our switches. A bare folder (a namespace
    package, without an origin) does not count: Python, too, lets any regular package win over one.
    """
    if root in imported:
        module = imported[root]
        return getattr(module, "__file__", None) or f"sys.modules[{root!r}] (no file)"
    spec = _find_spec(root, None)
    return spec.origin if spec is not None else None


def _find_spec(name: str, path: Iterable[str] | None) -> ModuleSpec | None:
    """importlib.util.find_spec, but blind to sys.modules, where our own modules may lie."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(name, path) if find is not None else None
        if spec is not None:
            return spec
    return None
