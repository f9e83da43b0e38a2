"""The name under which time estimates will be asked for."""

from __future__ import annotations

from typing import Any, NoReturn

from nki_runtime.errors import NotBuiltError


def estimate(kernel: Any, *arrays_or_specs: Any, target: str | None = None) -> NoReturn:
    """How long `kernel` would take on `target`. Not built yet: always raises NotBuiltError."""
    raise NotBuiltError(
        "nki_runtime.estimate is not built yet",
        hint="simulate(kernel)(*arrays) runs the kernel and gives its results, without times",
    )
