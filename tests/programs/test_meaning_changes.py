"""Every row of neuroncore's table of changed meanings: shown by values, kept by the emitter, and
rewritten or reported by the migrator."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pytest

from neuroncore.enums import Engine
from neuroncore.errors import KernelError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.machine.backend import Choice
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Program, calls, emit, execute_program, parse_program
from neuroncore.program.ir.binding import machine_call, specs_of
from neuroncore.surface import (
    REQUIRED,
    VERSIONS,
    MeaningChange,
    instruction_names,
    meaning_changes,
    signature,
)
from nki_beta2 import BACKEND
from nki_migrate.engine.migration import migrate_source
from nki_migrate.rules import Example, Rule, all_rules
from nki_migrate.settings.request import VERSIONS as MIGRATED
from nki_migrate.settings.request import Request
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Arg
from nki_runtime import use

CHANGES = {change.id: change for change in meaning_changes()}
SEED = 23


def before(change: MeaningChange) -> str:
    """The last version with the old meaning."""
    return VERSIONS[VERSIONS.index(change.since) - 1]


def as_bytes(result: Any) -> list[bytes]:
    return [r.tobytes() for r in (result if isinstance(result, tuple) else (result,))]


# -- programs: instructions whose records depend on the version ------------------------------------

PROGRAMS = {
    "tensor-reduce-axis": (
        "x: float32[4, 2, 3]",
        """
        y = buffer(float32[4, 2], shared_hbm)
        t = buffer(float32[4, 2, 3], sbuf)
        r = buffer(float32[4, 2], sbuf)
        dma_copy(dst=t, src=x)
        tensor_reduce(dst=r, data=t, op=add, axis=(1,))
        dma_copy(dst=y, src=r)
        """,
    ),
    "integer-engine": (
        "x: int32[4, 8]",
        """
        y = buffer(int32[4, 8], shared_hbm)
        t = buffer(int32[4, 8], sbuf)
        dma_copy(dst=t, src=x)
        tensor_tensor(dst=t, data1=t, data2=t, op=add)
        dma_copy(dst=y, src=t)
        """,
    ),
    "range-select-heeds": (
        "x: float32[4, 8]",
        """
        y = buffer(float32[4, 8], shared_hbm)
        t = buffer(float32[4, 8], sbuf)
        b = buffer(float32[4, 1], sbuf)
        dma_copy(dst=t, src=x)
        memset(dst=b, value=4.0)
        range_select(dst=t, on_true_tile=t, bound0=b, bound1=b, comp_op0=less, comp_op1=less,
                     reduce_cmd=idle)
        dma_copy(dst=y, src=t)
        """,
    ),
    "transpose-engine": (
        "x: float32[4, 8]",
        """
        y = buffer(float32[8, 4], shared_hbm)
        t = buffer(float32[4, 8], sbuf)
        s = buffer(float32[8, 4], sbuf)
        q = buffer(float32[8, 4], psum)
        dma_copy(dst=t, src=x)
        nc_transpose(dst=q, data=t, engine=vector)
        tensor_copy(dst=s, src=q)
        dma_copy(dst=y, src=s)
        """,
    ),
    "quantize-scale": (
        "x: bfloat16[32, 8]",
        """
        y = buffer(uint8[4, 2], shared_hbm)
        t = buffer(bfloat16[32, 8], sbuf)
        q = buffer(float8_e4m3fn_x4[32, 2], sbuf)
        s = buffer(uint8[32, 2], sbuf)
        dma_copy(dst=t, src=x)
        quantize_mx(dst=q, src=t, dst_scale=s)
        dma_copy(dst=y, src=s[0:4, :])
        """,
    ),
    "match-replace-order": (
        "x: float32[4, 16], v: float32[4, 8]",
        """
        y = buffer(uint32[4, 8], shared_hbm)
        z = buffer(float32[4, 16], shared_hbm)
        t = buffer(float32[4, 16], sbuf)
        w = buffer(float32[4, 8], sbuf)
        i = buffer(uint32[4, 8], sbuf)
        dma_copy(dst=t, src=x)
        dma_copy(dst=w, src=v)
        nc_match_replace8(dst=t, data=t, vals=w, imm=-1.0, dst_idx=i)
        dma_copy(dst=y, src=i)
        dma_copy(dst=z, src=t)
        """,
    ),
    "topk-results": (
        "x: bfloat16[16, 4]",
        """
        y = buffer(bfloat16[16, 3], shared_hbm)
        t = buffer(bfloat16[16, 4], sbuf)
        v = buffer(bfloat16[16, 3], sbuf)
        i = buffer(uint32[16, 3], sbuf)
        dma_copy(dst=t, src=x)
        memset(dst=v, value=0.0)
        memset(dst=i, value=0)
        topk(val_dst=v, idx_dst=i, src=t, n=64)
        dma_copy(dst=y, src=v)
        """,
    ),
    "reduction-registers": (
        "x: float32[4, 8]",
        """
        y = buffer(float32[4, 1], shared_hbm)
        t = buffer(float32[4, 8], sbuf)
        s = buffer(float32[4, 8], sbuf)
        r = buffer(float32[4, 1], sbuf)
        dma_copy(dst=t, src=x)
        tensor_scalar_reduce(dst=s, data=t, op0=multiply, operand0=2.0, reduce_op=add, reduce_res=r)
        scalar_tensor_tensor(dst=s, data=t, op0=add, operand0=1.0, op1=multiply, operand1=t)
        tensor_scalar_reduce(dst=s, data=t, op0=multiply, operand0=2.0, reduce_op=add, reduce_res=r,
                             reduce_cmd=reduce)
        dma_copy(dst=y, src=r)
        """,
    ),
}
"""Row → the parameters and the body of a program whose results differ."""

TARGETS = {"quantize-scale": "trn3"}
LOUD = {"tensor-reduce-axis", "range-select-heeds"}
"""Rows whose call one of the two versions rejects here."""


def program(id: str, nki: str) -> Program:
    head, body = PROGRAMS[id]
    results = [line.split()[0] for line in body.splitlines() if "shared_hbm" in line]
    ranks = {name: shape.count(",") + 1 for name, shape in _TENSOR.findall(f"{head}\n{body}")}

    def whole(name: re.Match[str]) -> str:
        return f"={name[1]}[{', '.join([':'] * ranks[name[1]])}]" if name[1] in ranks else name[0]

    lines = "\n".join("    " + re.sub(r"=(\w+)(?=[,)])", whole, line) for line in _joined(body))
    target = TARGETS.get(id, "trn2")
    return parse_program(
        f'program("{target}", "{nki}")\ndef p({head}):\n{lines}\n    return {", ".join(results)}\n'
    )


_TENSOR = re.compile(r"(\w+)(?:: | = buffer\()\w+\[([\d, ]+)\]")


def _joined(text: str) -> list[str]:
    """The statements, each on one line."""
    joined = re.sub(r",\n\s+", ", ", text.strip())
    return [line.strip() for line in joined.splitlines()]


def arrays(program: Program, fill: str) -> list[np.ndarray]:
    return [
        fill_array(Arg(b.name, dtype=str(b.dtype), shape=b.shape, fill=fill), SEED, 0, i)
        for i, b in enumerate(program.parameters)
    ]


def fills(change: MeaningChange) -> tuple[str, ...]:
    return change.inputs or ("ties",)


def executed(program: Program, fill: str) -> list[bytes] | None:
    """The results; None where a limit of the version rejects the program."""
    try:
        return as_bytes(execute_program(program, arrays(program, fill)))
    except KernelError:
        return None


def run_source(source: str, program: Program, version: str, fill: str) -> list[bytes]:
    names: dict[str, Any] = {}
    with use("beta2", nki=version, target=program.target):
        exec(compile(source, f"<{program.name}>", "exec"), names)
        return as_bytes(names[program.name](*copy.deepcopy(arrays(program, fill))))


@pytest.mark.parametrize("id", sorted(PROGRAMS.keys() - {"transpose-engine"}))
def test_the_inputs_of_a_row_show_the_difference(id):
    change = CHANGES[id]
    old, new = program(id, before(change)), program(id, change.since)

    for fill in fills(change):
        results = executed(old, fill), executed(new, fill)
        assert results[0] != results[1], fill
        assert (None in results) is (id in LOUD)


def test_the_engine_of_a_transposition_differs_and_its_values_do_not():
    change = CHANGES["transpose-engine"]
    old, new = program(change.id, before(change)), program(change.id, change.since)

    def engine(program: Program) -> Engine:
        (call,) = (c for c in calls(program.body) if c.instruction == "nc_transpose")
        core = NeuronCore(program.target)
        return machine_call(call, specs_of(call, program.buffers(), core), core, program.nki).engine

    assert (engine(old), engine(new)) == (Engine.tensor, Engine.vector)
    assert executed(old, "normal") == executed(new, "normal")
    assert "engine=nisa.engine.tensor" in emit(old, change.since)


@pytest.mark.parametrize("id", PROGRAMS)
def test_the_emitter_keeps_the_meaning_or_rejects_the_call(id):
    change = CHANGES[id]
    for one, other in product(VERSIONS[1:], repeat=2):
        if change.separates(one, other):
            for fill in fills(change):
                assert_agrees(program(id, one), other, fill)


def assert_agrees(own: Program, version: str, fill: str) -> None:
    """The source for a version gives the program's results, if there is one."""
    expected = executed(own, fill)
    try:
        source = emit(own, version)
    except KernelError:
        return
    if expected is not None:
        assert run_source(source, own, version, fill) == expected, (own.nki, version, fill)


