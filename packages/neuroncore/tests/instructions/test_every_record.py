"""What holds for every instruction of the machine, whichever it is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from neuroncore.effects import Touch
from neuroncore.enums import NcVersion
from neuroncore.errors import KernelError
from neuroncore.instructions import INSTRUCTIONS, Call, check
from neuroncore.isa.examples import example_call
from neuroncore.surface import VERSIONS, signature, version_tuple
from neuroncore.targets import TARGETS
from nki_dtypes import ALL

from .limit_pairs import PAIRS, call_of, pair_of

RECORDS = pytest.mark.parametrize("record", INSTRUCTIONS.values(), ids=lambda r: r.name)
EXAMPLES = pytest.mark.parametrize(
    ("record", "example"),
    [
        pytest.param(r, e, id=f"{r.name}-{n}")
        for r in INSTRUCTIONS.values()
        for n, e in enumerate(r.examples)
    ],
)
LIMITS = pytest.mark.parametrize(
    ("record", "limit"),
    [
        pytest.param(r, limit, id=f"{r.name}-{n}")
        for r in INSTRUCTIONS.values()
        for n, limit in enumerate(r.limits)
    ],
)


def is_legal(call: Call) -> bool:
    return not check(call)


# -- examples -------------------------------------------------------------------------------------


@EXAMPLES
def test_an_example_gives_what_it_promises(record, example):
    use = example_call(record, example)

    use.run()

    assert set(example.expect) <= set(record.outputs)
    for name, expected in example.expect.items():
        got = use.operands[name].array.astype(np.float64)
        np.testing.assert_array_equal(got, np.reshape(expected, got.shape))


@EXAMPLES
def test_the_destination_that_01_infers_holds_what_the_example_gives(record, example):
    call = example_call(record, example).call
    dst = call.tiles[record.anchor]

    shape, dtype, space = record.result(call)

    assert np.prod(shape) == dst.size
    assert space in record.operands[record.anchor].spaces
    assert dtype in ALL


# -- limits ---------------------------------------------------------------------------------------


@LIMITS
def test_a_limit_is_broken_by_its_own_counterexample(record, limit):
    call = example_call(record, record.examples[0], **limit.breaks).call
    found = check(call)

    mine = list(limit.check(call))

    assert mine, "the counterexample does not break the limit"
    assert all(violation in found for violation in mine), "a common rule hides the limit"


@LIMITS
def test_a_limit_holds_for_the_first_example(record, limit):
    assert list(limit.check(example_call(record, record.examples[0]).call)) == []


@LIMITS
def test_a_broken_limit_says_what_is_wrong_what_was_expected_and_which_rule(record, limit):
    use = example_call(record, record.examples[0], **limit.breaks)
    (violation, *_) = check(use.call)

    with pytest.raises(violation.error) as raised:
        use.run()

    text = str(raised.value)
    assert f"{record.name}: {violation.what}" in text.splitlines()[0]
    assert "\n" not in violation.what
    assert violation.expected
    assert f"[{violation.rule}]" in text
    assert violation.operand in {*record.operands, *record.attrs}


@LIMITS
def test_a_limit_lies_between_two_adjacent_calls(record, limit):
    """What is just inside is legal, what is just outside breaks this limit."""
    number = record.limits.index(limit)
    pair = pair_of(record, number)

    assert pair is not None, f"PAIRS needs calls inside and outside of ({record.name!r}, {number})"
    inside, outside = pair
    assert check(call_of(record, inside)) == []
    broken = list(limit.check(call_of(record, outside)))
    assert broken
    assert all(violation in check(call_of(record, outside)) for violation in broken)


def test_pairs_are_of_limits_that_there_are():
    counts = {r.name: len(r.limits) for r in INSTRUCTIONS.values()}

    assert all(number < counts.get(name, 0) for name, number in PAIRS)


# -- effects, work, engines -----------------------------------------------------------------------


@EXAMPLES
def test_effects_name_operands_or_registers_and_cover_every_output(record, example):
    call = example_call(record, example).call

    effects = record.effects(call)

    memory = {e.operand.partition(".")[0] for e in effects if not e.is_register}
    changed = {e.operand for e in effects if e.touch is not Touch.read}
    assert memory <= set(call.tiles)
    assert {name for name in record.outputs if name in call.tiles} <= changed
    assert all(record.operands[n].writes for n in changed & set(record.operands))


@EXAMPLES
@pytest.mark.parametrize("target", TARGETS)
def test_work_takes_time_on_every_generation_where_the_call_is_legal(record, example, target):
    call = example_call(record, example, target=target).call
    if not is_legal(call):
        pytest.skip(f"not legal on {target}")

    work = record.work(call)

    assert work
    assert {op.engine for op in work} == {call.engine}
    assert all(getattr(op, "interval", 1) > 0 for op in work)
    assert all(getattr(op, "bytes", 1) > 0 for op in work)


@RECORDS
def test_every_engine_of_a_record_is_reached_by_an_example(record):
    def reached(example, target, version, asked):
        engine = {} if asked is None or "engine" not in record.attrs else {"engine": asked}
        call = example_call(record, example, target=target, version=version, **engine).call
        return call.engine if is_legal(call) else None

    versions = [version_tuple(v) for v in VERSIONS]
    wishes = product(record.examples, TARGETS, versions, (None, *record.engines))

    assert {reached(*wish) for wish in wishes} - {None} == set(record.engines)


def test_generations_have_the_names_that_nki_gives_them():
    assert {t.nc_version: t.generation for t in TARGETS.values()} == {
        v.name: v.value for v in NcVersion
    }


# -- operands and dtypes --------------------------------------------------------------------------


@EXAMPLES
def test_every_dtype_of_every_operand_is_computed_or_rejected_as_the_kernels_mistake(
    record, example
):
    """No dtype raises anything other than a KernelError."""
    base = example_call(record, example).call.tiles
    for name, dtype in product(base, ALL):
        spec = base[name]
        text = f"{dtype}[{', '.join(map(str, spec.shape))}] {spec.space.name}"
        use = example_call(record, example, **{name: text})
        try:
            with np.errstate(all="ignore"):
                use.run()
        except KernelError as rejected:
            assert rejected.rule, f"{name}={text}"


@EXAMPLES
def test_an_example_runs_on_a_core_that_keeps_low_precision_as_float32(record, example):
    from neuroncore.options import Options

    example_call(record, example, options=Options(precise=False)).run()


@RECORDS
def test_a_record_says_where_it_comes_from_and_which_versions_have_it(record):
    versions = [i for i, v in enumerate(VERSIONS) if signature(record.name, v) is not None]

    assert record.source.startswith("NKI")
    assert record.run.__doc__
    assert versions == list(range(versions[0], versions[-1] + 1))
