"""Modelling assumptions about the machine: one frozen record, pessimistic by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from neuroncore.errors import LaunchError

FRONTENDS: Mapping[str, Literal["parser", "tracer"]] = {
    "tracer": "tracer", "parser": "parser", "custom": "parser",
}  # fmt: skip
"""Values of NKI_COMPILER_FRONTEND: "custom" is the former frontend [announcement of 0.7's change of
specialization]; the other two are names of the vendor's guide for 0.6."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the machine behaves where documents are silent, disagree, or leave a choice.

    Each field names a modelling assumption; the default is the choice that hides least.
    """

    precise: bool = True
    """Low-precision floats are rounded when stored. False keeps them as float32, as the vendor's
    simulator does with NKI_PRECISE_FP=0 (its default before 0.4)."""

    uninitialized: Literal["nan", "zero"] = "nan"
    """What new memory holds. "nan": NaN in floats, 4 in integers, as the vendor's simulator."""

    accumulate_on_unwritten: Literal["error", "nan", "add"] = "error"
    """nc_matmul(accumulate=True) on PSUM that no matmul has written is undefined [NKI: nc_matmul].
    "error" rejects it, as a result that is not defined is a mistake; "nan" poisons the locations,
    "add" adds to what lies there."""

    psum_tracking: Literal["allocation", "write"] = "allocation"
    """When a PSUM location stops counting as written by a matmul, which accumulate=None depends on:
    not documented. "allocation": never, only a new tensor starts unwritten, which is all that
    documents say of it (a memset does not start a group); "write": once another instruction has
    written it, so that the next product replaces what a memset put there and is not added to it."""

    start_partition: Literal["error", "warn", "ignore"] = "warn"
    """Operands must start at partition 0, 32, 64 or 96 by their size [NKI architecture guide]; the
    compiler's allocator enforces it, so a view such as t[16:48] may or may not compile."""

    partition_index: Literal["keep", "drop"] = "keep"
    """An integer on the partition dimension of an on-chip tensor: the 0.5 guide keeps the dimension
    with size 1, documents up to 0.4 show it dropped. "keep": the newest word, and the tile keeps a
    partition dimension, without which no instruction takes it; "drop": the older one."""

    ap_offset: Literal["version", "replace", "compose"] = "version"
    """`.ap(offset=…)` on an indexed view: guides say it replaces the view's offset, the 0.5 stub
    that it is added to it. "version" follows what documents say of each: rejected up to 0.4, where
    the guide forbids it; composed from 0.5, whose stub says so. "replace" and "compose" hold in
    every version."""

    negative_index: Literal["version", "allow", "reject"] = "version"
    """Negative integer indices: the parser frontend rejects them, the 0.6 stub allows them.
    "version" takes each at its word: an error up to 0.5, from the end in 0.6. "allow" and "reject"
    hold in every version."""

    tile_broadcast: Literal["repeat", "reject"] = "repeat"
    """nl functions of two tiles of different shapes. The known issues of 0.3, carried on to 0.6,
    ask for one shape; the example of nl.abs_max in 0.4 takes a (128, 1) tile beside a wider one.
    "repeat": free axes of extent 1 are repeated, as a documented example that runs has only one
    meaning; "reject": one shape."""

    address_unit: Literal["bytes", "elements"] = "bytes"
    """The free offset in nl.ndarray(address=(partition, offset)). The text calls it an element
    offset; its examples use bank · 2048 in PSUM and multiply by the itemsize in SBUF, which fits
    bytes alone, so "bytes" is what kernels written after them mean; "elements" counts elements of
    the tensor's dtype."""

    trn1_support: Literal["run", "warn", "reject"] = "run"
    """Kernels of 0.2 and later on trn1 and inf2. The instructions keep the constraints of that
    generation in every version, the FAQ lists only Trn2 and Trn3. "run": nothing wrong is computed,
    the constraints hold; "warn" and "reject" say at the launch that the FAQ leaves it out."""

    identity_test: Literal["warn", "error", "ignore"] = "warn"
    """`is` and `is not` in kernels, for the `subset` check. From 0.3 on the language guide bans
    them; the public library for 0.3 writes `is not None` throughout, and ran. "warn" reports it and
    does not fail; "error" takes the guide's word, "ignore" the library's."""

    frontend: Literal["version", "parser", "tracer"] = "version"
    """Which frontend reads kernels, also for the `subset` check. The notes of 0.7 say that it runs
    kernels, and that versions before compiled their source; a public package of 0.4 has a frontend
    that runs them. "version": the parser up to 0.6, the tracer from 0.7 on; "parser" and "tracer"
    hold from 0.4 on, where NKI_COMPILER_FRONTEND selects one. The tracer takes no register as a
    condition; the parser of 0.7 has neither scalars nor grids nor configurations."""

    activation_formula: Literal["conventional", "reject"] = "conventional"
    """gelu and its variants: the documents name them and print no formula, nor the constant 1.702
    of the sigmoid approximation. "conventional": the formulas of the literature under those names;
    "reject": an activation whose formula is not documented is an error."""

    activation_range: Literal["simulator", "reject"] = "simulator"
    """Activation inputs outside the documented valid range give garbage on hardware. sin
    extrapolates a cubic and the others give their mathematical value, as the vendor's simulator;
    "reject" raises instead, at the cost of looking at every input."""

    traced_once: Literal["run", "error"] = "run"
    """0.1 traced the body of a loop once, with a symbol for the index; here it runs for every
    number. Documents forbid what depends on the difference, and public kernels do it all the same
    (nki-samples, pipelined_attention; neuronx-distributed-inference, sliding_window). "error"
    rejects control flow on an index and numbers made of it (range(i), min(i, 2)), tensors used
    outside their block, Python numbers and collections that change from turn to turn, and loops
    that its text does not show to be nl's; nl.static_range may do all of it. It reads the text of
    each function by itself: `if i == 0` in a function that is given i is not found."""

    integer_overflow: Literal["wrap", "saturate"] = "wrap"
    """Exact int32/uint32 arithmetic on GpSimdE beyond 32 bits: no document says. "wrap" is two's
    complement."""

    integer_quotient: Literal["float", "promoted"] = "float"
    """0.1's nl.divide and `/` of two integers. The rule of promotion names an integer; the vendor's
    own kernels (nki-samples, resize_nearest) need the fraction. "float": float32; "promoted": the
    integer type, rounded to nearest."""

    masked_mean: Literal["reject", "selected", "all"] = "reject"
    """By what 0.1's nl.mean divides under a mask: no document says whether elements that the mask
    leaves out count. "selected": by the elements that it selects, the same number in each row;
    "all": by the sizes of the axes; "reject": an error, as either may be wrong."""

    matmul_reads_psum: Literal["reject", "copy"] = "reject"
    """0.1's nc_matmul of a tile in PSUM, such as the result of nc_transpose: documents want both
    operands in SBUF, and public kernels that say they ran on a device leave the copy to the
    compiler. "copy" puts it in."""

    product_sums: Literal["float32", "float64"] = "float32"
    """How nc_matmul and nc_matmul_mx add up along the contraction, before the sum is rounded to
    float32: documents say that PSUM accumulates in float32, and nothing of the order. "float32": as
    NumPy's BLAS does, in an order that depends on the processor and on the operands' shapes;
    "float64": one rounding, so that a product cut in two is the same to the bit."""

    affine_select_compare: Literal["all", "frontend"] = "all"
    """affine_select documents any comparison as cmp_op; the open-source frontend lowers only
    greater, greater_equal, equal and not_equal. "frontend" rejects the others."""

    accumulator_lanes: Literal["row", "partition"] = "row"
    """Which of ScalarE's and VectorE's 128 accumulator registers serves a row of an operand that
    starts above partition 0: no document says. "row": row p uses register p; "partition": the
    register of its partition."""

    missing_index: Literal["ones", "zero"] = "ones"
    """What nc_find_index8 and nc_match_replace8 write for a value that does not occur: all ones
    [NKI 0.6: nc_find_index8]; earlier documents leave it undefined, and the vendor's simulator
    wrote 0 up to 0.5."""

    topk_ranks: Literal["snake", "row"] = "snake"
    """What topk ranks: its text says that every partition operates independently, its layout and
    limits (K <= n < 65536, rows of n / 16) that the 16 partitions of a group are one sequence.
    "snake": the group's n elements, and each of its partitions gets the result, as only this gives
    the limits a meaning; "row": the elements of its own partition."""

    topk_order: Literal["position", "ascending", "descending"] = "position"
    """In which order topk gives its results from 0.7 on where sorted is False: it is undefined.
    "position": in the order of the elements, which no kernel that expects a ranking survives."""

    topk_sorted: Literal["reject", "ascending", "descending"] = "reject"
    """Which order topk's sorted=True gives, from 0.7 on: no document that could be read shows it,
    and 0.6 ranked upwards. "reject": an error, as either may be wrong."""

    repeated_destination: Literal["undefined", "last", "reject"] = "undefined"
    """A destination with a step of 0, where several results share an element: the public library
    passes one where it uses the reduction of an instruction alone, and no document says which of
    the results remains. "undefined": none, the element holds what unwritten memory does; "last":
    the last in row-major order; "reject": an error."""

    transpose_dge_none: Literal["error", "warn", "ignore"] = "warn"
    """dma_transpose documents dge_mode unknown and hwdge; kernels of the public library also pass
    none, which may or may not compile. It changes no result: "warn" runs it and says so, "error"
    takes the document's word, "ignore" the library's."""

    column_tiling: Literal["error", "warn", "ignore"] = "warn"
    """nc_matmul's tile_position and tile_size: the text describes tiles of columns, the parameters'
    own text allows column 0 and 128 columns only, so others may or may not compile. They place the
    work and change no result: "warn" runs them and says so, "ignore" takes the text's word, "error"
    the parameters'."""

    enum_codes: Literal["error", "warn", "ignore"] = "warn"
    """Integer codes for enums (`dge_mode=3`) in 0.3: the migration guide says that they are not
    accepted any more, the public library for 0.3 passes them. From 0.4 on they are rejected."""

    dma_order: Literal["dependences", "tiles"] = "dependences"
    """What orders two DMAs of one program that touch the same HBM bytes, for the `race` check: no
    document says. "dependences": the compiler keeps their program order, as it does for on-chip
    tensors; "tiles": only what goes through on-chip tensors or one engine's stream."""

    undefined_results: Literal["compute", "poison"] = "compute"
    """Results that the documents of a trap leave undefined (docs/traps.md), such as two results of
    one instruction that share an element. "compute": what this machine gives, which hides the
    trap; "poison": NaN in floats, 0xDEADBEEF in the bits of an integer, so that a comparison with a
    reference fails here as it does on a device."""

    interleaved_groups: Literal["error", "warn", "ignore"] = "error"
    """Matmuls that add to a group of PSUM after another group has started in its bank, for the
    `traps` check. A public report of kernels on trn2 lost all contributions but the last group's;
    the public library for 0.3 does it all the same (attention_bwd, after a memset). "error": as the
    report; "warn": reported as a warning; "ignore": as the library."""

    trap_values: Literal["scan", "skip"] = "scan"
    """Traps that only values decide (NaN in a transposition, integers beyond 24 bits), for the
    `traps` check. "scan": the operands of such instructions are read; "skip": they are not, which
    takes less time and finds none of these."""

    register_control: Literal["parser", "tracer"] = "parser"
    """`while register:` and `if register:`. The language guides describe the loop, which the parser
    frontend compiles; the tracer frontend (0.4 and later) raises, as a register has no value while
    a kernel is traced. "parser": it is executed; "tracer": rejected."""

    tensor_truth: Literal["present", "reject"] = "present"
    """`if tensor:`. The guides allow no branch on values of the device and are silent on this; the
    public library for 0.3 tests optional arguments so, and ran, and 0.7 runs kernels in Python, for
    which most objects are true. "present": a tensor is true, as anything that is not None (one
    element on chip, whose value may be meant, is rejected); "reject": `is not None` is the only
    test."""

    register_constant: Literal["allow", "reject"] = "allow"
    """register_move of a compile-time number. The 0.3 migration guide forbids it; the reference of
    every version takes one, and 0.2's parameter takes nothing else (there it is always allowed).
    "allow": the number is the only thing it can mean; "reject": the guide's word."""

    scalar_as_register: Literal["reject", "allow"] = "reject"
    """An NkiScalar, such as the variable of nl.fori_loop, as source of register_store and
    register_move, from 0.7 on: no page that could be read says that they take one. "reject": an
    error, scalar_store writes it; "allow": as a register that holds the same number."""

    while_scalar: Literal["reject", "allow"] = "reject"
    """An NkiScalar as condition of nl.while_loop, from 0.7 on: its page could be read for 0.6 only,
    which had registers alone. "reject": an error; "allow": the body gets a scalar and returns
    one."""

    scalar_operators: Literal["documented", "integer"] = "documented"
    """Operators of NkiScalar. Its page names +, -, * and unary minus, and does not say that the
    list is complete. "documented": these; "integer": also //, %, <<, >>, &, | and ^, as Python
    computes them, wrapped to the scalar's width."""

    scalar_operands: Literal["reject", "wrap"] = "reject"
    """The other side of an NkiScalar's operator: an int outside of the dtype's range, a bool, a
    scalar of the other width. Its page documents an int and a scalar of one dtype. "reject": an
    error; "wrap": the low bits of it that the scalar has."""

    grid_steps: Literal["reject", "allow"] = "reject"
    """Slices with a step of a tile or block grid (`grid[::2, 0]`), from 0.7 on: the page of
    nl.empty_like names them in passing, and no page of a grid that could be read shows one.
    "reject": an error; "allow": every step-th cell."""

    loop_state: Literal["warn", "error", "ignore"] = "warn"
    """Python objects that the body of a device loop changes, from 0.7 on: Python runs the body once
    while the kernel is traced, so that they have the value of one run, here as on the device. No
    document says whether the compiler reports it. "warn" says so, "error" rejects it."""

    psum_across_turns: Literal["error", "run"] = "error"
    """A matmul with accumulate=None in the body of a device loop, into a PSUM tensor made outside
    of it, from 0.7 on. Whether it replaces or adds is decided once, while the body is traced, and
    no document says which; documents put PSUM tiles of a turn into the body. "error" rejects it;
    "run" decides each time it is executed: the first turn replaces, later ones add."""

    dynamic_turns: int = 1 << 20
    """How many turns a loop on the device may take before it is called endless."""

    nc_sub_version: Literal[0, 1] = 0
    """The silicon revision that nisa.get_nc_sub_version gives: 0 for the first, 1 for the second.
    No document says in what they differ; nothing else here depends on it."""

    random_seed: int = 0
    """Where the engines' random generators start. Their hardware start state is not published."""

    usable_sbuf_bytes: int | None = None
    """Usable SBUF bytes per partition, of which no document prints the number. None: all but
    the reserve that the public library keeps back on gen3, which is assumed of the others, as
    kernels that keep it did compile."""