REJECTED = {"quantize-scale", "topk-results", "reduction-registers"}


@pytest.mark.parametrize("id", sorted(REJECTED))
def test_a_call_without_an_equal_is_rejected_in_the_words_of_its_row(id):
    change = CHANGES[id]

    with pytest.raises(KernelError, match=f"means something else in NKI {change.since}") as caught:
        emit(program(id, before(change)), change.since)
    assert change.before in str(caught.value)
    assert change.cure in str(caught.value)


@pytest.mark.parametrize("id", ["integer-engine", "match-replace-order", "tensor-reduce-axis"])
def test_a_call_with_an_equal_is_adapted(id):
    change = CHANGES[id]
    own = program(id, before(change))

    for fill in fills(change):
        source = emit(own, change.since)
        assert run_source(source, own, change.since, fill) == executed(own, fill)


def test_indices_that_nothing_asks_for_need_no_copies():
    text = str(program("match-replace-order", "0.5")).replace(", dst_idx=i[:, :]", "")
    text = text.replace("    dma_copy(dst=y[:, :], src=i[:, :])\n", "")
    text = text.replace("return y, z", "return z")

    assert "reversed" not in emit(parse_program(text), "0.6")


# -- kernels: what the languages do ----------------------------------------------------------------

HEAD = """\
import {namespace} as nki
import {namespace}.isa as nisa
import {namespace}.language as nl

class Pair(nl.NKIObject if hasattr(nl, "NKIObject") else object):
    first: int = 0

@nki.jit
def kernel(x):
    t = nl.load(x)
"""
TAIL = """
    out = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nl.store(out, t)
    return out
"""
KERNELS = {
    "truth-of-comparisons": "    t = nl.equal(t, t)",
    "quotient-of-integers": "    t = nl.divide(t, nl.full(t.shape, 3, dtype=t.dtype))",
    "copy-exactly": "    t = nl.copy(t)",
    "functions-of-several-instructions": "    t = nl.tan(t)",
    "equality-of-objects": (
        "    scale = 2 if Pair() == Pair() else 3\n"
        "    t = nl.multiply(t, scale)"
    ),
    "loop-bodies-traced": (
        "    count = [0]\n"
        "    def body(i):\n"
        "        count[0] += 1\n"
        "        nisa.tensor_scalar(t, t, nl.add, float(count[0]))\n"
        "    nl.fori_loop(0, 3, body)"
    ),
}  # fmt: skip
"""Row → statements of a kernel whose results differ."""
OF_FLOATS = {"equality-of-objects", "loop-bodies-traced", "functions-of-several-instructions"}


