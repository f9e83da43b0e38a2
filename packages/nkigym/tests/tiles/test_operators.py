"""Tile programs of several operators, and transforms that the public original has not."""

import random

import numpy as np
import pytest
from packages.nkigym.tests.mutants import mutants

from neuroncore.program import check, execute_program
from nkigym import certificate, exhaust, matmul_root, rewrite_graph
from nkigym.checker import check_tiles, read_certificate, run_tiles
from nkigym.tile_rewrites import KNOWN, TRANSFORMS, Walk
from nkigym.tiles import (
    parse_tiles,
    print_tiles,
    repeated_add_root,
    rmsnorm_matmul_root,
    sum_and_product_root,
    tensor_add_root,
)
from nkigym.tiles.lowering import lower
from nkigym.tiles.operators import OPERATORS

PUBLIC, ALL = tuple(TRANSFORMS), tuple(KNOWN)
EVERY = (*PUBLIC, "call-reuse", "wide-merge")

SPACES = {
    ("tensor_add", PUBLIC): (tensor_add_root(1, 3), 9),
    ("tensor_add", EVERY): (tensor_add_root(1, 3), 20),
    ("sum_and_product", PUBLIC): (sum_and_product_root(1, 2), 100),
    ("sum_and_product", EVERY): (sum_and_product_root(1, 2), 184),
    ("rmsnorm_matmul", PUBLIC): (rmsnorm_matmul_root(1, 2, 1), 30),
    ("rmsnorm_matmul", EVERY): (rmsnorm_matmul_root(1, 2, 1), 72),
    ("rmsnorm_matmul, two deep", EVERY): (rmsnorm_matmul_root(1, 1, 2), 20),
    ("matmul", EVERY): (matmul_root(1, 2, 2), 32),
    ("repeated_add", EVERY): (repeated_add_root(1, 3), 15),
    ("repeated_add", ALL): (repeated_add_root(1, 3), 65),
    ("sum_and_product", ALL): (sum_and_product_root(1, 2), 396),
    ("matmul", ALL): (matmul_root(1, 2, 2), 72),
}
EACH_SPACE = pytest.mark.parametrize(
    ("name", "transforms"), SPACES, ids=lambda given: given if isinstance(given, str) else None
)


def programs(name, transforms):
    """The function's name, the space and every program of it."""
    root, number = SPACES[name, transforms]
    space = rewrite_graph(root, transforms)
    nodes = list(exhaust(space).depths)
    assert len(nodes) == number
    return name.split(",")[0], space, nodes


