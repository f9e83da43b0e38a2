"""From a function or a kernel to a winner that is proved; what is wrong with it is found."""

import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from packages.nkigym.tests.tuning_kernels import PRODUCT, SOFTMAX, TWO, product, softmax, two

from neuroncore.errors import UndefinedError
from neuroncore.program import Call, Loop, check, parse_program, print_program
from neuroncore.timeline import estimate
from nkigym import matmul_root, tune
from nkigym.baseline import baseline_kernel
from nkigym.search import BudgetError, ConstraintError, SearchError
from nkigym.store import Store, StoreCorruptError, StoreFullError
from nkigym.tiles import parse_tiles, print_tiles
from nkigym.tuning import VerificationError, replayed, verify_winner
from nkigym.tuning.execution import difference, run_program, run_source
from nkigym.tuning.input_ranges import integers
from nkigym.tuning.task import problem

CASES = {"product": (product, PRODUCT), "softmax": (softmax, SOFTMAX), "two": (two, TWO)}
EVERY_CASE = pytest.mark.parametrize("case", CASES)
STRATEGIES = ("random", "beam", "best-first", "evolutionary", "exhaustive", "descent")


@pytest.fixture(scope="module")
def tuned():
    return {name: tune(f, *specs, budget=80) for name, (f, specs) in CASES.items()}


@EVERY_CASE
def test_a_winner_is_faster_legal_and_what_the_schedule_makes(case, tuned):
    winner = tuned[case]

    check(winner.program)
    assert (
        estimate(winner.program, mode="as_written").total_ns
        == winner.report.best_ns
        < winner.report.root_ns
    )
    again = replayed(parse_program(print_program(winner.root)), winner.schedule)
    assert print_program(again) == print_program(winner.program)
    assert winner.ratio >= 1
    assert all(each.passed is not False for each in winner.checks)


@EVERY_CASE
def test_a_winner_is_executed_at_fewer_tiles_or_says_why_not(case, tuned):
    names = [check.name for check in tuned[case].checks]

    assert names[:4] == ["replay", "verifier", "certificates", "function"]
    assert names[4].startswith("value numbers")
    assert names[5].startswith("executed")
    assert names[6:] == ["executed, real size"]


def test_smaller_kernels_have_few_tiles_and_shares_of_the_axes():
    asked = problem(product, ["bf16[512, 128]", "bf16[512, 2048]"], None, None)

    sizes = [tuple(b.shape for b in root.parameters) for _, root in asked.smaller()]

    assert sizes == sorted(sizes, key=lambda shapes: sum(a * b for a, b in shapes))
    assert {(left, right) for (left, _), (_, right) in sizes} == {
        (rows, columns)
        for rows in (256, 384, 512)
        for columns in (256, 384, 512, 1024, 2048)
        if (rows, columns) != (512, 2048)
    }


def test_the_source_gives_what_numpy_gives(tuned):
    winner = tuned["product"]
    left, right = integers(winner.root, seed=3)

    output, *_ = run_source(winner.source, winner.program, [left, right])

    wanted = left.astype(np.int64).T @ right.astype(np.int64)
    assert (output.astype(np.float64) == wanted).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_kernel_program_is_tuned_as_a_function_is(strategy):
    kernel = baseline_kernel(product, *PRODUCT)

    winner = tune(kernel, budget=25, strategy=strategy)
    again = tune(kernel, budget=25, strategy=strategy)

    assert winner.schedule == again.schedule
    assert winner.report.candidates == 25
    assert winner.report.best_ns < winner.report.root_ns


def test_searches_from_both_starts_share_a_budget_and_the_faster_end_wins():
    both = tune(softmax, *SOFTMAX, budget=60, start="both")
    alone = {name: tune(softmax, *SOFTMAX, budget=30, start=name)
             for name in ("generated", "baseline")}  # fmt: skip

    fastest, slowest = sorted(alone.values(), key=lambda tuned: tuned.report.best_ns)
    assert both.report.best_ns == fastest.report.best_ns < slowest.report.best_ns
    assert (both.source, both.start) == (fastest.source, fastest.start)
    assert [(name, r.best_ns) for name, r in both.beside] == [
        (slowest.start, slowest.report.best_ns)
    ]
    assert both.speedup == alone["generated"].report.root_ns / both.report.best_ns
    assert f"{slowest.start:10}" in str(both)


def test_a_kernel_is_its_only_start_and_has_the_whole_budget():
    winner = tune(baseline_kernel(product, *PRODUCT), budget=25, start="both")

    assert winner.report.candidates == 25
    assert winner.beside == ()


