"""Tile programs to begin with: what may be searched, and that the winner gives what they give."""

import numpy as np
import pytest

from neuroncore.errors import KernelError, LaunchError
from nkigym import rewrite_graph, tune
from nkigym.checker import check_root, check_same, check_tiles, run_tiles
from nkigym.search import ConstraintError, RejectedStepError
from nkigym.spaces import TileSpace
from nkigym.tile_rewrites import KNOWN
from nkigym.tiles import parse_tiles, print_tiles

HEAD = "def f({parameters}):\n    output = allocate(128, 256)\n"
TWO = "A: float32[128, 256], B: float32[128, 256]"


def program(body, parameters=TWO):
    lines = [f"    {line}\n" for line in body.strip().splitlines()]
    return parse_tiles(HEAD.format(parameters=parameters) + "".join(lines) + "    return output\n")


OVER = """
a = A[0:128, 0:256]
v = tensor_tensor(data1=a, data2=a, op='greater_equal')
b = B[0:128, 128:256]
s = activation(data=b, op='square')
w = tensor_tensor(data1=s, data2=b, op='greater_equal')
output[0:128, 0:128] = v[0:128, 0:128]
output[0:128, 128:256] = w
output[0:128, 128:256] = v[0:128, 128:256]
"""
"""A store over a store: which of the two comes last matters, and integers do not tell."""


def test_a_store_over_a_store_is_rejected_before_a_search():
    with pytest.raises(ConstraintError) as rejected:
        tune(program(OVER), budget=5)
    assert rejected.value.got == "statement 8: output[0, 128] is written again"
    with pytest.raises(LaunchError, match="output is written where statement 7 has written"):
        rewrite_graph(program(OVER))


def test_columns_that_are_no_atoms_are_rejected():
    odd = "t = A[0:128, 0:256]\nu = A[0:128, 0:33]\noutput[0:128, 0:256] = t"

    with pytest.raises(LaunchError, match="statement 2: A is cut at columns 0:33"):
        tune(program(odd), budget=5)


def test_operands_of_other_shapes_are_rejected():
    wrong = """
a = A[0:128, 0:128]
b = B[0:128, 0:256]
c = tensor_tensor(data1=a, data2=b, op='add')
output[0:128, 0:256] = c
"""
    with pytest.raises(ConstraintError, match="f is not a tile program"):
        tune(program(wrong), budget=5)


EXCHANGED = """
t = A[0:128, 0:256]
u = B[0:128, 0:128]
v = B[0:128, 0:128]
output[0:128, 0:128] = t[0:128, 128:256]
output[0:128, 128:256] = t[0:128, 0:128]
"""


def test_stores_of_exchanged_halves_are_not_one_store():
    space = rewrite_graph(program(EXCHANGED), tuple(KNOWN))

    assert {step.kind for step in space.steps(space.root)} == {"reuse", "load twice"}
    winner = tune(program(EXCHANGED), budget=5)
    assert all(check.passed for check in winner.checks)


BY_COLUMNS = """
t = A[0:64, 0:256]
output[0:64, 0:128] = t[0:64, 0:128]
output[64:128, 0:128] = t[0:64, 128:256]
u = B[0:128, 128:256]
output[0:128, 128:256] = u
"""


def test_stores_that_touch_on_different_axes_are_not_one_store():
    space = rewrite_graph(program(BY_COLUMNS))

    assert [step.kind for step in space.steps(space.root)] == []


@pytest.mark.parametrize("names", [["A"], ["A", "B", "C"]])
def test_programs_of_one_and_three_parameters_are_tuned(names):
    parameters = ", ".join(f"{name}: float32[128, 256]" for name in names)
    made = [f"{name.lower()}{n} = {name}[0:128, {128 * n}:{128 * n + 128}]"
            for n in (0, 1) for name in names]  # fmt: skip
    kept = [f"output[0:128, {128 * n}:{128 * n + 128}] = {names[-1].lower()}{n}" for n in (0, 1)]
    root = program("\n".join([*made, *kept]), parameters)

    winner = tune(root, budget=20)

    assert winner.schedule
    assert [(check.name, check.passed) for check in winner.checks][2] == ("value numbers", True)
    said = f"matmul takes 2 parameters, not {len(names)}"
    assert [found.what for found in check_tiles(root)] == [said]
    assert [found.what for found in run_tiles(root)] == [said]


