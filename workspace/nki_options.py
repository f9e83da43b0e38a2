"""docs/options.md: every modelling assumption about NKI and the machine, its default, and why.

`python workspace/nki_options.py [FILE]` prints the page or writes it.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import fields
from typing import Literal, get_args, get_origin, get_type_hints

from neuroncore.options import Options

INTRO = """\
# Options

What documents of NKI leave open, or say in two ways, is a field of `neuroncore.options.Options`.
The default is the choice that hides least: it applies unless another is set.

- `nki-run --option NAME=VALUE script.py`, more than once for several;
- `nki_runtime.use(NAME=VALUE)` in Python, `nki_beta2.language("0.6", NAME=VALUE)` without a switch;
- in `cases.toml`, for the runs of one case: `[case.options]` with `NAME = VALUE`.

An unknown name or value is an error that lists the known ones. This page is written from the
fields by `python workspace/pages.py`.
"""

DISAGREEMENTS: dict[str, tuple[str, ...]] = {
    "`.ap(offset=…)` on a view is added to the view's offset (reference) or replaces it (guides)": (
        "ap_offset",
    ),
    "`nl` functions of two tiles do not broadcast (known issues) or do (an example)": (
        "tile_broadcast",
    ),
    "`register_move` takes no constant (migration guide) or does (reference)": (
        "register_constant",
    ),
    "`topk` ranks each partition or the 16 of a group": ("topk_ranks",),
    "`tile_position` and `tile_size` tile rows only (parameters) or columns too (text)": (
        "column_tiling",
    ),
    "trn1 and inf2: the constraints are kept, the FAQ does not list them": ("trn1_support",),
    "`is not None` is banned (language guide) and used throughout (public library)": (
        "identity_test",
    ),
    "the free offset of an `address` counts elements (text) or bytes (examples)": ("address_unit",),
    "`dge_mode.none` of `dma_transpose` is not listed as valid, and used in the public library": (
        "transpose_dge_none",
    ),
    "when PSUM locations stop counting as written, and how much of SBUF is usable, is not said": (
        "psum_tracking",
        "accumulate_on_unwritten",
        "usable_sbuf_bytes",
    ),
    "negative indices are rejected (parser frontend) or allowed (0.6); an int on the partition "
    "dimension drops it (up to 0.4) or keeps it (from 0.5)": ("negative_index", "partition_index"),
    "the formulas of gelu's variants are not spelled out": ("activation_formula",),
}
"""What documents say in two ways or not at all, by what it is, and the fields that decide it."""


def reasons() -> dict[str, str]:
    """Field → the text below it, on one line."""
    (record,) = ast.parse(textwrap.dedent(inspect.getsource(Options))).body
    assert isinstance(record, ast.ClassDef)
    texts = {}
    for field, below in zip(record.body, record.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            assert isinstance(field.target, ast.Name) and isinstance(below.value, ast.Constant)
            texts[field.target.id] = " ".join(str(below.value.value).split())
    return texts


def choices(name: str) -> str:
    """What a field takes, in words."""
    hint = get_type_hints(Options)[name]
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(hint))
    return {bool: "`true`, `false`", int: "a count"}.get(hint, "bytes, or `none`")


def render() -> str:
    """The whole page."""
    disputed = {name for names in DISAGREEMENTS.values() for name in names}
    others = [f.name for f in fields(Options) if f.name not in disputed]
    lines = [INTRO, "## Where documents disagree", "", *_disagreements(), ""]
    lines += ["## Other choices", "", "| option | default | values | why |", "|---|---|---|---|"]
    lines += [_row(name) for name in others]
    return "\n".join(lines) + "\n"


def _disagreements() -> Iterator[str]:
    yield "| | assumption | option | default | values | why |"
    yield "|---|---|---|---|---|---|"
    for number, (assumption, names) in enumerate(DISAGREEMENTS.items(), 1):
        for name in names:
            yield f"| {number} | {assumption} {_row(name)}"


def _row(name: str) -> str:
    default = str(getattr(Options(), name)).lower()
    why = reasons()[name].replace("|", "\\|")
    return f"| `{name}` | `{default}` | {choices(name)} | {why} |"


if __name__ == "__main__":
    sys.stdout.write(render())
