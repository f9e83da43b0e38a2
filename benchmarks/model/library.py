"""Kernels of the vendor's library from a checkout: published times that no constant was fitted to.

python -m benchmarks.model library ~/nki-library
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median, quantiles
from types import ModuleType
from typing import Any

import nki_runtime
from neuroncore.errors import KernelError
from neuroncore.timeline import Timeline

HERE = Path(__file__).parent
NKI, TARGET = "0.3", "trn2"
SOURCES = Path("src", "nkilib_src")
TYPES = "nkilib.core.utils.common_types"


@dataclass(frozen=True, slots=True)
class LibraryRow:
    """A published time of one launch (us)."""

    id: str
    function: str
    cores: int
    value: float
    inputs: Mapping[str, str]
    """By parameter: 128x512 float32."""
    given: Mapping[str, Any]
    cite: str


@cache
def library_rows() -> tuple[LibraryRow, ...]:
    """The rows of library.toml."""
    kernels = tomllib.loads((HERE / "library.toml").read_text(encoding="utf-8"))["kernel"]
    return tuple(_row(kernel, row) for kernel in kernels for row in kernel["row"])


def _row(kernel: Mapping[str, Any], row: Mapping[str, Any]) -> LibraryRow:
    fields: dict[str, Any] = {"function": kernel["function"], "cite": kernel["cite"], **row}
    fields["given"] = {**kernel.get("given", {}), **row.get("given", {})}
    return LibraryRow(**fields)


def library_lines(checkout: Path) -> Iterator[str]:
    """Every row with the estimate of its kernel, then how far off they are."""
    sys.path.insert(0, str(checkout / SOURCES))
    found: list[tuple[float, bool, float]] = []
    with nki_runtime.use(backend="beta2", nki=NKI, target=TARGET):
        for row in library_rows():
            try:
                made = _estimate(row)
            except (KernelError, AssertionError, ImportError) as reason:
                yield f"{row.id:36} {row.cores} {str(reason).splitlines()[0]}"
                continue
            interval, error = made.uncertainty, made.launch_ns / 1e3 / row.value - 1
            inside = interval.low_ns <= row.value * 1e3 <= interval.high_ns
            found.append((abs(error), inside, interval.high_ns / made.launch_ns - 1))
            yield (
                f"{row.id:36} {row.cores} {made.launch_ns / 1e3:10.2f} us {row.value:10.2f} us "
                f"{100 * error:+6.1f} %{'' if inside else '  outside'}"
            )
    sizes, held, widths = zip(*found, strict=True)
    ninth = quantiles(sizes, n=10, method="inclusive")[8]
    yield (
        f"median {median(sizes):.1%} p90 {ninth:.1%} ({len(sizes)} of {len(library_rows())} rows); "
        f"80 % interval: {sum(held)} inside, half-width {median(widths):.0%} in the median"
    )


def _estimate(row: LibraryRow) -> Timeline:
    module, _, name = row.function.partition(":")
    code = import_module(module)
    kernel = getattr(code, name)
    inputs = {n: _spec(*said.split()) for n, said in row.inputs.items()}
    given = {n: _argument(code, value) for n, value in row.given.items()}
    launched = kernel[row.cores] if row.cores > 1 else kernel
    return nki_runtime.estimate(launched, **inputs, **given, target=TARGET)


def _spec(shape: str, dtype: str) -> Any:
    return tuple(map(int, shape.split("x"))), dtype


def _argument(code: ModuleType, value: Any) -> Any:
    """Lists are tuples, nl.NAME is of the language, A.B a value of the library's enumerations."""
    if isinstance(value, list):
        return tuple(_argument(code, each) for each in value)
    if isinstance(value, dict):
        made = {n: _argument(code, each) for n, each in value.items() if n != "class"}
        return getattr(code, value["class"])(**made)
    if not isinstance(value, str):
        return value
    owner, _, name = value.partition(".")
    return getattr(getattr(import_module(TYPES), owner, None) or getattr(code, owner), name)