def test_a_program_that_gives_something_else_is_not_the_same():
    root = program(EXCHANGED)
    straight = EXCHANGED.replace("t[0:128, 128:256]", "t[0:128, 0:128]", 1)

    assert check_same(root, root) == check_root(root) == []
    assert [found.what for found in check_same(program(straight), root)] == [
        "output[0, 0] has another value"
    ]
    half = program("t = A[0:128, 0:256]\noutput[0:128, 0:128] = t[0:128, 128:256]")
    assert [found.what for found in check_same(half, root)] == ["output[0, 128] is never written"]
    assert check_same(root, half) == []  # what the root leaves open may be anything


def test_a_step_whose_certificate_fails_is_a_rejection(monkeypatch):
    from nkigym.tile_rewrites.stores import Stores

    monkeypatch.setattr(Stores, "_fit", lambda self, first, second: True)
    space = TileSpace(rewrite_graph(program(EXCHANGED), tuple(KNOWN)))

    (step,) = (s for s in space.steps(space.root) if s.kind == "merge stores")
    with pytest.raises(RejectedStepError, match="merge stores: stores 0 and 1 are not one store"):
        space.apply(space.root, step)
    winner = tune(program(EXCHANGED), budget=20)
    assert "merge stores" not in str(winner.schedule)
    assert any(
        "not one store" in reason for gate in winner.report.funnel.values() for reason in gate
    )


@pytest.mark.parametrize("name", ["nl", "nki", "nisa", "range"])
def test_a_function_whose_name_its_source_needs_is_tuned_under_another(name):
    scope: dict = {"np": np}
    exec(f"def {name}(x, y):\n    return x * y + x\n", scope)

    winner = tune(scope[name], "f32[256, 128]", "f32[256, 128]", budget=5)

    assert f"def {name}_(x, y):" in winner.source
    assert all(check.passed is not False for check in winner.checks)


@pytest.mark.parametrize("twice", ["A: float32[128, 256], A: float32[128, 256]",
                                   "fi: float32[128, 256], ﬁ: float32[128, 256]"])  # fmt: skip
def test_two_parameters_of_one_name_are_rejected(twice):
    with pytest.raises(KernelError, match=r"two parameters are called (A|fi)"):
        program("t = A[0:128, 0:256]\noutput[0:128, 0:256] = t", twice)


NORM = """
t0 = A[0:128, 0:128]
t1 = activation(data=t0, op='square')
t2 = tensor_reduce(data=t1{part}, op='add')
t3 = activation(data=t2, op='rsqrt', scale=0.0078125, bias=9.5367431640625e-07)
t4 = A[0:128, 0:128]
t5 = tensor_scalar(data=t4, operand0=t3, op='multiply')
t6 = nc_transpose(data=t5)
t7 = B[0:128, 0:256]
t8 = nc_matmul(stationary=t6, moving=t7)
output[0:128, 0:256] = t8
"""
SQUARE = "A: float32[128, 128], B: float32[128, 256]"


def test_one_column_of_a_tile_is_not_all_of_it():
    whole, column = (program(NORM.format(part=p), SQUARE) for p in ("", "[0:128, 0:1]"))

    assert check_tiles(whole, "rmsnorm_matmul") == check_same(whole, whole) == []
    assert len(check_tiles(column, "rmsnorm_matmul")) == 128 * 256
    assert len(check_same(column, whole)) == len(check_same(whole, column)) == 128 * 256
    with pytest.raises(LaunchError, match="t1 is cut at columns 0:1"):
        rewrite_graph(column)