@EACH_SPACE
def test_what_steps_lead_to_is_still_the_function(name, transforms):
    function, space, nodes = programs(name, transforms)

    for node in nodes[:: max(1, len(nodes) // 30)]:
        certified = read_certificate(certificate(space, node, function).to_json())
        assert certified.findings() == []
        assert run_tiles(certified.program, function) == []


@EACH_SPACE
def test_the_text_of_a_program_is_read_back(name, transforms):
    _, space, nodes = programs(name, transforms)

    for node in nodes[::7]:
        program = space.tile_program(node)
        assert parse_tiles(print_tiles(program)) == program


@EACH_SPACE
def test_certificate_and_execution_agree_on_mutants(name, transforms):
    function, space, nodes = programs(name, transforms)
    chosen = random.Random(5)
    verdicts = []

    for node in chosen.sample(nodes, min(6, len(nodes))):
        for mutant in mutants(space.tile_program(node), chosen, 10):
            certified, equal = check_tiles(mutant, function), run_tiles(mutant, function)
            assert bool(certified) == bool(equal), (print_tiles(mutant), certified, equal)
            verdicts.append(not certified)

    assert 0 < sum(verdicts) < len(verdicts) / 2


def expected(function, a, b):
    """In float64."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    normal = a / np.sqrt(np.mean(a * a, axis=1, keepdims=True) + 2.0**-20)
    results = {
        "matmul": lambda: [a.T @ b],
        "tensor_add": lambda: [a + b],
        "repeated_add": lambda: [a + np.tile(b, (1, a.shape[1] // b.shape[1]))],
        "sum_and_product": lambda: [a + b, a * b],
        "rmsnorm_matmul": lambda: [normal @ b],
    }
    return results[function]()


@EACH_SPACE
def test_kernels_of_programs_are_legal_and_compute_the_function(name, transforms):
    """Roots of squares and what is multiplied with them are rounded: 128 terms of float32."""
    function, space, nodes = programs(name, transforms)
    random = np.random.default_rng(3)

    for node in nodes[:: max(1, len(nodes) // 5)]:
        kernel = lower(space.tile_program(node))
        check(kernel)
        arrays = [random.integers(-8, 9, b.shape).astype(np.float32) for b in kernel.parameters]
        given = execute_program(kernel, arrays)
        for got, wanted in zip(given, expected(function, *arrays), strict=True):
            rounding = 128 * 2.0**-24 if function == "rmsnorm_matmul" else 0
            assert np.max(np.abs(got - wanted)) <= rounding * np.max(np.abs(wanted))


ONE_CALL = {
    "nc_matmul": "nc_matmul(stationary=a, moving=b)",
    "nc_transpose": "nc_transpose(data=a)",
    "activation": "activation(data=a, op='square', scale=0.5, bias=2.0)",
    "tensor_scalar": "tensor_scalar(data=a, operand0=b[0:128, 0:1], op='subtract')",
    "tensor_tensor": "tensor_tensor(data1=a, data2=b, op='maximum')",
    "tensor_reduce": "tensor_reduce(data=a, op='minimum')",
}


MEANING = {
    "nc_matmul": lambda a, b: a.T @ b,
    "nc_transpose": lambda a, b: a.T,
    "activation": lambda a, b: np.square(a * np.float32(0.5) + np.float32(2)),
    "tensor_scalar": lambda a, b: a - b[:, :1],
    "tensor_tensor": np.maximum,
    "tensor_reduce": lambda a, b: a.min(axis=1, keepdims=True),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_instruction_of_an_operator_computes_its_function(name):
    columns = 1 if OPERATORS[name].result[1] == "1" else 128
    program = parse_tiles(f"""def f(A: float32[128, 128], B: float32[128, 128]):
    output = allocate(128, {columns})
    a = A[0:128, 0:128]
    b = B[0:128, 0:128]
    c = {ONE_CALL[name]}
    output[0:128, 0:{columns}] = c
    return output
""")
    random = np.random.default_rng(1)
    a, b = (random.integers(-8, 9, (128, 128)).astype(np.float32) for _ in range(2))

    kernel = lower(program)
    check(kernel)
    (given,) = execute_program(kernel, [a, b])

    assert np.array_equal(given, MEANING[name](a, b))


def last(root, transforms, wanted):
    """The program that the longest schedules lead to, which has so many statements."""
    space = rewrite_graph(root, transforms)
    depths = exhaust(space).depths
    program = space.tile_program(max(depths, key=lambda node: depths[node]))
    assert len(program.statements) == wanted
    return program


def test_transposes_of_one_tile_are_one_where_calls_are_reused():
    program = last(rmsnorm_matmul_root(1, 2, 1), ("data-reuse", "call-reuse"), 13)

    operators = [s.operator for s in program.statements]
    assert operators.count("nc_transpose") == operators.count("tensor_scalar") == 1
    assert operators.count("nc_matmul") == 2


def test_equal_sums_are_not_reused_as_each_has_a_place_of_its_own():
    program = parse_tiles("""def f(A: float32[128, 128], B: float32[128, 128]):
    output = allocate(128, 256)
    t0 = A[0:128, 0:128]
    t1 = B[0:128, 0:128]
    t2 = nc_matmul(stationary=t0, moving=t1)
    t3 = nc_matmul(stationary=t0, moving=t0, accumulator=t2)
    t4 = nc_matmul(stationary=t0, moving=t1)
    t5 = nc_matmul(stationary=t1, moving=t1, accumulator=t4)
    output[0:128, 0:128] = t3
    output[0:128, 128:256] = t5
    return output
""")
    space = rewrite_graph(program, ("call-reuse",))

    assert space.tile_program(space.root) == program
    assert space.steps(space.root) == []


def test_sums_of_a_chain_are_made_512_columns_wide():
    program = last(matmul_root(1, 4, 2), ("operand-merge", "wide-merge"), 14)
    sums = [s for s in program.statements if s.operator == "nc_matmul"]

    assert [s.output.shape for s in sums] == [(128, 512), (128, 512)]


SHARED = """def f(A: float32[128, 256], B: float32[128, 128]):
    output = allocate(128, 256)
    t0 = A[0:128, 0:256]
    t1 = repeat(B[0:128, 0:128], copies=2)
    t2 = tensor_tensor(data1=t0, data2=t1, op='add')
    output[0:128, 0:256] = t2
    return output
"""


def shortest(root, transforms):
    """What the longest schedules lead to."""
    space = rewrite_graph(root, transforms)
    depths = exhaust(space).depths
    return space.tile_program(max(depths, key=lambda node: depths[node]))


def test_operations_that_share_an_operand_become_one_where_it_is_loaded_twice():
    root = repeated_add_root(1, 2)

    without, program = shortest(root, EVERY), shortest(root, ALL)

    assert [s.operator for s in without.statements].count("tensor_tensor") == 2
    assert print_tiles(program) == SHARED


def test_no_load_is_merged_with_one_that_holds_copies():
    program = parse_tiles("""def f(A: float32[128, 384], B: float32[128, 128]):
    output = allocate(128, 384)
    t0 = repeat(A[0:128, 0:128], copies=2)
    t1 = A[0:128, 128:256]
    output[0:128, 0:256] = t0
    output[0:128, 256:384] = t1
    return output
""")

    for transforms in (PUBLIC, ALL):
        space = rewrite_graph(program, transforms)
        assert space.tile_program(space.root) == program
        assert space.steps(space.root) == []


def test_another_number_of_copies_is_another_value():
    program = parse_tiles(SHARED)
    loaded = program.statements[2]
    assert check_tiles(program, "tensor_add") == run_tiles(program, "tensor_add") == []

    for copies in (1, 3, -2, "2"):
        wrong = loaded._replace(arguments=(loaded.arguments[0], ("copies", copies)))
        mutant = program._replace(
            statements=(*program.statements[:2], wrong, *program.statements[3:])
        )
        assert check_tiles(mutant, "tensor_add")
        assert run_tiles(mutant, "tensor_add")


@pytest.mark.parametrize("seed", range(5))
def test_no_sum_is_wider_than_512_columns(seed):
    space = rewrite_graph(matmul_root(1, 6, 2), ("operand-merge", "wide-merge"))
    walked = Walk(space, random.Random(seed))
    while walked.opportunities:
        walked.step()

    program = space.tile_program(walked.node)
    widths = [s.output.shape[1] for s in program.statements if s.operator == "nc_matmul"]
    assert max(widths) in (256, 384, 512)
    assert check_tiles(program) == []


def test_stores_to_two_outputs_are_not_merged():
    program = parse_tiles("""def f(A: float32[128, 256], B: float32[128, 256]):
    total = allocate(128, 256)
    scaled = allocate(128, 256)
    t0 = A[0:128, 0:256]
    total[0:128, 0:128] = t0[0:128, 0:128]
    scaled[0:128, 128:256] = t0[0:128, 128:256]
    return total, scaled
""")

    assert rewrite_graph(program).steps(rewrite_graph(program).root) == []


def test_results_in_psum_are_copied_for_what_cannot_read_them_there():
    program = parse_tiles("""def f(A: float32[128, 128], B: float32[128, 128]):
    output = allocate(128, 128)
    a = A[0:128, 0:128]
    b = B[0:128, 0:128]
    c = nc_matmul(stationary=a, moving=b)
    d = nc_transpose(data=c)
    e = tensor_tensor(data1=c, data2=d, op='add')
    output[0:128, 0:128] = e
    return output
""")
    random = np.random.default_rng(2)
    a, b = (random.integers(-8, 9, (128, 128)).astype(np.float32) for _ in range(2))

    kernel = lower(program)
    check(kernel)
    (given,) = execute_program(kernel, [a, b])

    assert np.array_equal(given, a.T @ b + (a.T @ b).T)


@pytest.mark.parametrize("tiles", [(1, 2, 2), (2, 1, 2)])
def test_more_transforms_are_listed_behind_the_public_ones_and_not_by_default(tiles):
    contraction, rows, columns = tiles
    root = matmul_root(rows=rows, columns=columns, contraction=contraction)
    public, every = rewrite_graph(root), rewrite_graph(root, ALL)

    for node in list(exhaust(every).depths)[::5]:
        kinds = [step.kind for step in every.steps(node)]
        more = [kind in ("reuse calls", "widen calls", "load twice") for kind in kinds]
        assert more == sorted(more)
    assert {s.kind for node in exhaust(public).depths for s in public.steps(node)} <= {
        kind for kinds in TRANSFORMS.values() for kind in kinds
    }


@pytest.mark.parametrize("check", [check_tiles, run_tiles])
def test_every_output_is_asked_for(check):
    root = sum_and_product_root(1, 1)
    stores = [s for s in root.statements if s.operator == "store"]
    exchanged = root._replace(returns=root.returns[::-1])
    without = root._replace(statements=tuple(s for s in root.statements if s != stores[-1]))

    assert check(root, "sum_and_product") == []
    assert "scaled" in str(check(without, "sum_and_product")[0])
    assert check(exchanged, "sum_and_product")
    assert check(root, "tensor_add")


@pytest.mark.parametrize("check", [check_tiles, run_tiles])
@pytest.mark.parametrize(
    "call",
    [
        "nc_transpose(data=A_wide)",
        "tensor_tensor(data1=A_wide, data2=B_narrow, op='add')",
        "tensor_scalar(data=A_wide, operand0=B_narrow, op='multiply')",
        "nc_matmul(stationary=A_wide, moving=B_narrow)",
    ],
)
def test_operands_that_do_not_fit_are_rejected(check, call):
    program = parse_tiles(f"""def f(A: float32[128, 256], B: float32[128, 256]):
    output = allocate(128, 256)
    A_wide = A[0:128, 0:256]
    B_narrow = B[0:128, 0:128]
    c = {call}
    output[0:128, 0:256] = A_wide
    return output
""")

    assert check(program, "tensor_add")[0].line == 3