def test_engines_that_are_left_out_are_not_used():
    kernel = baseline_kernel(product, *PRODUCT)  # copies from PSUM by VectorE or ScalarE

    winner = tune(kernel, budget=200, strategy="best-first", engines=("tensor", "vector"))

    assert "scalar" not in winner.rooflines
    assert any("scalar" in reason for reason in winner.report.funnel.get("legality", ()))


def test_depth_counts_the_steps_that_were_offered():
    winner = tune(two, *TWO, budget=100, min_depth=2, max_depth=2)

    assert len(winner.report.depths) == 3
    assert winner.report.qualifying == winner.report.depths[2]


# -- stores ----------------------------------------------------------------------------------------


def test_a_search_is_taken_up_where_another_has_ended(tmp_path):
    first = tune(two, *TWO, budget=30, store=tmp_path / "found")
    longer = tune(two, *TWO, budget=60, store=tmp_path / "found")
    unused_name = tune(two, *TWO, budget=60)

    assert longer.report.cached >= first.report.estimated
    assert longer.schedule == unused_name.schedule
    with Store(tmp_path / "found", create=False) as store:
        (held,) = store.problems()
        assert [run["candidates"] for run in store.runs(held.key)] == [30, 60]
        assert store.best(held.key)[0].latency_ns == longer.report.best_ns


def test_a_faster_schedule_in_the_store_is_told(tmp_path):
    longer = tune(two, *TWO, budget=60, store=tmp_path / "found")
    short = tune(two, *TWO, budget=1, store=tmp_path / "found")

    assert short.stored_ns == longer.report.best_ns


def test_a_full_disk_ends_the_store_and_not_the_search(tmp_path, monkeypatch):
    def full(store, problem, results=()):
        raise StoreFullError("no room for more")

    monkeypatch.setattr(Store, "add", full)

    winner = tune(two, *TWO, budget=30, store=tmp_path / "found")

    assert isinstance(winner.trouble, StoreFullError)
    assert str(winner.trouble) == "no room for more"
    assert winner.report.best_ns < winner.report.root_ns


def test_a_latency_that_the_timeline_does_not_have_is_rejected(tmp_path):
    tune(two, *TWO, budget=30, store=tmp_path / "found")
    with sqlite3.connect(tmp_path / "found") as opened:
        opened.execute("UPDATE results SET latency_ns = 1.0 WHERE schedule != '[]'")

    with pytest.raises(StoreCorruptError, match=r"says that a kernel takes 0\.00 µs"):
        tune(two, *TWO, budget=30, store=tmp_path / "found")


def test_a_schedule_that_cannot_be_read_does_not_cost_the_winner(tmp_path):
    plain = tune(two, *TWO, budget=30, store=tmp_path / "found")
    with sqlite3.connect(tmp_path / "found") as opened:
        opened.execute("UPDATE results SET schedule = 'torn'")

    winner = tune(two, *TWO, budget=30, store=tmp_path / "found")

    assert isinstance(winner.trouble, StoreCorruptError)
    assert winner.source == plain.source


def test_what_was_found_is_kept_where_nothing_qualifies(tmp_path):
    with pytest.raises(SearchError, match=r"none of .* programs qualifies"):
        tune(two, *TWO, budget=10, min_depth=50, store=tmp_path / "found")

    with Store(tmp_path / "found", create=False) as store:
        (held,) = store.problems()
        assert len(store.latencies(held.key)) > 1


# -- proofs ----------------------------------------------------------------------------------------


def without_last_store(program):
    """The last store of the last loop, gone."""

    def body(statements):
        *others, last = statements
        if isinstance(last, Loop) and any(isinstance(s, (Call, Loop)) for s in last.body[:-1]):
            return (*others, replace(last, body=body(last.body)))
        return tuple(others)

    return replace(program, body=body(program.body))


def test_a_winner_without_its_last_store_is_rejected(tuned):
    winner = tuned["two"]
    wrong = without_last_store(winner.program)

    with pytest.raises(
        VerificationError,
        match=r"value numbers, real size: FAILED(.|\n)*executed, real size: FAILED",
    ):
        verify_winner(winner.root, wrong, winner.schedule, lambda: iter(()))


GREATEST = """
program("trn2", "0.6")
def greatest(x: float32[512, 8192]):
    out = buffer(float32[512, 1], shared_hbm)
    for i in range(4):
        most = buffer(float32[128, 1], sbuf)
        memset(dst=most[:, :], value=-1000.0)
        for j in range(32):
            tile = buffer(float32[128, 256], sbuf)
            dma_copy(dst=tile[:, :], src=x[128*i : 128*i + 128, 256*j : 256*j + 256])
            row = buffer(float32[128, 1], sbuf)
            tensor_reduce(dst=row[:, :], data=tile[:, :], op=maximum)
            tensor_tensor(dst=most[:, :], data1=most[:, :], data2=row[:, :], op=maximum)
        dma_copy(dst=out[128*i : 128*i + 128, :], src=most[:, :])
    return out
"""


