"""Tiles may have any names: a space identifies them by numbers."""

import numpy as np
import pytest

from neuroncore.errors import LaunchError
from neuroncore.program import execute_program
from nkigym import matmul_root, rewrite_graph, tune
from nkigym.checker import check_tiles, run_tiles
from nkigym.tiles import parse_tiles, print_tiles, tensor_add_root
from nkigym.tiles.program import with_numbers

DIFFERENCE = """def f({0}: float32[128, 256], {1}: float32[128, 256]):
    {2} = allocate(128, 256)
    {3} = {0}[0:128, 0:128]
    {4} = {1}[0:128, 0:128]
    {5} = tensor_tensor(data1={3}, data2={4}, op='subtract')
    {2}[0:128, 0:128] = {5}
    {6} = {0}[0:128, 128:256]
    {7} = {1}[0:128, 128:256]
    {8} = tensor_tensor(data1={6}, data2={7}, op='subtract')
    {2}[0:128, 128:256] = {8}
    return {2}
"""
NAMES = {
    "letters": "A B output a b difference c d e",
    "equal numbers": "A B output a0 t0 t2 a3 t3 t5",
    "leading zeros": "A B output t0 t00 t2 t3 t03 t5",
    "numbered": "A B output t0 t1 t2 t13 t14 t15",
    "numbers that fall": "A B output t4 t3 t9 t1 t0 t7",
    "parameters that are numbered": "t0 t1 t2 a b c d e f1",
    "numbers that do not come one by one": "A B output tile0 tile1 x7 y7 z7 t1",
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_a_tuned_program_is_the_one_that_was_given(names):
    program = parse_tiles(DIFFERENCE.format(*names.split()))
    a, b = np.random.default_rng(0).integers(-9, 10, (2, 128, 256)).astype(np.float32)

    tuned = tune(program, budget=30)

    assert tuned.speedup > 1
    np.testing.assert_array_equal(execute_program(tuned.program, [a, b])[0], a - b)


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_all_names_lead_to_the_same_searches(names):
    plain = tune(parse_tiles(DIFFERENCE.format(*NAMES["numbered"].split())), budget=30)

    tuned = tune(parse_tiles(DIFFERENCE.format(*names.split())), budget=30)

    assert tuned.report.best_ns == plain.report.best_ns
    assert tuned.report.unique == plain.report.unique


def test_numbered_tiles_keep_their_names():
    root = matmul_root(2, 1, 1)

    assert with_numbers(root) is root
    assert rewrite_graph(root).tile_program(rewrite_graph(root).root) == root


def test_the_proof_is_against_what_was_given(monkeypatch):
    """A space that takes another tile for the second operand does not pass."""
    program = parse_tiles(DIFFERENCE.format(*NAMES["letters"].split()))
    right = with_numbers(program)
    wrong = parse_tiles(print_tiles(right).replace("data1=t0", "data1=t1"))
    monkeypatch.setattr("nkigym.tile_rewrites.partition.with_numbers", lambda given: wrong)

    with pytest.raises(Exception, match="executed, real size: FAILED"):
        tune(program, budget=10)


def replaced(root, number, **changes):
    statements = list(root.statements)
    statements[number] = statements[number]._replace(**changes)
    return root._replace(statements=tuple(statements))


def shadowing():
    """Programs in which two things have one name."""
    root = tensor_add_root(1, 1)
    allocate, first, second, *_ = root.statements
    as_output = first._replace(output=first.output._replace(name="output"))
    yield replaced(root, 1, output=as_output.output)
    yield replaced(root, 1, output=first.output._replace(name="A"))
    yield replaced(root, 1, output=second.output)
    yield root._replace(statements=(*root.statements, as_output))
    yield replaced(root, 0, output=allocate.output._replace(name="A"))


@pytest.mark.parametrize("program", list(shadowing()))
def test_one_name_for_two_things_is_rejected_by_both_checks(program):
    assert check_tiles(program, "tensor_add")
    assert run_tiles(program, "tensor_add")


def test_a_space_rejects_one_name_for_two_tiles():
    root = tensor_add_root(1, 1)
    again = replaced(root, 2, output=root.statements[1].output)

    with pytest.raises(LaunchError, match=f"{again.statements[1].output.name} is defined already"):
        rewrite_graph(again)


def test_a_space_rejects_what_is_read_before_it_is_made():
    root = tensor_add_root(1, 1)
    allocate, first, *others = root.statements

    with pytest.raises(LaunchError, match="is read before anything makes it"):
        rewrite_graph(root._replace(statements=(allocate, *others, first)))