def test_more_pieces_than_can_be_numbered_are_a_finding():
    wide = "A: float32[128, 131072], B: float32[128, 256]"
    body = "t = A[0:128, 0:131072]\nu = A[1:2, 0:1]\noutput[0:128, 0:256] = t[0:128, 0:256]"
    root = program(body, wide)

    (found,) = check_root(root)
    assert found.what == (
        "tiles are cut into pieces of 1 x 1, of which intervals consist: 16,842,753 pieces and "
        "products of pieces, more than 16,777,216"
    )


def test_products_of_pieces_are_counted():
    parameters = "A: float32[128, 128], B: float32[128, 1201]"
    body = "a = A[0:128, 0:128]\nb = B[0:128, 0:1200]\nc = nc_matmul(stationary=a, moving=b)\n"
    root = program(body + "output[0:128, 0:256] = c[0:128, 0:256]", parameters)

    assert "20,049,920 pieces and products of pieces" in check_root(root)[0].what


def test_an_output_of_one_row_is_numbered():
    row = "t = A[0:1, 0:256]\noutput[0:1, 0:256] = t\nu = A[1:128, 0:256]\noutput[1:128, 0:256] = u"

    assert check_root(program(row)) == []
    assert check_same(program(row), program(row)) == []


ROWS = """
c = A[0:128, 0:256]
u = B[0:128, 0:128]
v = B[0:128, 0:128]
output[0:64, 0:256] = c[0:64, 0:256]
output[64:128, 0:256] = c[64:128, 0:256]
"""


def test_stores_of_row_pieces_stay_two():
    winner = tune(program(ROWS), budget=10)

    assert "merge stores" not in str(winner.schedule)
    assert all(check.passed for check in winner.checks)


@pytest.mark.parametrize(("columns", "is_taken"), [("128:200", True), ("0:72", False)])
def test_a_part_ends_with_its_tile_or_an_atom(columns, is_taken):
    body = f"""
v = A[0:128, 0:200]
w = activation(data=v[0:128, {columns}])
b = B[0:128, 0:256]
output[0:128, 0:256] = b
"""
    root = program(body, "A: float32[128, 200], B: float32[128, 256]")

    if is_taken:
        assert rewrite_graph(root).tile_program(rewrite_graph(root).root).returns == ("output",)
        return
    with pytest.raises(LaunchError, match=f"is cut at columns {columns}"):
        rewrite_graph(root)


def test_calls_whose_operands_have_other_sizes_are_not_one_call():
    narrow = """
a = A[0:64, 0:128]
b = B[0:128, 0:128]
c = tensor_tensor(data1=a, data2=b[0:64, 0:128], op='add')
d = B[0:128, 0:128]
e = A[0:128, 128:256]
f = tensor_tensor(data1=e, data2=d, op='add')
output[0:64, 0:128] = c
output[0:128, 128:256] = f
"""
    space = rewrite_graph(program(narrow), tuple(KNOWN))

    for node in space.children(space.root):
        assert check_same(space.tile_program(node), program(narrow)) == []


COLUMN = "A: float32[128, 1], B: float32[128, 256]"
SUMMED = """
t = {column}
u = tensor_reduce(data=t, op='add')
b = B[0:128, 0:256]
c = tensor_scalar(data=b, operand0=u, op='multiply')
output[0:128, 0:256] = c
"""


ONCE = "A[0:128, 0:1]"
TWICE, OFTEN, ACROSS = (f"repeat({ONCE}, copies={copies})" for copies in (2, 64, 128))


@pytest.mark.parametrize(
    ("one", "other"),
    [(ONCE, TWICE), (ONCE, OFTEN), (ONCE, ACROSS), (TWICE, OFTEN), (OFTEN, ACROSS)],
)
def test_copies_of_a_column_are_as_many_as_they_are(one, other):
    few, many = (program(SUMMED.format(column=column), COLUMN) for column in (one, other))

    assert check_same(few, few) == check_same(many, many) == []
    assert check_same(few, many) and check_same(many, few)


