"""Creating tensors: buffers written out, fills as memset, block dimensions (NKI1130–NKI1139)."""

from __future__ import annotations

import ast

from nki_migrate.facts.values import (
    Parameter,
    Ref,
    Seq,
    ShapeOf,
    Storage,
    Sym,
    Tensor,
    Unknown,
    Value,
)
from nki_migrate.lower.access import as_tensor
from nki_migrate.lower.context import Cannot, Context, call_text
from nki_migrate.lower.destination import Target, note_write
from nki_migrate.lower.evaluate import as_dtype, value_of
from nki_migrate.lower.signatures import CallSite
from nki_migrate.lower.source_text import as_number, text_of
from nki_migrate.lower.views import own_dtype

__all__ = ["create", "create_filled", "create_like"]

_BUFFERS = {
    "nl.sbuf": "sbuf", "nl.psum": "psum", "nl.hbm": "hbm", "nl.shared_hbm": "hbm",
    "nl.private_hbm": "hbm",
}  # fmt: skip
_STRINGS = {"sbuf": "nl.sbuf", "psum": "nl.psum", "hbm": "nl.hbm", "shared_hbm": "nl.shared_hbm",
            "private_hbm": "nl.private_hbm"}  # fmt: skip

_WRITES_ALL = "the matmuls write every element of the tile"


def create(ctx: Context, site: CallSite, target: Target | None) -> Value:
    """`nl.ndarray(shape, dtype, buffer=…)`."""
    made = _Creation(ctx, site)
    if made.blocks:
        return made.emit_blocks(target, fill=None)
    made.write_out_buffer()
    return made.kept(target)


def create_filled(ctx: Context, site: CallSite, fill: str, target: Target | None) -> Value:
    """`nl.zeros`, `nl.ones`, `nl.full`: an allocation and a memset (NKI1135)."""
    made = _Creation(ctx, site)
    ctx.report("NKI1135", site.node, f"`{site.name}` is an allocation and a memset")
    first_write = ctx.before.first_write.get(ctx.site(site.node))
    fill_text: str | None = fill
    if made.buffer == "psum" and first_write in {"matmul", "part"}:
        message = "a PSUM accumulator starts with its first matmul, not with zeros"
        whole = first_write == "matmul"
        ctx.report("NKI1136", site.node, message, assumption=None if whole else _WRITES_ALL)
        fill_text = None
    if made.blocks:
        return made.emit_blocks(target, fill_text)
    return made.emit_tile(target, fill_text)


def create_like(ctx: Context, site: CallSite, fill: str | None, target: Target | None) -> Value:
    """`nl.zeros_like(x)`, `nl.empty_like(x)`: shape and dtype of x (NKI1137)."""
    ctx.report(
        "NKI1137", site.node, f"`{site.name}` is an allocation with the shape of its argument"
    )
    source = as_tensor(ctx, value_of(ctx, site.arguments["a"]))
    if source is None:
        raise Cannot("NKI1137", "the argument is not known to be a tensor", site.node)
    name = source.storage.name
    dtype = as_dtype(ctx, site.get("dtype")) or own_dtype(ctx, source)
    from nki_migrate.lower.destination import destination, emit, whole_shape

    buffer = _buffer(ctx, site) if site.get("buffer") else (source.buffer or "sbuf")
    dst = destination(
        ctx, target, whole_shape(ctx, source), dtype, buffer, site.node, hint=f"{name}_like"
    )
    if fill is not None:
        emit(ctx, "memset", dst, [("value", fill)], None, rank=2)
    return dst


def _buffer(ctx: Context, site: CallSite) -> str:
    node = site.get("buffer")
    if node is None:
        return "sbuf"
    if isinstance(node, ast.Constant) and node.value in _STRINGS:
        canonical = _STRINGS[node.value]
        ctx.report("NKI1144", node, f"buffers are objects: `{canonical}`")
        ctx.rewrites[node] = f"{ctx.alias('nl')}.{canonical[3:]}"
        return _BUFFERS[canonical]
    value = value_of(ctx, node)
    if isinstance(value, Ref) and value.name in _BUFFERS:
        return _BUFFERS[value.name]
    if isinstance(value, Ref) or "alloc" in text_of(ctx, node):
        raise Cannot("NKI1143", "a tensor with an address of its own (direct allocation)", node)
    raise Cannot("NKI1138", "a buffer that is not known here", node)


