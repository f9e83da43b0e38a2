"""Destinations of instructions: a new tile, a view of an existing one, or a temporary.

Allocations are written at the very place of the producing statement (trap T2), under the
assigned name. If the name still names an operand, the tile is reused when that is provably the
same, else the new one gets another name first (trap T3).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from nki_migrate.facts.dtypes import BOOL, FLOAT32, DType
from nki_migrate.facts.values import Index, Storage, Sym, Tensor
from nki_migrate.rewriting.context.call_site import NOWHERE, CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.allocation import allocate, temporary
from nki_migrate.rewriting.destinations.psum_accumulation import note_given
from nki_migrate.rewriting.destinations.regions import cut, mask_region
from nki_migrate.rewriting.destinations.start_partition import (
    check_mask_start,
    from_first_partition,
    reject_start,
)
from nki_migrate.rewriting.inference.observations import guard, seen_same
from nki_migrate.rewriting.inference.observed_dtypes import is_seen_float32, require_floating
from nki_migrate.rewriting.inference.promotion import Guess, float32
from nki_migrate.rewriting.views.masks import EVERYWHERE, Region
from nki_migrate.rewriting.views.tensors import home, is_whole
from nki_migrate.rewriting.views.view_text import Limits, spell

Operand = Tensor | str
VIEW_DIMENSIONS = 5  # NKI: NkiTensor views
_ASSUMED = "assumed"  # what an assert rests on that nothing was seen of


@dataclass(frozen=True, slots=True)
class Result:
    """The value of an operation: the node that it is the value of, its place, dtype and region.

    `guess` is for a dtype that the source does not decide, `hint` names a tile of its own.
    """

    node: ast.AST
    target: Target = NOWHERE
    dtype: DType | None = None
    region: Region | None = None
    guess: Guess | None = None
    hint: str = ""


def destination(
    ctx: Context,
    result: Result,
    shape: tuple[Sym, ...] | str,
    buffer: str = "sbuf",
    *,
    in_place: bool = False,
    computed: Region | None = None,
) -> Tensor:
    """The tensor that the instruction of a result writes to.

    `computed` of a result that is computed: the part that is. Where it is rounded to a dtype of its
    own before it gets into a tile of another dtype, it needs a tile of its own, too.
    """
    node, target = result.node, result.target
    if target.view is not None:
        return _in_view(ctx, result, shape, buffer, computed)
    dtype = result.dtype or _guessed(ctx, node, result.guess)
    name = target.name
    if name is None:
        if isinstance(node, ast.Call):
            ctx.report(Reason.NESTED_CALL, node, "a nested call gets a tile of its own")
        return temporary(ctx, result.hint, shape, dtype, buffer, node)
    old = _read_tile(ctx, name, target.reads)
    if old is None:
        is_number = _is_number_read(ctx, name, target.reads)
        make, word = (temporary, _hint(name, result)) if is_number else (allocate, name)
        return make(ctx, word, shape, dtype, buffer, node)
    if name in target.reads and in_place and _may_reuse(ctx, old, shape, dtype, buffer):
        return old
    return temporary(ctx, _hint(name, result), shape, dtype, buffer, node)


def _hint(name: str, result: Result) -> str:
    """What a tile is called that the name is bound to after it is read: `t_tile`, `g_sum`."""
    return result.hint if result.hint.startswith(f"{name}_") else f"{name}_{result.hint}"


def _in_view(
    ctx: Context,
    result: Result,
    shape: tuple[Sym, ...] | str,
    buffer: str,
    computed: Region | None,
) -> Tensor:
    """The view that a result is assigned to, or a tile that is then copied to it."""
    view = result.target.view
    assert view is not None
    if is_widened(ctx, shape, view):
        return _narrow(ctx, result, shape, view)
    dtype = _rounded(ctx, result, view) if computed is not None else None
    if dtype is None or computed is None:
        return view
    if not computed.is_everywhere:
        if is_seen_float32(ctx, dtype, float32(ctx).text):
            return view
        _require_rank(computed, view, dtype, result.node)
    tile = temporary(ctx, result.hint, shape, dtype, buffer, result.node)
    tile.storage.region = computed
    return tile


def _require_rank(part: Region, view: Tensor, dtype: DType, node: ast.AST) -> None:
    """Part of a result is copied to the same part of a view, which has its axes."""
    if part.rank != len(view.shape or ()):
        text = f"part of a result, which 0.1 rounds to `{dtype.text}` before it is assigned"
        raise Cannot(Reason.RESULT_DTYPE, text, node)


def is_widened(ctx: Context, shape: tuple[Sym, ...] | str | None, view: Tensor) -> bool:
    """Whether an assignment repeats a result of this shape: no instruction does that for `dst`."""
    if not isinstance(shape, tuple) or view.shape is None or len(shape) != len(view.shape):
        return False
    return any(_repeats(ctx, *pair) for pair in enumerate(zip(shape, view.shape, strict=True)))


def _repeats(ctx: Context, axis: int, sizes: tuple[Sym, Sym]) -> bool:
    own, wish = sizes
    if own.value != 1 or (axis == 0 and wish.value is None):
        return False
    return not (ctx.facts.same(own.poly, wish.poly) or seen_same(ctx, own.poly, wish.poly))


def _narrow(ctx: Context, result: Result, shape: tuple[Sym, ...] | str, view: Tensor) -> Tensor:
    """A tile for a result before it is repeated."""
    dtype = result.dtype or view.dtype
    is_whole_result = result.region is None or result.region.is_everywhere
    if dtype is None or not is_whole_result or view.buffer == "psum":
        text = "assigning a broadcast tile to a subscript"
        raise Cannot(Reason.FREE_BROADCAST, text, result.node)
    return temporary(ctx, result.hint or "narrow", shape, dtype, "sbuf", result.node)


def _rounded(ctx: Context, result: Result, view: Tensor) -> DType | None:
    """The dtype that a computed result has before it gets into a view that may keep more of it."""
    dtype, guess, held = result.dtype, result.guess, view.dtype
    if dtype is None and guess is not None and held is not None:
        dtype = held if held.key in guess.stored else _guessed(ctx, result.node, guess)
    return dtype if dtype is not None and _rounds(dtype, view) else None


def _rounds(dtype: DType, view: Tensor) -> bool:
    """Whether the dtype of a result may keep less than the tile that it is assigned to would."""
    held = view.dtype
    return held is not None and dtype.key not in {held.key, FLOAT32, BOOL}


def _read_tile(ctx: Context, name: str, reads: frozenset[str]) -> Tensor | None:
    """The tile of `name`, if the right-hand side reads it, or a view of what `name` alone holds."""
    tile, held = ctx.scope.values.get(name), ctx.scope.held.get(name)
    if not isinstance(tile, Tensor) or name in reads:
        return tile if isinstance(tile, Tensor) else None
    read = [v for n in reads if isinstance(v := ctx.scope.values.get(n), Tensor)]
    return tile if any(v.dims is not None and v.storage is held for v in read) else None


def _is_number_read(ctx: Context, name: str, reads: frozenset[str]) -> bool:
    """Whether the right-hand side reads the name for something else than a tile."""
    value = ctx.scope.values.get(name)
    return name in reads and value is not None and not isinstance(value, Tensor | Index)


def finish(ctx: Context, name: str, result: Tensor, *, kept: bool = False) -> Tensor:
    """After the instruction: the assigned name represents the result. `kept`: the text says so."""
    storage, old = result.storage, result.storage.name
    if kept and storage.is_value and old != name and result.dims is None:
        storage.name = name
        ctx.scope.held.pop(old, None)
    elif not old.isidentifier() and result.dims is None:  # a reshape gets the name it was given
        ctx.emit(f"{name} = {spell(ctx, result)}")
        storage.name, storage.mentions = name, None
    elif old != name and old.isidentifier():
        ctx.emit(f"{name} = {spell(ctx, result)}")
        if old in ctx.temporaries and result.dims is None:
            ctx.temporaries.discard(old)
            ctx.scope.held.pop(old, None)
            storage.name = name
    ctx.scope.bind(name, result)
    if storage.name.isidentifier():
        ctx.scope.hold(name, result)
    return result


def _guessed(ctx: Context, node: ast.AST, guess: Guess | None) -> DType:
    """The dtype that a guess comes to: proved by the only store, or resting on its assumption."""
    if guess is None:
        if ctx.final:
            raise Cannot(Reason.RETURNED_VALUE, "the dtype of the result is not known", node)
        return DType("?", "?")
    if not ctx.final:
        return guess.dtype
    uses = ctx.before.uses.get(ctx.site(node), set())
    stored = ctx.before.stored.get(next(iter(uses))) if len(uses) == 1 else None
    if stored is not None and stored.key in guess.stored:
        ctx.basis.append(f"the tile is only stored, as {stored.text}")
        return stored
    if guess.against is not None:
        raise Cannot(Reason.RESULT_DTYPE, f"{guess.message}, and {guess.against}", node)
    ctx.report(Reason.RESULT_DTYPE, node, guess.message, assumption=guess.assumption)
    _assert(ctx, guess)
    return guess.dtype


def _assert(ctx: Context, guess: Guess) -> None:
    """Writes the assumptions of a guess as asserts in front of the statement."""
    if guess.equal is not None:
        other, known = sorted(guess.equal, key=lambda d: d.is_known)
        guard(ctx, f"{ctx.dtype_text(other)} == {ctx.dtype_text(known)}", _ASSUMED)
    if guess.floating is not None:
        require_floating(ctx, guess.floating, float32(ctx).text, _ASSUMED)
    if guess.number is not None:
        number, tile = guess.number
        either_way = "" if tile.is_known else f" or {ctx.dtype_text(tile)} == {float32(ctx).text}"
        guard(ctx, f"isinstance({number}, float){either_way}", _ASSUMED)


def _may_reuse(
    ctx: Context, old: Tensor, shape: tuple[Sym, ...] | str, dtype: DType, buffer: str
) -> bool:
    """Whether the result may be written over the tile: of one kind, and nothing else has it."""
    storage = old.storage
    if isinstance(shape, str) or old.dims is not None or storage.blocks:
        return False
    if (storage.buffer, storage.loops) != (buffer, ctx.loops) or storage.site in ctx.aliased:
        return False
    if storage.dtype is None or storage.dtype.key != dtype.key or _names_of(ctx, storage) != 1:
        return False
    return old.shape is not None and same_sizes(ctx, shape, old.shape)


def _names_of(ctx: Context, storage: Storage) -> int:
    values = ctx.scope.values.values()
    return sum(isinstance(v, Tensor) and v.storage is storage for v in values)


def same_sizes(ctx: Context, a: tuple[Sym, ...], b: tuple[Sym, ...]) -> bool:
    """Whether two shapes are known to be equal."""
    return len(a) == len(b) and all(
        ctx.facts.same(x.poly, y.poly) for x, y in zip(a, b, strict=True)
    )


# -- regions


def result_of(
    ctx: Context, site: CallSite, shape: tuple[Sym, ...] | None, hint: str = ""
) -> Result:
    """The value of a call, with the dtype and the mask that it gives, of a region of this shape."""
    region = mask_region(ctx, site, shape)
    return Result(site.node, site.target, as_dtype(ctx, site.get("dtype")), region, hint=hint)


def emit(
    ctx: Context,
    instruction: str,
    dst: Tensor,
    operands: Sequence[tuple[str, Operand]],
    region: Region | None = None,
    *,
    kind: str = "other",
    reduces: bool = False,
) -> None:
    """Emit `nisa.f(dst=…, …)`, tensors cut to the region; a result that reduces to its rows."""
    region = region or EVERYWHERE
    if dst.shape is not None and len(dst.shape) > VIEW_DIMENSIONS:
        size = f"a tile of {len(dst.shape)} dimensions"
        raise Cannot(Reason.FOLDED_AXES, f"{size}: an instruction takes at most {VIEW_DIMENSIONS}")
    limits, rank = region.limits, region.rank
    check_mask_start(limits.get(0))
    reject_start(ctx, dst)
    if reduces and dst.shape is not None:
        limits, rank = region.rows, len(dst.shape)
    arguments = [("dst", spell(ctx, dst, cut(dst, limits, rank)))]
    for name, operand in operands:
        if isinstance(operand, Tensor):
            operand = from_first_partition(ctx, operand)
            ctx.use(operand, "op")
            operand = spell(ctx, operand, cut(operand, region.limits, region.rank))
        arguments.append((name, operand))
    ctx.emit_call(instruction, arguments, region.guards)
    note_write(ctx, dst, limits, kind)


def note_write(ctx: Context, dst: Tensor, limits: Limits, kind: str) -> None:
    """Remember what a write leaves: which part is filled, and that it was written."""
    storage = dst.storage
    ctx.wrote(storage, kind)
    first = not storage.written
    storage.written = True
    if kind == "other":
        note_given(ctx, storage)
    if not is_whole(ctx, dst) or storage.blocks:
        if not first:
            return
    elif first and limits:
        storage.valid = dict(limits)
    elif not limits:
        storage.valid = {}


def whole_shape(ctx: Context, tensor: Tensor) -> tuple[Sym, ...] | str:
    """The shape, or the text `x.shape` when the rank is not known."""
    if tensor.shape is not None:
        return tensor.shape
    if tensor.dims is not None:
        text = f"{tensor.storage.name}{tensor.written or '[…]'}"
        raise Cannot(
            Reason.UNKNOWN_RANK,
            f"the shape of `{text}` is not known: unpack or assert the shape, or use --assume",
        )
    storage = tensor.storage
    text = f"{home(ctx, storage)}.shape"
    if storage.like is None:
        ctx.likes_made += 1
        storage.like = f"{storage.name}#{ctx.likes_made}"
    ctx.likes[text] = storage.like
    return text