def ran(id: str, version: str, fill: str) -> Any:
    namespace = "neuronxcc.nki" if version == "0.1" else "nki"
    dtype = "float32" if id in OF_FLOATS else "int32"
    x = fill_array(Arg("x", dtype=dtype, shape=(4, 8), fill=fill), SEED, 0, 0)
    names: dict[str, Any] = {}
    with use("beta1" if version == "0.1" else "beta2", nki=version):
        text = HEAD.format(namespace=namespace) + KERNELS[id] + TAIL
        exec(compile(text, f"<{id}>", "exec"), names)
        result = names["kernel"](x)
    return str(result.dtype), result.tobytes()


@pytest.mark.filterwarnings("ignore::neuroncore.instructions._limits.KernelWarning")
@pytest.mark.parametrize("id", KERNELS)
def test_a_kernel_gives_other_results(id):
    change = CHANGES[id]
    old = "0.1" if change.first == "0.1" else before(change)

    for fill in fills(change):
        assert ran(id, old, fill) != ran(id, change.since, fill)


DEFAULTS: dict[str, Callable[[str], Any]] = {
    "range-select-reduces": lambda version: _default("range_select", "reduce_cmd", version),
    "random-engine": lambda version: _default("rng", "engine", version),
}
"""Row → the default of a parameter in a version."""