class _Creation:
    """One allocation call, understood."""

    def __init__(self, ctx: Context, site: CallSite) -> None:
        self.ctx, self.site, self.node = ctx, site, site.node
        unknown = set(site.arguments) - {"shape", "dtype", "buffer", "name", "fill_value", "mask"}
        if unknown:
            raise Cannot("NKI1143", f"`{site.name}` with {', '.join(sorted(unknown))}=", site.node)
        self.shape_node = site.arguments.get("shape")
        if self.shape_node is None:
            raise Cannot("NKI1138", f"`{site.name}` without a shape", site.node)
        self.buffer = _buffer(ctx, site)
        shape = value_of(ctx, self.shape_node)
        self.dtype = as_dtype(ctx, site.get("dtype"))
        self.shape, self.partition = self._understand(shape)
        self.blocks = self.partition if self.buffer != "hbm" else 0
        if self.blocks:
            ctx.require("NKI1131")
        elif self.partition:
            ctx.report("NKI1132", site.node, "a tensor in HBM has no partition dimension")
        if self.buffer != "hbm" and self.shape is not None and len(self.shape) < 2:
            raise Cannot(
                "NKI1149",
                "a one-dimensional tensor on chip: at least (P, 1) from 0.2 on",
                self.node,
            )

    def _understand(self, shape: Value) -> tuple[tuple[Sym, ...] | None, int]:
        if isinstance(shape, Seq):
            sizes = tuple(as_number(self.ctx, v) for v in shape.items)
            if any(s is None for s in sizes):
                return None, 0
            return tuple(s for s in sizes if s is not None), min(shape.partition_marks, default=0)
        if isinstance(shape, ShapeOf | Unknown | Parameter):
            return None, 0
        raise Cannot("NKI1138", "a shape that is not understood", self.shape_node)

    def _storage(self, name: str, *, blocks: int = 0, folded: bool = False) -> Storage:
        return Storage(
            name, self.shape, self.dtype, self.buffer, self.ctx.loops,
            self.ctx.site(self.node), blocks=blocks, folded=folded, flat_name=name,
            is_value=False,
        )  # fmt: skip

    # -- plain tensors

    def write_out_buffer(self) -> None:
        """`buffer=nl.sbuf` for the default (NKI1138); shared HBM for results (NKI1139)."""
        ctx, given = self.ctx, self.site.get("buffer")
        if given is None:
            ctx.report("NKI1138", self.node, "the buffer is written out: `nl.sbuf`")
            text = text_of(ctx, self.node)
            body = text[:-1].rstrip()
            joint = "" if body.endswith((",", "(")) else ","
            spaced = " " if not body.endswith("(") else ""
            ctx.rewrites[self.node] = f"{body}{joint}{spaced}buffer={ctx.alias('nl')}.sbuf)"
        elif ctx.index.canonical(given) in {"nl.hbm", "nl.private_hbm"} and self._is_returned():
            ctx.report("NKI1139", given, "a kernel returns tensors in `nl.shared_hbm`")
            ctx.rewrites[given] = f"{ctx.alias('nl')}.shared_hbm"

    def _is_returned(self) -> bool:
        parent = self.ctx.index.parent(self.node)
        names = {t.id for t in getattr(parent, "targets", ()) if isinstance(t, ast.Name)}
        returns = [n for n in ast.walk(self.ctx.function.node) if isinstance(n, ast.Return)]
        returned = {x.id for r in returns for x in ast.walk(r) if isinstance(x, ast.Name)}
        return bool(names & returned)

    def kept(self, target: Target | None) -> Value:
        """The statement stays as written, apart from its rewrites."""
        if target is None or target.name is None:
            return Unknown(text_of(self.ctx, self.node))
        self.ctx.kept.add(self.node)
        return Tensor(self._storage(target.name), self.shape)

    def emit_tile(self, target: Target | None, fill: str | None) -> Value:
        """An allocation with a memset behind it, under the target's name or inside its view."""
        ctx = self.ctx
        if target is not None and target.view is not None:
            view = target.view
        else:
            name = target.name if target and target.name else ctx.fresh_name("tile")
            ctx.emit(f"{name} = {self._allocation()}")
            view = Tensor(self._storage(name), self.shape)
            ctx.scope.hold(name, view)
            if target is None or not target.name:
                ctx.temporaries.add(name)
        if fill is not None:
            nisa = ctx.alias("nisa")
            if view.buffer == "hbm":
                raise Cannot(
                    "NKI1135",
                    "a filled tensor in HBM: memset writes on-chip memory only",
                    self.node,
                )
            from nki_migrate.lower.views import spell

            ctx.emit_call(f"{nisa}.memset", [("dst", spell(ctx, view)), ("value", fill)], [])
            if view.buffer != "psum":  # zeros of PSUM may yet prove needless (NKI1136)
                note_write(ctx, view, {}, "other")
        return view

    def _allocation(self, sizes: tuple[Sym, ...] | None = None) -> str:
        ctx, nl = self.ctx, self.ctx.alias("nl")
        assert self.shape_node is not None
        shape = text_of(ctx, self.shape_node) if sizes is None else ctx.shape_text(sizes)
        given = self.site.get("buffer")
        buffer = text_of(ctx, given) if given is not None else f"{nl}.sbuf"
        dtype = self.site.get("dtype")
        if dtype is None:
            raise Cannot("NKI1138", "an allocation without a dtype", self.node)
        arguments = [("", shape), ("dtype", text_of(ctx, dtype)), ("buffer", buffer)]
        return call_text(f"{nl}.ndarray", arguments, ctx.width - 12)

    # -- block dimensions

    def emit_blocks(self, target: Target | None, fill: str | None) -> Value:
        """A list of tiles, or one tile with the blocks behind the partition dimension (NKI1131)."""
        ctx = self.ctx
        if target is None or target.name is None or self.shape is None:
            raise Cannot("NKI1131", "a tensor with block dimensions that gets no name", self.node)
        wish = ctx.request.block_dims
        fold = wish == "fold" or (wish == "auto" and ctx.site(self.node) in ctx.before.folds)
        b = self.blocks
        if fold:
            ctx.report(
                "NKI1131", self.node, "block dimensions are folded behind the partition dimension"
            )
            order = (b, *range(b), *range(b + 1, len(self.shape)))
            ctx.emit(f"{target.name} = {self._allocation(tuple(self.shape[i] for i in order))}")
            if fill is not None:
                ctx.emit(f"{ctx.alias('nisa')}.memset(dst={target.name}, value={fill})")
        else:
            ctx.report("NKI1131", self.node, "block dimensions become a list of tiles")
            self._emit_list(target.name, fill)
        tensor = Tensor(self._storage(target.name, blocks=b, folded=fold), self.shape)
        if fill is not None and self.buffer != "psum":
            note_write(ctx, tensor, {}, "other")
        return tensor

    def _emit_list(self, name: str, fill: str | None) -> None:
        ctx, b = self.ctx, self.blocks
        assert self.shape is not None
        lists = [name, *(ctx.fresh_name(f"{name}_row") for _ in range(b - 1))]
        for depth in range(b):
            pad = "    " * depth
            ctx.emit(f"{pad}{lists[depth]} = []")
            ctx.emit(f"{pad}for _ in range({ctx.spell(self.shape[depth])}):")
        pad = "    " * b
        tile = self._allocation(self.shape[b:])
        if fill is None:
            lines = [f"{lists[-1]}.append({tile})"]
        else:
            fresh = ctx.fresh_name(f"{name}_tile")
            nisa = ctx.alias("nisa")
            lines = [f"{fresh} = {tile}", f"{nisa}.memset(dst={fresh}, value={fill})"]
            lines.append(f"{lists[-1]}.append({fresh})")
        for line in lines:
            ctx.emit(pad + line.replace("\n", "\n" + pad))
        for depth in range(b - 1, 0, -1):
            ctx.emit("    " * depth + f"{lists[depth - 1]}.append({lists[depth]})")