@pytest.mark.parametrize("turns", ["range(31)", "range(1, 32)", "range(1)"])
def test_a_missing_turn_of_a_maximum_is_found_at_the_real_size(turns):
    """Integers do not show it: the greatest of many rows is that of each part of them."""
    root = parse_program(GREATEST.strip())
    wrong = parse_program(GREATEST.strip().replace("range(32)", turns))

    with pytest.raises(VerificationError, match="value numbers, real size: FAILED"):
        verify_winner(root, wrong, (), lambda: iter(()))


def test_a_winner_that_is_no_legal_program_is_rejected_and_not_executed(tuned):
    winner = tuned["two"]
    wrong = replace(winner.root, results=(*winner.root.results, "never_allocated"))

    with pytest.raises(VerificationError, match="verifier: FAILED") as raised:
        verify_winner(winner.root, wrong, (), lambda: iter(()))

    assert "executed" not in str(raised.value)


def test_a_schedule_that_leads_elsewhere_is_rejected(tuned):
    winner = tuned["two"]

    with pytest.raises(VerificationError, match="replay: FAILED"):
        verify_winner(winner.root, winner.program, winner.schedule[:-1], lambda: iter(()))


def test_every_output_is_compared(tuned):
    """Also the second, where the first is right."""
    root = tuned["two"].root
    inputs = integers(root, seed=1)
    wanted = run_program(root, inputs)
    assert difference(wanted, wanted) is None

    changed = wanted[1].copy()
    changed[500, 200] += 1
    said = difference([wanted[0], changed, *wanted[2:]], wanted)
    assert said is not None
    assert "output 1 differs in 1 of 131,072 elements, first at [500, 200]" in said
    assert difference(wanted[:3], wanted) == "3 outputs, not 4"


