"""Grids that no launch in view determines: as many programs as their stores cover the result with.

`out[nl.program_id(0) * 128 + …]` is written by `out.shape[0] // 128` programs. Runs that had as
many confirm it; without one it is an assumption.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Sym, Tensor
from nki_migrate.index.grids import CORES
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.scope import Cover
from nki_migrate.rewriting.inference.observations import seen_counts, seen_maximum
from nki_migrate.rewriting.views.tensors import storage_dims

_SIZE = re.compile(r"(\w+)\.shape\[\d+\]")


def note_cover(ctx: Context, dst: Tensor, *, is_masked: bool) -> None:
    """Note how many programs write all of what a store writes a part of."""
    for dim, size in zip(storage_dims(dst) or (), dst.storage.shape or (), strict=False):
        atoms = dim.offset.poly.atoms()
        ids = atoms & ctx.unknown_programs.keys()
        is_plain = len(ids) == 1 and not any("num_programs" in atom for atom in atoms)
        for atom in ids:
            axis, call = ctx.unknown_programs[atom]
            found = _cover(ctx, dim.offset.poly, atom, size, is_masked) if is_plain else None
            counts = seen_counts(ctx, call)
            seen = max(counts) + 1 if counts else None
            text, number = found or ("", None)
            ctx.seen.covers.setdefault(axis, set()).add(Cover(text, number, seen))


def _cover(
    ctx: Context, offset: Poly, atom: str, size: Sym, is_masked: bool
) -> tuple[str, int | None] | None:
    """How many programs there are: its text, and the largest number that a run had of it."""
    step = (
        offset.substitute(atom, Poly.number(1)) - offset.substitute(atom, Poly.number(0))
    ).constant
    text = _size_text(ctx, size)
    if step is None or step < 1 or text is None:
        return None
    largest = size.value if size.value is not None else seen_maximum(ctx, size.poly)
    number = None if largest is None else -(-largest // step) if is_masked else largest // step
    if size.value is not None:
        return str(number), number
    if step == 1:
        return text, number
    return (f"({text} + {step - 1}) // {step}" if is_masked else f"{text} // {step}"), number


def _size_text(ctx: Context, size: Sym) -> str | None:
    """A size in words that hold at the head of the kernel: a number, or one of a parameter's."""
    atom = ctx.facts.reduced(size.poly).single_atom or ""
    named = _SIZE.fullmatch(atom)
    if size.value is not None:
        return str(size.value)
    return atom if named and named[1] in ctx.function.parameters else None


def covering_extents(covers: Mapping[int, set[Cover]]) -> tuple[tuple[str, ...], bool] | None:
    """The extents of all axes, and whether runs confirm them; None if an axis has none.

    None, too, if the programs of every run may be cores.
    """
    found = [covers.get(axis, set()) for axis in range(max(covers, default=-1) + 1)]
    seen = {cover.seen for one in found for cover in one}
    are_cores = len(found) == 1 and seen <= {*range(1, CORES + 1)}
    if not found or are_cores or not all(map(_agree, found)):
        return None
    return tuple(next(iter(one)).text for one in found), None not in seen


def _agree(covers: set[Cover]) -> bool:
    """Whether all stores need the same number of programs, and every run had as many."""
    texts = {cover.text for cover in covers}
    return len(texts) == 1 and "" not in texts and all(c.seen in (None, c.number) for c in covers)
