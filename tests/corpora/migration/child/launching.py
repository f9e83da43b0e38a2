"""How a setup's launches reach migrated kernels: `kernel[grid](…)` where the grid became loops."""

from __future__ import annotations

from collections.abc import Collection
from types import ModuleType
from typing import Any


class _WithoutGrid:
    """A kernel whose bracket says nothing."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __getitem__(self, grid: Any) -> Any:
        return self._kernel

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._kernel(*args, **kwargs)


class Migrated:
    """A migrated module as a setup sees it; the kernels of `gridded` keep their brackets."""

    def __init__(self, module: ModuleType, gridded: Collection[str]) -> None:
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_gridded", frozenset(gridded))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        drops = hasattr(type(value), "__getitem__") and callable(value)
        return _WithoutGrid(value) if drops and name not in self._gridded else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)