OUTSIDE = {
    "root": (lambda x: np.sqrt(x), ("f32[256,128]",)),
    "logarithm": (lambda x: np.log(x), ("f32[256,128]",)),
    "quotient": (lambda x, y: x / y, ("f32[256,128]", "f32[256,128]")),
    "root of a negative number": (lambda x: np.sqrt(-(x * x) - 1), ("f32[256,128]",)),
    "shares": (lambda x: x / x.sum(axis=1, keepdims=True), ("f32[256,128]",)),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_functions_are_tuned_that_are_undefined_for_some_numbers(name):
    function, specs = OUTSIDE[name]

    winner = tune(function, *specs, budget=5)

    wanted, *_ = run_program(winner.root, integers(winner.root, seed=7))
    assert np.isnan(wanted).any()
    assert str(winner.checks[-1]).startswith("executed, real size: ok")


LIKE_NEW = """\
program("trn2", "0.6")
def f(x: {format}[256, 64]):
    output = buffer({format}[256, 64], shared_hbm)
    for k in range(2):
        a = buffer({format}[128, 64], sbuf)
        dma_copy(dst=a[:, :], src=x[128*k : 128*k + 128, :])
        memset(dst=a[:, :], value={value})
        dma_copy(dst=output[128*k : 128*k + 128, :], src=a[:, :])
    return output
"""


@pytest.mark.parametrize(
    ("format", "value"),
    [(name, "nan") for name in ("float32", "bfloat16", "float16", "float8_e5m2")]
    + [(name, 4) for name in ("int32", "int8", "uint16")],
)
def test_elements_that_nothing_has_written_are_told_from_results_that_look_like_them(format, value):
    """NaN in floats, 4 in integers."""
    right = parse_program(LIKE_NEW.format(format=format, value=value))
    wrong = parse_program(print_program(right).replace("range(2)", "range(1)"))

    assert verify_winner(right, right, [], lambda: iter(()))[-1].passed
    with pytest.raises(
        VerificationError, match=r"executed, real size: FAILED, .* in 8,192 of 16,384 "
    ):
        verify_winner(right, wrong, [], lambda: iter(()))


def test_one_nan_is_as_good_as_another():
    one, other = np.array([[0x7FC00000]], np.uint32), np.array([[0xFFC00001]], np.uint32)

    assert difference([one.view(np.float32)], [other.view(np.float32)]) is None
    assert difference([one], [other]) is not None


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", ["0", "0s", 0, "soon"])
def test_a_budget_of_nothing_is_rejected(budget):
    with pytest.raises(BudgetError):
        tune(two, *TWO, budget=budget)


STRAIGHT = """\
program("trn2", "0.6")
def f(x: float32[128, 64]):
    output = buffer(float32[128, 64], shared_hbm)
    dma_copy(dst=output[:, :], src=x[:, :])
    return output
"""


def test_a_kernel_without_steps_is_its_own_result(tmp_path):
    tuned = tune(parse_program(STRAIGHT), budget=5, store=tmp_path / "found.db")

    assert (tuned.schedule, tuned.speedup) == ((), 1.0)
    assert "no step can be taken from the start: it is the result" in str(tuned)
    assert {check.passed for check in tuned.checks} <= {True, None} and tuned.checks[-1].passed


VIEWS = {
    "copied": lambda x: x,
    "reversed": lambda x: x[::-1],
    "reversed rows": lambda x: x[:, ::-1],
    "transposed": lambda x: x.T,
    "reshaped and transposed": lambda x: x.reshape(4, -1).T,
    "strided": lambda x: x[3:77, ::2],
    "flat": lambda x: x.reshape(-1),
    "a row": lambda x: x[5],
    "repeated": lambda x: np.broadcast_to(x[:1], (64, x.shape[1])),
    "two": lambda x: (x.T, x[::-1]),
}


@pytest.mark.parametrize("function", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("spec", ["f32[132,70]", "bf16[256,128]"])
def test_a_view_enters_the_search(function, spec):
    tuned = tune(function, spec, budget=20)

    assert tuned.start == "generated"
    assert tuned.report.best_ns <= tuned.report.root_ns
    assert {check.passed for check in tuned.checks} <= {True, None} and tuned.checks[-1].passed


ROWS = """\
program("trn2", "0.6")
def f(x: bfloat16[512, 64]):
    output = buffer(bfloat16[512, 64], shared_hbm)
    for j in range(2):
        for k in range({trips}):
            a = buffer(bfloat16[128, {columns}], sbuf)
            dma_copy(dst=a[:, :], src=x[256*j + 128*k : 256*j + 128*k + 128, :{columns}])
            dma_copy(dst=output[256*j + 128*k : 256*j + 128*k + 128, :{columns}], src=a[:, :])
    return output
"""


@pytest.mark.parametrize(
    ("trips", "columns", "missing"),
    [(1, 64, "16,384"), (2, 63, "512"), (1, 32, "24,576")],
)
def test_a_kernel_that_leaves_a_result_unwritten_is_rejected_before_a_search(
    trips, columns, missing
):
    program = parse_program(ROWS.format(trips=trips, columns=columns))

    with pytest.raises(UndefinedError) as rejected:
        tune(program, budget=5)

    said = str(rejected.value)
    assert f"f returns output, of which {missing} elements are never written" in said
    assert "expected: all 32,768 elements written" in said


def test_a_kernel_that_writes_all_of_a_result_in_parts_is_tuned():
    winner = tune(parse_program(ROWS.format(trips=2, columns=64)), budget=5)

    assert str(winner.checks[-1]).startswith("executed, real size: ok")


def test_a_tile_program_that_leaves_a_result_unwritten_is_rejected():
    *others, last_store, returned = print_tiles(matmul_root(1, 1, 2)).splitlines()
    assert "output[" in last_store

    with pytest.raises(UndefinedError, match=r"of which 16,384 elements are never written"):
        tune(parse_tiles("\n".join([*others, returned, ""])), budget=5)


def test_engines_that_a_kernel_cannot_do_without_are_rejected():
    with pytest.raises(ConstraintError, match=r"contradict(.|\n)*tensor for nc_matmul"):
        tune(product, *PRODUCT, engines=("vector",))
    with pytest.raises(ConstraintError, match="'pool' is not an engine"):
        tune(product, *PRODUCT, engines=("pool",))
    with pytest.raises(ConstraintError, match="no engine remains"):
        tune(product, *PRODUCT, engines=())


def test_depths_that_contradict_are_rejected():
    with pytest.raises(ConstraintError, match="min_depth 3, max_depth 2"):
        tune(two, *TWO, min_depth=3, max_depth=2)


def test_a_version_that_a_kernel_breaks_is_rejected():
    program = baseline_kernel(two, *TWO)

    with pytest.raises(ConstraintError, match=r"is not a kernel for trn2 and NKI 9\.9"):
        tune(program, nki="9.9", budget=5)
    with pytest.raises(ConstraintError, match="says its shapes itself"):
        tune(program, "f32[2]", budget=5)


def test_an_unknown_strategy_is_rejected():
    with pytest.raises(SearchError, match="'luck' is not a strategy"):
        tune(two, *TWO, strategy="luck")