def test_copies_of_a_row_are_as_many_as_they_are():
    copied = """
t = repeat(A[0:128, 0:1], copies=128)
u = nc_transpose(data=t)
b = B[0:128, 0:256]
c = nc_matmul(stationary=u, moving=b)
output[0:128, 0:256] = c
"""
    once = copied.replace("repeat(A[0:128, 0:1], copies=128)", "A[0:128, 0:1]")
    once = once.replace("moving=b)", "moving=b[0:1, 0:256])")

    assert check_same(program(copied, COLUMN), program(copied, COLUMN)) == []
    assert check_same(program(once, COLUMN), program(copied, COLUMN))


def test_the_mean_of_copies_of_one_column_is_not_its_own():
    norm = NORM.replace("B[0:128, 0:256]", "B[0:1, 0:256]").replace("0.0078125", "1.0")
    norm = norm.format(part="").replace("A[0:128, 0:128]", "A[0:128, 0:1]")
    whole = program(norm, "A: float32[128, 1], B: float32[1, 256]")
    copied = norm.replace("A[0:128, 0:1]", "repeat(A[0:128, 0:1], copies=64)", 1)
    wrong = program(copied, "A: float32[128, 1], B: float32[1, 256]")

    assert check_tiles(whole, "rmsnorm_matmul") == []
    assert check_tiles(wrong, "rmsnorm_matmul")
    (found,) = run_tiles(wrong, "rmsnorm_matmul")
    assert found.what == "rows of 1 columns cannot represent an rmsnorm exactly; take 4, 8, …"


PAIR = """
a = A[0:128, 0:256]
b = B[0:128, 0:256]
c = tensor_tensor(data1={one}, data2={other}, op='{op}')
output[0:128, 0:256] = c
"""
COMMUTE = ("add", "multiply", "equal", "not_equal", "logical_and",
           "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")  # fmt: skip
ORDERED = ("subtract", "power", "greater", "greater_equal", "less", "less_equal", "divide", "mod",
           "maximum", "minimum")  # fmt: skip


@pytest.mark.parametrize("op", [*COMMUTE, *ORDERED])
def test_operands_are_exchanged_where_that_changes_nothing(op):
    one, other = (program(PAIR.format(one=a, other=b, op=op)) for a, b in ("ab", "ba"))

    assert (check_same(one, other) == []) == (op in COMMUTE)


@pytest.mark.parametrize("op", ["add", "logical_and", "maximum", "multiply", "subtract", "equal"])
def test_what_is_reduced_has_an_order_where_that_matters(op):
    copied = """
t = repeat(A[0:128, 0:256], copies=2)
u = tensor_reduce(data=t[0:128, {columns}], op='{op}')
b = B[0:128, 0:256]
c = tensor_scalar(data=b, operand0=u, op='multiply')
output[0:128, 0:256] = c
"""
    one, other = (program(copied.format(columns=at, op=op)) for at in ("0:256", "128:384"))

    assert (check_same(one, other) == []) == (op in ("add", "logical_and"))


def test_another_dtype_is_another_program():
    body, narrow = (
        "t = A[0:128, 0:256]\noutput[0:128, 0:256] = t",
        TWO.replace("float32", "bfloat16"),
    )

    (found,) = check_same(program(body, narrow), program(body))
    assert found.what == "it computes in bfloat16, not float32"


def test_a_negative_scale_is_read_as_it_is_printed():
    body = "a = A[0:128, 0:256]\nb = activation(data=a, op='exp', scale=-2.0, bias=-1)\n"
    root = program(body + "output[0:128, 0:256] = b")

    assert parse_tiles(print_tiles(root)) == root
    assert "scale=-2.0, bias=-1" in print_tiles(root)


def test_a_negative_zero_is_rejected():
    body = "a = A[0:128, 0:256]\nb = activation(data=a, op='reciprocal', bias={})\n"
    body += "output[0:128, 0:256] = b"
    with pytest.raises(KernelError, match="not a value of bias"):
        program(body.format("-0.0"))

    made = program(body.format("0.0"))
    load, call, *rest = made.statements[1:]
    other = call._replace(arguments=(*call.arguments[:-1], ("bias", -0.0)))
    wrong = made._replace(statements=(made.statements[0], load, other, *rest))
    assert [found.what for found in check_root(wrong)][:1] == ["activation takes 0.0, not -0.0"]
