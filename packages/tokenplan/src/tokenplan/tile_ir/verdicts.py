"""Verdicts on accesses: their views, and whether the target's bulk copy engine (TMA) applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import gcd, prod

from tokenplan.graph.diagnostics import Diagnostic
from tokenplan.tile_ir.description import Compute, Described, DescriptionError, Transfer, walk
from tokenplan.tile_ir.tile_views import TileView, ViewDim
from tokenplan.tile_ir.views import view_of

ALIGNMENT = 16
"""Bytes to which TMA aligns addresses, strides and rows."""
LEAST_PADDED = 4096
"""Elements of a tile from which tileiras 13.5 pads in software with TMA, as its remarks show."""
ARCHITECTURES = tuple(f"sm_{n}" for n in (80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121))
"""That tileiras 13.5 compiles for, as its help lists them."""
FIRST_TARGET = 90
"""sm_90 is the first architecture with TMA."""

CLUSTERS = "CUDA C++ Programming Guide: thread block clusters, compute capability 9.0"
HINTS_SINCE = {"num_cta_in_cga": 90}
"""Hints that older architectures ignore: without clusters of CTAs the binary is the same."""

DTYPES_SINCE = {"f8e4m3fn": 89, "f8e5m2": 89, "f8e8m0fnu": 100}
"""The first architecture of each dtype that older ones reject ("unsupported type"), as found by
compiling a copy of every dtype for all of them with tileiras 13.5.37."""


@dataclass(frozen=True, slots=True)
class AccessVerdict:
    """The view of an access; `obstacles` are the reasons against TMA, empty for none."""

    access: Transfer
    view: TileView
    obstacles: tuple[str, ...]

    @property
    def details(self) -> dict[str, str]:
        """The verdict in plans and reports."""
        return {"view": str(self.view), "TMA": ", ".join(self.obstacles) or "possible"}


def verdicts(described: Described, target: str = "sm_90") -> Iterator[AccessVerdict]:
    """One verdict per load and store, in program order.

    TMA being possible does not mean that it is used: the compiler takes it where it is profitable,
    which are above all loads that feed a matrix multiplication.
    """
    check_target(described, target)
    for made in described.transfers():
        view = view_of(made)
        rules = ((_RULES[reason], reason) for reason in _RULES)
        obstacles = tuple(reason for rule, reason in rules if rule(made, view, target))
        yield AccessVerdict(made, view, obstacles)


def has_slow_load(described: Described, target: str) -> bool:
    """Whether TMA cannot make a load, or a matrix product loads a list of rows (a slow path).

    The compiler makes scalar copies of such rows: 11 times the instructions of a partition view.
    """
    multiplied: set[str] = set()
    for node in reversed(list(walk(described.body))):
        if isinstance(node, Compute) and (node.operation == "mma" or node.result.id in multiplied):
            multiplied.update(tile.id for tile in node.inputs)
    return any(
        v.obstacles or (v.view.kind == "gather_scatter_view" and v.access.tile.id in multiplied)
        for v in verdicts(described, target)
        if v.access.kind == "load"
    )


def diagnostics(judged: Iterable[AccessVerdict]) -> list[Diagnostic]:
    """W4 for each access that TMA cannot make."""
    return [
        Diagnostic("W4", f"{v.access.id} of {v.access.array.name} ({v.view}) cannot use TMA: "
                   f"{', '.join(v.obstacles)}", _where(v.access))
        for v in judged
        if v.obstacles
    ]  # fmt: skip


def _where(made: Transfer) -> str:
    return f"{made.place.file}:{made.place.line}" if made.place else ""


def architecture(target: str) -> int:
    """The number of sm_90 and so on; DescriptionError for one that tileiras does not have."""
    if target not in ARCHITECTURES:
        raise DescriptionError(
            f"unknown architecture {target!r}", expected=", ".join(ARCHITECTURES)
        )
    return int(target.removeprefix("sm_"))


def check_target(described: Described, target: str) -> None:
    """Raises DescriptionError for a dtype that the target does not have."""
    number = architecture(target)
    for array in described.arrays:
        if number < (since := DTYPES_SINCE.get(array.dtype, 0)):
            raise DescriptionError(
                f"array {array.name}: {target} does not have {array.dtype}",
                expected=f"sm_{since} or newer",
            )


def first_target(described: Described) -> str:
    """The first architecture with TMA that has every dtype of the kernel."""
    since = [FIRST_TARGET, *(DTYPES_SINCE.get(array.dtype, 0) for array in described.arrays)]
    return next(name for name in ARCHITECTURES if architecture(name) >= max(since))


def ignored_hints(described: Described, target: str) -> list[str]:
    """Hints of the kernel that the target does not have."""
    number = architecture(target)
    return [name for name in described.hints if number < HINTS_SINCE.get(name, 0)]


Rule = Callable[[Transfer, TileView, str], bool]


def _leading(view: TileView) -> ViewDim | None:
    """The dimension whose elements are contiguous: with several, the last."""
    found = [dim for dim in view.dims if dim.stride == 1 and dim.size > 1]
    return found[-1] if found else None


def _misaligned_base(made: Transfer, view: TileView, target: str) -> bool:
    offset = view.offset * made.array.itemsize
    return view.is_view and gcd(made.array.alignment, offset) % ALIGNMENT != 0


def _misaligned_stride(made: Transfer, view: TileView, target: str) -> bool:
    leading, size = _leading(view), made.array.itemsize
    if not view.is_view:
        return False
    return leading is None or any(
        dim.stride * size % ALIGNMENT for dim in view.dims if dim is not leading and dim.size > 1
    )


def _narrow(made: Transfer, view: TileView, target: str) -> bool:
    leading = _leading(view)
    return leading is not None and leading.tile * made.array.itemsize % ALIGNMENT != 0


def _misaligned_steps(made: Transfer, view: TileView, target: str) -> bool:
    if made.traversal is None:
        return False
    leading = _leading(view)
    if leading is None:
        return False
    return made.traversal[leading.dim] * made.array.itemsize % ALIGNMENT != 0


def _padded(made: Transfer, view: TileView, target: str) -> bool:
    """Whether a small tile could load elements outside the array as something other than zero."""
    if made.padding in (None, "zero") or not view.is_view:
        return False
    steps = made.traversal or tuple(dim.tile for dim in view.dims)
    ends = [
        -(-d.size // s) * s - s + d.tile > d.size for d, s in zip(view.dims, steps, strict=True)
    ]
    return any(ends) and prod(made.tile.shape) < LEAST_PADDED


_RULES: dict[str, Rule] = {
    "no TMA before sm_90": lambda made, view, target: architecture(target) < FIRST_TARGET,
    "allow_tma is false": lambda made, view, target: made.hints.get("allow_tma") is False,
    "a pointer tile": lambda made, view, target: not view.is_view,
    "base pointer not 16-byte aligned": _misaligned_base,
    "stride not 16-byte aligned": _misaligned_stride,
    "leading tile dimension not 16-byte aligned": _narrow,
    "contiguous striding not 16-byte aligned": _misaligned_steps,
    "software-implemented TMA padding is not profitable for this tile": _padded,
    "memory semantic must be weak for TMA operations": lambda made, view, target: (
        made.order != "weak"
    ),
}
"""By the words of tileiras 13.5, where it has some; 13.4 rejects padding with "TMA only supports
zero padding"."""
