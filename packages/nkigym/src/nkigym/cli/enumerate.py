"""`nkigym enumerate`: how many programs there are, and what that took."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from neuroncore.commands.parser import add_progress, at_least
from neuroncore.commands.terminal import StatusLine
from nkigym.tile_rewrites import (
    KNOWN,
    TRANSFORMS,
    Enumeration,
    RewriteGraph,
    canonical_count,
    exhaust,
    rewrite_graph,
)
from nkigym.tile_rewrites.graph import certificate
from nkigym.tiles import (
    TileProgram,
    matmul_root,
    repeated_add_root,
    rmsnorm_matmul_root,
    sum_and_product_root,
    tensor_add_root,
)


def peak_mb() -> float | None:
    """The largest resident size so far, in 10⁶ bytes; None where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)


AXES = ("K", "M", "N")
MOST_TILES = 64
"""Along an axis: 8192 elements."""

ROOTS: Mapping[str, Callable[[int, int, int], TileProgram]] = {
    "matmul": lambda k, m, n: matmul_root(m, n, k),
    "repeated_add": lambda _, m, n: repeated_add_root(m, n),
    "rmsnorm_matmul": lambda k, m, n: rmsnorm_matmul_root(m, n, k),
    "sum_and_product": lambda _, m, n: sum_and_product_root(m, n),
    "tensor_add": lambda _, m, n: tensor_add_root(m, n),
}
"""Functions by the checker's names for them."""

WITHOUT_CONTRACTION = ("repeated_add", "sum_and_product", "tensor_add")


@dataclass(frozen=True, slots=True)
class Enumerated:
    """The report. `visited` counts the root and every transition; `canonical` are the
    programs that differ in more than names, order and numbering of tiles, None where there are too
    many ways to number them and for all but products under public transforms; all of `certified`
    are reached by proved steps alone, and `checked` have passed the checker, where requested;
    `depths` are how many programs are 0, 1, … steps from the root.
    """

    function: str
    tiles: Mapping[str, int]
    transforms: Sequence[str]
    root_statements: int
    root_opportunities: int
    unique: int
    canonical: int | None
    visited: int
    certified: int
    checked: int
    complete: bool
    depths: Sequence[int]
    cpu_s: float
    peak_mb: float | None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which space, and how to show it."""
    add = parser.add_argument
    add("--function", choices=tuple(ROOTS), default="matmul",
        help="what the programs compute (default: matmul)")  # fmt: skip
    add("--tiles", type=_tiles, required=True, metavar="K,M,N",
        help="tiles of 128 along the contracted axis, rows and columns of the result")  # fmt: skip
    add("--transforms", type=_transforms, default=tuple(TRANSFORMS), metavar="NAME[,NAME]",
        help=f"what steps may be taken: {', '.join(KNOWN)} "
        f"(default: {','.join(TRANSFORMS)})")  # fmt: skip
    add("--reduced", action="store_true",
        help="leave out steps that lead where another order of the same steps leads")  # fmt: skip
    add("--check", action="store_true",
        help="also check every certificate, by code that the search does not share")  # fmt: skip
    add("--limit", type=at_least(1), default=None, metavar="N",
        help="look for no more once N programs are found")  # fmt: skip
    add_progress(parser)
    add("--output-format", choices=tuple(FORMATS), default="text")


def run(given: argparse.Namespace) -> int:
    """Prints what was found; 1 where there was nothing to search, or where it is not all."""
    began = time.process_time()
    if given.function in WITHOUT_CONTRACTION and given.tiles[0] != 1:
        given.parser.error(f"{given.function} contracts nothing: --tiles 1,M,N")
    space = rewrite_graph(ROOTS[given.function](*given.tiles), given.transforms)
    found = _exhaust(space, given)
    checked = _checked(space, found, given.function) if given.check else 0
    is_public = given.function == "matmul" and set(given.transforms) <= TRANSFORMS.keys()
    enumerated = Enumerated(
        given.function,
        dict(zip(AXES, given.tiles, strict=True)),
        given.transforms,
        len(space.program.statements),
        len(space.steps(space.root)),
        unique=len(found.depths),
        canonical=canonical_count(space, found.depths) if is_public else None,
        visited=found.transitions + 1,
        certified=len(found.depths),
        checked=checked,
        complete=found.complete,
        depths=[number for _, number in sorted(Counter(found.depths.values()).items())],
        cpu_s=round(time.process_time() - began, 3),
        peak_mb=peak_mb(),
    )
    print(FORMATS[given.output_format](enumerated))
    return _judged(enumerated, given.check)


def _judged(enumerated: Enumerated, check: bool) -> int:
    """The exit code, and what the numbers do not say."""
    if check and enumerated.checked < enumerated.unique:
        wrong = enumerated.unique - enumerated.checked
        sys.stderr.write(f"nkigym: {wrong:,} programs do not pass the checker; report this\n")
        return 1
    if not enumerated.root_opportunities:
        names = " and ".join(enumerated.transforms)
        sys.stderr.write(f"nkigym: nothing to search: {names} can do nothing with the root\n")
        return 1
    if not enumerated.complete:
        sys.stderr.write("nkigym: stopped at --limit; there are more programs\n")
        return 1
    return 0


def _exhaust(space: RewriteGraph, given: argparse.Namespace) -> Enumeration:
    line = StatusLine(lines=given.progress)

    def progress(programs: int, transitions: int) -> None:
        line.show(f"{programs:,} programs, {transitions:,} transitions")

    limit = float("inf") if given.limit is None else given.limit
    found = exhaust(space, given.reduced, progress, limit)
    line.close()
    return found


def _checked(space: RewriteGraph, found: Enumeration, function: str) -> int:
    """How many certificates are valid."""
    return sum(not certificate(space, node, function).findings() for node in found.depths)


# -- formats ---------------------------------------------------------------------------------------


def _text(found: Enumerated) -> str:
    tiles = ", ".join(f"{axis}={number}" for axis, number in found.tiles.items())
    peak = "" if found.peak_mb is None else f", {found.peak_mb:,.0f} MB at the peak"
    checked = f", {found.checked:,} checked" if found.checked else ""
    return "\n".join([
        f"{found.function} in tiles {tiles}: {found.root_statements:,} statements, "
        f"{found.root_opportunities:,} opportunities",
        f"{found.unique:,} programs, {found.certified:,} certified{checked}",
        f"{'?' if found.canonical is None else f'{found.canonical:,}'} but for names, order and "
        "numbering of tiles",
        f"{found.visited:,} visited: the root, {found.visited - 1:,} transitions",
        f"by depth: {' '.join(map(str, found.depths))}",
        f"{found.cpu_s:.2f} s of CPU{peak}",
    ])  # fmt: skip


FORMATS: dict[str, Callable[[Enumerated], str]] = {
    "text": _text,
    "json": lambda found: json.dumps(asdict(found)),
}
"""What --output-format offers."""


# -- options ---------------------------------------------------------------------------------------


def _tiles(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != len(AXES):
        raise argparse.ArgumentTypeError(f"{text!r} is not three numbers, such as 2,1,2")
    for axis, number in zip(AXES, numbers, strict=True):
        if not 1 <= number <= MOST_TILES:
            raise argparse.ArgumentTypeError(f"{number} tiles along {axis}; 1 to {MOST_TILES}")
    return numbers


def _transforms(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in KNOWN:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(KNOWN)}")
    if not names:
        raise argparse.ArgumentTypeError(f"no transform; there are {', '.join(KNOWN)}")
    return names