def _default(name: str, parameter: str, version: str) -> Any:
    found = signature(name, version)
    return next(p.default for p in found.params if p.name == parameter) if found else None


@pytest.mark.parametrize("id", DEFAULTS)
def test_a_default_differs(id):
    change = CHANGES[id]

    assert DEFAULTS[id](before(change)) != DEFAULTS[id](change.since)


NOT_SHOWN = {
    "loop-body-once": "0.1's loops run for every number here (Options.traced_once)",
    "programs-of-axis-0": "a launch has one axis from 0.2 on",
    "barrier-engine": "it orders the engines of two cores and changes no value here",
    "precise-simulation": "Options.precise is the same in every version",
}


def test_every_row_is_shown_or_has_a_reason_not_to_be():
    shown = [*PROGRAMS, *KERNELS, *DEFAULTS, *NOT_SHOWN]

    assert sorted(shown) == sorted(CHANGES)


# -- completeness ----------------------------------------------------------------------------------


SAME = {("nc_matmul", "perf_mode")}
"""Defaults that mean the same: None in 0.1, which documents no such parameter, and none."""


def test_every_default_that_changed_is_a_row():
    named = {f for change in CHANGES.values() for f in change.functions}
    for one, other in pairwise(VERSIONS):
        for name in instruction_names(other):
            for parameter, old, new in _changed_defaults(name, one, other):
                assert f"nisa.{name}" in named, (name, parameter, old, new)


def _changed_defaults(name: str, one: str, other: str) -> list[tuple[str, Any, Any]]:
    old, new = signature(name, one), signature(name, other)
    record = INSTRUCTIONS[name]
    if old is None or new is None:
        return []
    fields = {p.field: p.default for p in old.params}
    return [
        (p.name, fields[p.field], p.default)
        for p in new.params
        if fields.get(p.field, REQUIRED) is not REQUIRED
        and p.default is not REQUIRED
        and p.field in record.attrs
        and (name, p.field) not in SAME
        and record.attrs[p.field].convert(fields[p.field])
        != record.attrs[p.field].convert(p.default)
    ]


READ_BY_RUN = {
    "memset": "a fraction for an integer tile: cast up to 0.2, an error from 0.3 on",
}
"""Records whose results are the same in every version that accepts the call."""


def test_every_instruction_whose_record_computes_by_version_is_a_row():
    named = {f for change in CHANGES.values() for f in change.functions}
    by_version = {
        name
        for name, record in INSTRUCTIONS.items()
        if any(reads_version(f, set()) for f in (record.run, record.engine_of, record.chooses))
    }

    assert {f"nisa.{name}" for name in by_version - READ_BY_RUN.keys()} <= named
    assert by_version >= {"quantize_mx", "nc_match_replace8", "topk", "tensor_reduce"}


def reads_version(function: Any, seen: set[Any]) -> bool:
    """Whether a function of a record, or one that it calls there, reads the version of the call."""
    if not isinstance(function, FunctionType) or function in seen:
        return False
    seen.add(function)
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        held += [function.__globals__.get(name) for name in code.co_names]
    if any("version" in code.co_names for code in codes):
        return True
    own = (f for f in held if getattr(f, "__module__", "").startswith(RECORDS))
    return any(reads_version(f, seen) for f in own)


RECORDS = "neuroncore.instructions."


NL_KERNEL = """\
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def kernel(x, y):
    a, b = nl.load(x), nl.load(y)
    t = nl.CALL
    COPY
    out = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.shared_hbm)
    nl.store(out, t)
    return out
"""
TO_SBUF = "s = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.sbuf); nisa.tensor_copy(s, t); t = s"


