"""Public names of a package that are imported at their first use."""

from __future__ import annotations

TYPE_CHECKING = False
"""That of `typing`: under `python -m` an import at this point may find a file of the user's."""
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, from module → names separated by spaces.

    A name must differ from every module of the package: an import of such a module would replace
    it. `""` precedes modules of the package itself.
    """
    places = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> Any:
        import importlib

        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not places[name]:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(f"{package}.{places[name]}"), name)

    return get, lambda: sorted(places)
