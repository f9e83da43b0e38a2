"""What a kernel stores in its arguments is an output: dropped, changed or moved, it is rejected."""

import runpy
from dataclasses import replace

import numpy as np
import pytest
from packages.nkigym.tests.checker.test_kernel_value_numbering import put, sites

import nki_runtime
from neuroncore.program import Access, check, emit, execute_program, parse_program
from nkigym import tune
from nkigym.analysis.outputs import written_parameters
from nkigym.checker import check_kernels
from nkigym.tuning import VerificationError, verify_winner
from nkigym.tuning.execution import difference, in_domain, run_program, run_source

UPDATE = """\
program("trn2", "0.6")
def update(cache: {format}[256, 64], new: {format}[256, 64], spare: {format}[256, 64]):
    out = buffer({format}[256, 64], shared_hbm)
    for i in range(2):
        a = buffer({format}[128, 64], sbuf)
        b = buffer({format}[128, 64], sbuf)
        dma_copy(dst=a[:, :], src=new[128*i : 128*i + 128, :])
        dma_copy(dst=b[:, 0:32], src=cache[128*i : 128*i + 128, 0:32])
        dma_copy(dst=out[128*i : 128*i + 128, :], src=a[:, :])
        dma_copy(dst=cache[128*i : 128*i + 128, 32:64], src=b[:, 0:32])
    return {returned}
"""
RETURNED = {"a result": "out", "the argument": "cache", "nothing": ""}
EACH_RETURN = pytest.mark.parametrize("returned", RETURNED.values(), ids=list(RETURNED))
FORMATS = pytest.mark.parametrize("format", ["float32", "int32"])


def update(format="float32", returned="out"):
    program = parse_program(UPDATE.format(format=format, returned=returned))
    check(program)
    return program


def with_last(program, **operands):
    """With other operands of the last store; without it where none are given."""
    at, call = list(sites(program.body))[-1]
    new = (replace(call, operands={**call.operands, **operands}),) if operands else ()
    made = replace(program, body=put(program.body, at, new))
    check(made)
    return made


def mutants(program):
    _, store = list(sites(program.body))[-1]
    into, source = (store.operands[name] for name in ("dst", "src"))
    assert isinstance(into, Access)
    assert isinstance(source, Access)
    return {
        "dropped": with_last(program),
        "of another value": with_last(program, src=replace(source, buffer="a")),
        "elsewhere": with_last(program, dst=replace(into, offset=into.offset - 32)),
        "to another argument": with_last(program, dst=replace(into, buffer="spare")),
        "one column less": with_last(
            program, dst=replace(into, shape=(128, 31)), src=replace(source, shape=(128, 31))
        ),
    }


MUTANTS = list(mutants(update()))


@FORMATS
@EACH_RETURN
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_store_to_an_argument_that_is_another_is_rejected(mutant, returned, format):
    root = update(format, returned)
    wrong = mutants(root)[mutant]

    assert check_kernels(root, root) == []
    assert any("elements of cache differ" in found.what for found in check_kernels(root, wrong))
    with pytest.raises(
        VerificationError, match=r"executed, real size: FAILED, (argument|output 0)"
    ):
        verify_winner(root, wrong, (), lambda: iter(()))


@FORMATS
@EACH_RETURN
def test_numbers_and_execution_each_find_a_dropped_store(returned, format):
    root = update(format, returned)

    with pytest.raises(VerificationError) as raised:
        verify_winner(root, with_last(root), (), lambda: iter(()))

    said = str(raised.value)
    assert "value numbers, real size: FAILED, 8192 elements of cache differ, first (0, 32)" in said
    assert "executed, real size: FAILED" in said


@FORMATS
@EACH_RETURN
def test_a_kernel_that_updates_an_argument_is_tuned(returned, format):
    root = update(format, returned)

    winner = tune(root, budget=20)

    assert winner.speedup > 1
    assert all(each.passed is not False for each in winner.checks)
    assert "and 1 arguments" in str(winner.checks[-1])
    cache, new, spare = (np.random.default_rng(n).integers(-99, 99, (256, 64)) for n in range(3))
    arrays = [array.astype(format) for array in (cache, new, spare)]
    execute_program(winner.program, arrays)
    assert (arrays[0] == np.hstack([cache[:, :32], cache[:, :32]])).all()
    assert (arrays[1] == new).all()
    assert (arrays[2] == spare).all()


def test_runs_give_arguments_as_they_are_left_and_leave_what_is_given():
    root = update()
    inputs, wanted = in_domain(root, seed=1)
    kept = [array.copy() for array in inputs]

    found = run_source(emit(root), root, inputs)

    assert written_parameters(root) == ["cache"]
    assert difference(found, wanted) is None
    assert difference(run_program(root, inputs), wanted) is None
    assert difference(inputs, kept) is None
    out, cache, new, spare = found
    assert (out == new).all()
    assert (cache[:, 32:] == kept[0][:, :32]).all()
    assert (spare == kept[2]).all()


LOGARITHM = """\
program("trn2", "0.6")
def f(x: float32[128, 64]):
    out = buffer(float32[128, 64], shared_hbm)
    a = buffer(float32[128, 64], sbuf)
    dma_copy(dst=a[:, :], src=x[:, :])
    dma_copy(dst=out[:, :], src=a[:, :])
    activation(dst=a[:, :], data=a[:, :], op=log, scale=1.0)
    dma_copy(dst=x[:, :], src=a[:, :])
    return out
"""


def test_an_argument_without_a_value_asks_for_inputs_that_have_one():
    inputs, (_, after) = in_domain(parse_program(LOGARITHM), seed=1)

    assert (inputs[0] > 0).all()
    assert np.isfinite(after).all()


IN_PLACE = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def doubled(x):
    rows, columns = x.shape
    for start in range(0, rows, 128):
        tile = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + 128, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=x[start : start + 128, :], src=tile)
    return x
"""


def test_a_kernel_in_place_is_proved_at_a_small_size_too(tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text(IN_PLACE, "utf-8")

    with nki_runtime.use():
        kernel = runpy.run_path(str(file))["doubled"]
        winner = tune(kernel, "f32[1024,64]", budget=20)

    names = [check.name for check in winner.checks]
    assert names[3] == "value numbers, float32[256, 64]"
    assert names[4:] == ["executed, float32[256, 64]", "executed, real size"]
    assert all(each.passed for each in winner.checks)
    assert "and 1 arguments" in str(winner.checks[-1])


RANDOM = """\
program("trn2", "0.6")
def f(x: uint32[128, 64]):
    for i in range(2):
        a = buffer(uint32[128, 32], sbuf)
        rng(dst=a[:, :])
        dma_copy(dst=x[:, 32*i : 32*i + 32], src=a[:, :])
    return
"""


def test_what_has_no_numbers_is_proved_by_execution_alone():
    root = parse_program(RANDOM)
    checks = verify_winner(root, root, (), lambda: iter(()))

    assert (
        str(checks[3])
        == "value numbers: not checked, rng takes what comes next of a random sequence"
    )
    assert str(checks[-1]) == (
        "executed, real size: ok, 8,192 elements of 0 outputs and 1 arguments equal to the bit"
    )
    with pytest.raises(VerificationError, match="argument x differs"):
        verify_winner(root, with_last(root), (), lambda: iter(()))