def nl_kernel(call: str, version: str) -> str:
    text = NL_KERNEL.replace("CALL", call)
    if version != "0.1":
        return text.replace("COPY", TO_SBUF)
    return text.replace("COPY", "pass").replace(
        "import nki, nki.isa as nisa, nki.language as nl",
        "from neuronxcc import nki; import neuronxcc.nki.language as nl",
    )


FORMS = {("x",): "NAME(a)", ("x", "y"): "NAME(a, b)", ("x", "axis"): "NAME(a, 1)"}
"""A call for each list of required parameters; functions of others move, draw or print tiles."""


def nl_calls(version: str) -> dict[str, str]:
    """Function → a call of it, for functions of `nl` on tiles."""
    nl = BACKEND.modules(Choice("beta2", max(version, "0.3")))["nki.language"]
    found = {}
    for name in dir(nl):
        signed = getattr(getattr(nl, name, None), "__signature__", None)
        if signed is not None:
            required = tuple(p.name for p in signed.parameters.values() if p.default is p.empty)
            if required in FORMS:
                found[name] = FORMS[required].replace("NAME", name)
    return found


def nl_result(call: str, version: str, dtype: str, fill: str) -> tuple[str, bytes] | None:
    """dtype and bytes of a call's result; None where the version rejects it."""
    x, y = (fill_array(Arg(n, dtype=dtype, shape=(4, 8), fill=fill), SEED, 0, ord(n)) for n in "xy")
    names: dict[str, Any] = {}
    try:
        with use("beta1" if version == "0.1" else "beta2", nki=version):
            exec(compile(nl_kernel(call, version), f"<{call}>", "exec"), names)
            result = names["kernel"](x, y)
    except KernelError:
        return None
    return str(result.dtype), result.tobytes()


HARD = (("float32", "extremes"), ("float32", "nan"), ("int32", "large_integers"))


@pytest.mark.filterwarnings("ignore")  # overflow and NaN of extreme inputs
@pytest.mark.parametrize(("one", "other"), [("0.1", "0.3"), *pairwise(VERSIONS[2:])])
def test_a_function_of_nl_that_differs_between_two_versions_is_a_row(one, other):
    named = {f for c in CHANGES.values() if c.separates(one, other) for f in c.functions}
    calls = nl_calls(one).items() & nl_calls(other).items()

    for name, call in sorted(calls):
        for dtype, fill in HARD:
            results = [nl_result(call, version, dtype, fill) for version in (one, other)]
            if None not in results and results[0] != results[1]:
                assert f"nl.{name}" in named, (call, dtype, fill)
    assert len(calls) > 50


# -- the migrator ----------------------------------------------------------------------------------


def rules_of(change: MeaningChange) -> list[str]:
    return [rule.id for rule in all_rules().values() if change.id in rule.changes]


@pytest.mark.parametrize("id", [c.id for c in CHANGES.values() if c.since in MIGRATED])
def test_a_rule_rewrites_or_reports_a_row(id):
    rules = [all_rules()[rule] for rule in rules_of(CHANGES[id])]

    assert rules
    assert all(VERSIONS.index(r.step[1]) <= VERSIONS.index(CHANGES[id].since) for r in rules)


def shown_by(change: MeaningChange, rule: Rule) -> list[Example]:
    """Examples of a rule with a call that the row is about; all where it is about a construct."""
    names = [function.partition(".")[2] for function in change.functions]
    return [e for e in rule.examples if not names or any(f".{n}(" in e.bad for n in names)]


@pytest.mark.parametrize("id", [c.id for c in CHANGES.values() if c.since in MIGRATED])
def test_a_kernel_that_a_row_is_about_gets_a_finding(id):
    rules = [all_rules()[rule] for rule in rules_of(CHANGES[id])]
    examples = [(rule, e) for rule in rules for e in shown_by(CHANGES[id], rule)]

    assert examples
    for rule, example in examples:
        request = Request(source_version=rule.step[0], target=example.target or rule.step[1])
        result = migrate_source(example.bad, "kernel.py", request)
        assert rule.id in {finding.rule for finding in result.findings}


def test_rules_name_rows_of_the_table():
    assert {c for rule in all_rules().values() for c in rule.changes} <= CHANGES.keys()


def test_programs_of_the_old_version_stay_as_they_are():
    own = program("match-replace-order", "0.5")

    assert "reversed" not in emit(own, "0.2")
    assert "reversed" in emit(replace(own, nki="0.6"), "0.2")
