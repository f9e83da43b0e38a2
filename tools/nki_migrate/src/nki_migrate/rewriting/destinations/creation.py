"""Creating tensors: buffers written out, fills as memset, block dimensions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from neuroncore.findings import Safety, Severity
from neuroncore.targets import TARGETS, resolve_target
from nki_migrate.facts.dtypes import item_size
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import (
    Container,
    Parameter,
    Seq,
    ShapeOf,
    Storage,
    Sym,
    Tensor,
    Unknown,
    Value,
)
from nki_migrate.index import walk
from nki_migrate.rewriting.blocks.regions import keep_for_regions, regions_here
from nki_migrate.rewriting.context.call_site import CallSite
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.line_breaks import call_text
from nki_migrate.rewriting.context.reasons import Cannot, Reason, Unsupported
from nki_migrate.rewriting.context.scope import identifiers
from nki_migrate.rewriting.context.source_text import as_dtype, as_number, text_of
from nki_migrate.rewriting.destinations.destination import note_write
from nki_migrate.rewriting.destinations.memory import memory_of
from nki_migrate.rewriting.destinations.psum_accumulation import is_zero
from nki_migrate.rewriting.inference.observations import most_seen, seen_maximum
from nki_migrate.rewriting.views.view_text import spell

_KNOWN = {"shape", "dtype", "buffer", "name", "fill_value", "mask", "lazy_initialization", "engine"}
_ONE = Sym.number(1)
PSUM_BANKS = resolve_target("trn1").psum_banks


_LARGEST_SBUF = max(target.sbuf_bytes for target in TARGETS.values())


def create(ctx: Context, site: CallSite) -> Value:
    """`nl.ndarray(shape, dtype, buffer=…)`."""
    made = _Creation(ctx, site)
    if made.blocks:
        return made.emit_blocks(None)
    if site.get("lazy_initialization") is not None:
        return made.emit_tile(None)
    made.write_out_buffer()
    return made.kept()


def create_filled(ctx: Context, site: CallSite, fill: str) -> Value:
    """`nl.zeros`, `nl.ones`, `nl.full`: an allocation and a memset."""
    made = _Creation(ctx, site)
    ctx.report(Reason.FILL, site.node, f"`{site.name}` is an allocation and a memset")
    first_write = ctx.before.first_write.get(ctx.site(site.node))
    fill_text: str | None = fill
    if ctx.statement is not None:
        ctx.made[ctx.site(site.node)] = ctx.statement
    if made.buffer == "psum" and is_zero(fill) and first_write == "matmul":
        message = "a PSUM accumulator starts with its first matmul, not with zeros"
        ctx.report(Reason.PSUM_ZEROS, site.node, message)
        fill_text = None
    if made.blocks:
        return made.emit_blocks(fill_text)
    return made.emit_tile(fill_text)


class _Creation:
    """One allocation call, understood."""

    def __init__(self, ctx: Context, site: CallSite) -> None:
        self.ctx, self.site, self.node = ctx, site, site.node
        unknown = set(site.arguments) - _KNOWN
        if unknown:
            raise Cannot(
                Reason.DIRECT_ALLOCATION,
                f"`{site.name}` with {', '.join(sorted(unknown))}=",
                site.node,
            )
        self.shape_node = site.arguments.get("shape")
        if self.shape_node is None:
            raise Cannot(Reason.BUFFER, f"`{site.name}` without a shape", site.node)
        memory = memory_of(ctx, site)
        self.buffer, self.ring = memory.buffer, memory.ring
        shape = ctx.value_of(self.shape_node)
        self.dtype = as_dtype(ctx, site.get("dtype"))
        self.shape, self.partition = self._understand(shape)
        self.blocks = self.partition if self.buffer != "hbm" else 0
        if self.blocks:
            ctx.require(Reason.BLOCK_DIMENSIONS)
        elif self.partition:
            ctx.report(
                Reason.HBM_PARTITION_MARK, site.node, "a tensor in HBM has no partition dimension"
            )
        if self.buffer != "hbm" and self.shape is not None and len(self.shape) < 2:
            raise Cannot(
                Reason.ONE_DIMENSIONAL_TILE,
                "a one-dimensional tensor on chip: at least (P, 1) from 0.2 on",
                self.node,
            )

    def _report_too_large(self) -> None:
        """Report what no target has room for; 0.1 placed parts of it at other times."""
        size = Sym.number(item_size(self.dtype) or 1)
        sizes = list(enumerate(self.shape or ()))
        for _, length in (s for s in sizes if s[0] != self.blocks):
            size = size * length
        number = size.value if size.value is not None else seen_maximum(self.ctx, size.poly)
        if self.buffer == "sbuf" and self.ring is None and (number or 0) > _LARGEST_SBUF:
            text = f"{number} bytes of every partition are more than SBUF has: allocate parts of it"
            manual = {"severity": Severity.ERROR, "safety": Safety.MANUAL}
            self.ctx.report(Reason.BUFFER, self.node, f"{text} where they are used", **manual)

    def _understand(self, shape: Value) -> tuple[tuple[Sym, ...] | None, int]:
        if isinstance(shape, Seq):
            sizes = tuple(as_number(self.ctx, v) for v in shape.items)
            if any(s is None for s in sizes):
                return None, 0
            return tuple(s for s in sizes if s is not None), min(shape.partition_marks, default=0)
        if isinstance(shape, Container | ShapeOf | Unknown | Unsupported | Parameter):
            return None, 0
        raise Cannot(Reason.BUFFER, "a shape that is not understood", self.shape_node)

    def _storage(self, name: str, *, blocks: int = 0, folded: bool = False) -> Storage:
        return Storage(
            name, self.shape, self.dtype, self.buffer, self.ctx.loops,
            self.ctx.site(self.node), blocks=blocks, folded=folded, flat_name=name,
            is_value=False,
        )  # fmt: skip

    # -- plain tensors

    def write_out_buffer(self) -> None:
        """`buffer=nl.sbuf` for the default; shared HBM for results."""
        ctx, given = self.ctx, self.site.get("buffer")
        if given is None:
            ctx.report(Reason.BUFFER, self.node, "the buffer is written out: `nl.sbuf`")
            text = text_of(ctx, self.node)
            body = text[:-1].rstrip()
            joint = "" if body.endswith((",", "(")) else ","
            spaced = " " if not body.endswith("(") else ""
            ctx.rewrites[self.node] = f"{body}{joint}{spaced}buffer={ctx.alias('nl')}.sbuf)"
        elif ctx.index.canonical(given) in {"nl.hbm", "nl.private_hbm"} and self._is_returned():
            ctx.report(Reason.OUTPUT_BUFFER, given, "a kernel returns tensors in `nl.shared_hbm`")
            ctx.rewrites[given] = f"{ctx.alias('nl')}.shared_hbm"

    def _is_returned(self) -> bool:
        parent = self.ctx.index.parent(self.node)
        names = {t.id for t in getattr(parent, "targets", ()) if isinstance(t, ast.Name)}
        returns = [n for n in walk(self.ctx.function.node) if isinstance(n, ast.Return)]
        returned = {x.id for r in returns for x in walk(r) if isinstance(x, ast.Name)}
        return bool(names & returned)

    def kept(self) -> Value:
        """The statement stays as written, apart from its rewrites."""
        name = self.site.target.name
        if name is None:
            return Unknown(text_of(self.ctx, self.node))
        self._report_too_large()
        self.ctx.kept.add(self.node)
        return Tensor(self._storage(name), self.shape)

    def emit_tile(self, fill: str | None) -> Value:
        """An allocation with a memset behind it, under the target's name or inside its view."""
        view = self.site.target.view
        if view is None:
            self._report_too_large()
            view = self._new_tile(fill or "")
        if fill is not None:
            self._emit_fill(view, fill)
        return view

    def _new_tile(self, fill: str) -> Tensor:
        ctx, name = self.ctx, self.site.target.name
        if not name or name in identifiers(fill):  # `x = nl.full(shape, x)`
            name = ctx.fresh_name(f"{name}_tile" if name else "tile")
            ctx.temporaries.add(name)
        ctx.emit(f"{name} = {self._allocation()}")
        tile = Tensor(self._storage(name), self.shape)
        ctx.scope.hold(name, tile)
        return tile

    def _emit_fill(self, view: Tensor, fill: str) -> None:
        if view.buffer == "hbm":
            text = "a filled tensor in HBM: memset writes on-chip memory only"
            raise Cannot(Reason.FILL, text, self.node)
        is_own = self.site.target.view is None
        text = view.storage.name if is_own else spell(self.ctx, view)
        self.ctx.emit_call("memset", [("dst", text), *self._filling(fill)])
        if not (is_own and self._may_be_needless(fill)):
            note_write(self.ctx, view, {}, "zero" if is_zero(fill) else "other")
            view.storage.filled = is_own

    def _allocation(self, sizes: tuple[Sym, ...] | None = None) -> str:
        ctx, nl = self.ctx, self.ctx.alias("nl")
        assert self.shape_node is not None
        shape = text_of(ctx, self.shape_node) if sizes is None else ctx.shape_text(sizes)
        given = self.site.get("buffer")
        buffer = text_of(ctx, given) if given is not None else f"{nl}.sbuf"
        dtype = self.site.get("dtype")
        if dtype is None:
            raise Cannot(Reason.BUFFER, "an allocation without a dtype", self.node)
        arguments = [("", shape), ("dtype", text_of(ctx, dtype)), ("buffer", buffer)]
        return call_text(f"{nl}.ndarray", arguments, ctx.width - 12)

    # -- block dimensions

    def emit_blocks(self, fill: str | None) -> Value:
        """A list of tiles, or one tile with the blocks behind the partition dimension."""
        ctx, name = self.ctx, self.site.target.name
        if name is None or self.shape is None:
            text = "a tensor with block dimensions that gets no name"
            raise Cannot(Reason.BLOCK_DIMENSIONS, text, self.node)
        wish, fold = ctx.request.block_dims, ctx.request.block_dims == "fold"
        if wish == "auto":
            regions = regions_here(ctx, self.node, self.blocks)
            if regions and (fill is None or len(regions) == 1):
                return self._emit_local(name, fill, regions)
            fold = ctx.site(self.node) in ctx.before.folds
        self._report_too_large()
        if fold:
            self._emit_folded(name, self.shape, fill)
        else:
            self._emit_list(name, fill)
        tensor = Tensor(self._storage(name, blocks=self.blocks, folded=fold), self.shape)
        if fill is not None and not self._may_be_needless(fill):
            note_write(ctx, tensor, {}, "zero" if is_zero(fill) else "other")
            tensor.storage.filled = True
        return tensor

    def _report_blocks(self, message: str) -> None:
        self.ctx.report(Reason.BLOCK_DIMENSIONS, self.node, message)

    def _emit_folded(self, name: str, shape: tuple[Sym, ...], fill: str | None) -> None:
        self._report_blocks("block dimensions are folded behind the partition dimension")
        ctx, b = self.ctx, self.blocks
        order = (b, *range(b), *range(b + 1, len(shape)))
        ctx.emit(f"{name} = {self._allocation(tuple(shape[i] for i in order))}")
        if fill is not None:
            ctx.emit_call("memset", [("dst", name), *self._filling(fill)])

    def _is_too_large_for_psum(self) -> bool:
        """Whether a list of tiles, of at least a bank each, is more than there is of PSUM.

        Sums of products have to stay there: they are made of no other memory.
        """
        ctx, site = self.ctx, self.ctx.site(self.node)
        assert self.shape is not None
        if site not in ctx.before.first_write:  # the first pass does not know yet
            return False
        if self._takes_products():
            return False
        count = _ONE
        for size in self.ring if self.ring is not None else self.shape[: self.blocks]:
            count = count * size
        return most_seen(ctx, count.poly) > PSUM_BANKS

    def _move_to_sbuf(self) -> None:
        ctx, given = self.ctx, self.site.get("buffer")
        assert given is not None
        message = f"more tiles than PSUM has banks ({PSUM_BANKS}): in SBUF"
        ctx.report(Reason.BLOCK_DIMENSIONS, given, message)
        ctx.rewrites[given] = f"{ctx.alias('nl')}.sbuf"
        self.buffer = "sbuf"

    def _emit_local(self, name: str, fill: str | None, regions: Sequence[ast.stmt]) -> Value:
        """Nothing here: a tile at the head of each region (see local_tiles)."""
        ctx = self.ctx
        assert self.shape is not None
        self._report_blocks(f"`{name}` is one tile wherever it is used: made there")
        lines = [f"{name} = {self._allocation(self.shape[self.blocks :])}"]
        if fill is not None:
            filling = [("dst", name), *self._filling(fill)]
            lines.append(call_text(f"{ctx.alias('nisa')}.memset", filling, 72))
        storage = self._storage(name, blocks=self.blocks)
        storage.alone = True
        storage.written = fill is not None and not self._may_be_needless(fill)
        storage.filled = storage.written
        if storage.filled:
            ctx.wrote(storage, "other")
            storage.given = fill is None or not is_zero(fill)
        keep_for_regions(ctx, regions, storage, lines)
        return Tensor(storage, self.shape)

    def _may_be_needless(self, fill: str) -> bool:
        """Whether the first use of the tile may tell that its zeros need not be."""
        return self.buffer == "psum" and is_zero(fill)

    def _filling(self, fill: str) -> list[tuple[str, str]]:
        engine = self.site.get("engine")
        given = [] if engine is None else [("engine", text_of(self.ctx, engine))]
        return [("value", fill), *given]

    def _emit_list(self, name: str, fill: str | None) -> None:
        """The tiles; where blocks share them (`ring`) first those, then the list of blocks."""
        ctx, b, ring = self.ctx, self.blocks, self.ring
        self._report_blocks("block dimensions become a list of tiles")
        if self.buffer == "psum" and self._is_too_large_for_psum():
            self._move_to_sbuf()
        assert self.shape is not None
        blocks = self.shape[:b]
        if ring is not None:
            ring = ring or (_ONE,) * b
            if len(ring) != b:
                text = "a count of tiles for other dimensions"
                raise Cannot(Reason.DIRECT_ALLOCATION, text, self.node)
        if ring is None or all(map(ctx.facts.same, _polys(ring), _polys(blocks))):
            self._emit_tiles(name, blocks, fill)
            return
        self._reject_shared_sums()
        shared = ctx.fresh_name(f"{name}_buffers")
        self._emit_tiles(shared, ring, fill)
        rows = [ctx.fresh_name(f"{name}_row") for _ in range(b - 1)]
        counters = [ctx.fresh_name(f"i_{name}") for _ in range(b)]
        places = "".join(
            "[0]" if r.value == 1 else f"[{c} % {ctx.spell(r, 2)}]"
            for c, r in zip(counters, ring, strict=True)
        )
        self._emit_nested([name, *rows], counters, blocks, [], f"{shared}{places}")

    def _reject_shared_sums(self) -> None:
        """0.1 began every block's sum anew; a tile that blocks share adds to the sum before."""
        if self.buffer == "psum" and self._takes_products():
            raise Cannot(
                Reason.PSUM_ACCUMULATION,
                "blocks that share a PSUM tile and sum products in it: the first product of each"
                " has to replace what is there",
                self.node,
            )

    def _takes_products(self) -> bool:
        """Whether products are summed in the tensor, as the last pass found."""
        ctx, site = self.ctx, self.ctx.site(self.node)
        if "product" not in ctx.before.uses.get(site, ()):
            return False
        ctx.seen.uses.setdefault(site, set()).add("product")  # for the next pass
        return True

    def _emit_tiles(self, name: str, sizes: tuple[Sym, ...], fill: str | None) -> None:
        ctx, b = self.ctx, self.blocks
        assert self.shape is not None
        lists = [name, *(ctx.fresh_name(f"{name}_row") for _ in range(b - 1))]
        tile, lines = self._allocation(self.shape[b:]), list[str]()
        if fill is not None:
            fresh = ctx.fresh_name(f"{name}_tile")
            filling = [("dst", fresh), *self._filling(fill)]
            memset = call_text(f"{ctx.alias('nisa')}.memset", filling, 60)
            tile, lines = fresh, [f"{fresh} = {tile}", memset]
        self._emit_nested(lists, ["_"] * b, sizes, lines, tile)

    def _emit_nested(
        self,
        lists: list[str],
        counters: list[str],
        sizes: tuple[Sym, ...],
        lines: list[str],
        item: str,
    ) -> None:
        """Lists of lists of `item`, which `lines` make, one level per size."""
        ctx = self.ctx
        for depth, (made, counter, size) in enumerate(zip(lists, counters, sizes, strict=True)):
            ctx.emit(f"{made} = []", depth)
            ctx.emit(f"for {counter} in range({ctx.spell(size)}):", depth)
        for line in (*lines, f"{lists[-1]}.append({item})"):
            ctx.emit(line, len(lists))
        for depth in range(len(lists) - 1, 0, -1):
            ctx.emit(f"{lists[depth - 1]}.append({lists[depth]})", depth)


def _polys(sizes: tuple[Sym, ...]) -> Iterator[Poly]:
    return (size.poly for size in sizes)