def make_options(base: Options, changes: dict[str, Any]) -> Options:
    """`base` with named changes, each checked against the field's allowed values.

    Raises LaunchError for an unknown name or value.
    """
    hints = _hints() if changes else {}
    for name, value in changes.items():
        if name not in hints:
            from difflib import get_close_matches  # of mistakes alone

            known = ", ".join(hints)
            near = get_close_matches(name, hints, 1)
            raise LaunchError(
                f"unknown option {name!r}", expected=f"one of {known}",
                hint=f"did you mean {near[0]}?" if near else None,
            )  # fmt: skip
        fits, expected = _allowed(hints[name])
        if not fits(value):
            raise LaunchError(
                f"option {name} does not take {value!r}", expected=expected, got=repr(value)
            )
    return replace(base, **changes)


@cache
def _hints() -> dict[str, Any]:
    """The types of all fields."""
    return get_type_hints(Options)


def _allowed(hint: Any) -> tuple[Callable[[Any], bool], str]:
    """Whether a value fits a field of type `hint`, and what does in words."""
    if get_origin(hint) is Literal:
        return lambda value: value in get_args(hint), " or ".join(map(repr, get_args(hint)))
    if hint is bool:
        return lambda value: isinstance(value, (bool, np.bool_)), "True or False"
    optional = NoneType in get_args(hint)

    def is_count(value: Any) -> bool:
        if value is None or isinstance(value, bool):
            return optional and value is None
        return isinstance(value, (int, np.integer)) and bool(value >= 0)

    return is_count, "an int from 0 on" + (" or None" if optional else "")
