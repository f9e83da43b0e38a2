"""The checker on rewritten functions, before they are written."""

import pytest
from packages.tokenplan.tests.tile_ir import kernels
from packages.tokenplan.tests.tile_ir.bytecode_cases import NO_FLAGS, POINTER, WEAK, function

from tokenplan.checker import checked_at_sizes, concrete_sizes
from tokenplan.cli import main
from tokenplan.tile_ir import bytecode, bytecode_report, explain_bytecode
from tokenplan.tile_ir.bytecode.building import I32
from tokenplan.tile_ir.bytecode.types import DYNAMIC, TOKEN, pointer, tile
from tokenplan.tile_ir.orders import Orders, orders_of_kernel

WIDE = ((64, 64), (64, 1), (4, 64))


def without_orders(*arguments):
    found = orders_of_kernel(*arguments)
    return Orders(found.kernel, found.graph, found.needed, ())


def test_a_function_whose_new_tokens_lose_an_order_is_not_changed(monkeypatch, tmp_path, capsys):
    """Nor is one of its tokens called needless."""
    data, new = kernels.bytes_of(kernels.recurrence()), tmp_path / "new.tileirbc"
    (tmp_path / "k.tileirbc").write_bytes(data)
    monkeypatch.setattr(bytecode_report, "orders_of_kernel", without_orders)

    assert explain_bytecode(data)[1] == data
    assert main(["explain", str(tmp_path / "k.tileirbc")]) == 1
    assert main(["explain", str(tmp_path / "k.tileirbc"), "--rewrite", str(new)]) == 1
    shown = capsys.readouterr()
    assert "not rewritten: at concrete sizes the checker finds that store (line" in shown.out
    assert "not needed" not in shown.out and "to keep" not in shown.out
    assert "is not written: the checker finds an order that recurrence would lose" in shown.err
    assert not new.exists()


def test_accesses_without_a_location_are_named_as_in_the_report(monkeypatch):
    def build(body, p):
        zero, view = [body.integer(0)] * 2, body.view(p, (64, 64), (64, 1), (4, 64))
        value, token = body.load(view, zero)
        body.store(view, zero, value, body.store(view, zero, value, token))

    monkeypatch.setattr(bytecode_report, "orders_of_kernel", without_orders)
    text, _ = explain_bytecode(function(build, POINTER))
    assert "finds that load and store share byte 0 of parameter 0" in text


def test_parameters_that_may_share_bytes_are_checked_so():
    data = kernels.bytes_of(kernels.disjoint_store())
    (found,) = bytecode.read(data).functions

    assert not checked_at_sizes(found).lost
    assert "may share bytes" in checked_at_sizes(found, [("p0", "p1")]).lost


@pytest.mark.parametrize("has_token", [True, False])
def test_loops_run_with_and_without_iterations(has_token):
    """The tokens of the loop order nothing where it has no iteration."""

    def build(body, p, rows, n):
        zero = body.integer(0)
        view = body.view(p, (DYNAMIC, 64), (64, 1), (4, 64), [rows])
        value, first = body.load(view, [zero, zero])
        start = first if has_token else body.one("make_token", first.type)

        def repeated(k, token):
            both = body.join([token, first])
            return [body.store(view, [k, zero], value, both)]

        (token,) = body.loop(n, repeated, [start])
        body.store(view, [zero, zero], value, token)

    (found,) = bytecode.read(function(build, POINTER, I32, I32)).functions
    assert bool(checked_at_sizes(found).lost) != has_token


def test_a_dynamic_extent_contains_a_tile(monkeypatch):
    """Also where tiles so wide share bytes, as these of 64 columns in rows of 2."""

    def build(body, p, n):
        zero, one = body.integer(0), body.integer(1)
        body.copied(body.view(p, (64, DYNAMIC), (2, 1), (4, 64), [n]), [zero, zero], [one, zero])

    monkeypatch.setattr(bytecode_report, "orders_of_kernel", without_orders)
    text, _ = explain_bytecode(function(build, POINTER, I32))
    assert "not rewritten" in text and "share byte" in text


def raised(body, p, is_index):
    """A power that decides nothing, and one that is an index; the checker calculates neither."""
    cube = body.one("pow", I32, source=body.integer(2), exponent=body.integer(3))
    index = [cube if is_index else body.integer(0), body.integer(0)]
    body.load(body.view(p, (64, 64), (64, 1), (4, 64)), index)


@pytest.mark.parametrize("is_index", [False, True])
def test_what_the_checker_does_not_calculate_does_not_prevent_the_check(is_index):
    data = function(lambda body, p: raised(body, p, is_index), POINTER)
    assert "checked at 6 concrete sizes" in explain_bytecode(data)[0]


def test_a_persistent_loop_is_executed_for_a_grid_that_contains_the_block():
    def build(body, p):
        block, _, _ = body.add("get_tile_block_id", (I32,) * 3)
        blocks, _, _ = body.add("get_num_tile_blocks", (I32,) * 3)
        zero, view = body.integer(0), body.view(p, (64, 64), (64, 1), (4, 64))
        with body.block((I32,)) as region:
            body.copied(view, [region.arguments[0], zero], [region.arguments[0], zero])
            body.add("continue", (), values=[])
        body.add("for", (), {}, (region.block,), lower=block, upper=body.integer(16), step=blocks,
                 inits=[])  # fmt: skip

    text, _ = explain_bytecode(function(build, POINTER))
    assert "checked at 6 concrete sizes: every order has a token" in text


def test_what_the_checker_cannot_execute_is_rewritten_if_requested(tmp_path, capsys):
    """A loop of more iterations than it executes."""

    def build(body, p):
        zero, view = body.integer(0), body.view(p, (64, 64), (64, 1), (4, 64))
        body.loop(20_000, lambda k: (body.load(view, [zero, zero]), [])[1], [])

    file, new = tmp_path / "k.tileirbc", tmp_path / "new.tileirbc"
    file.write_bytes(function(build, POINTER))
    command = ["explain", str(file), "--rewrite", str(new)]
    assert main(command) == 1 and not new.exists()
    shown = capsys.readouterr()
    assert "not checked at concrete sizes: more than 20000 operations are" in shown.out
    assert "the checker cannot execute kernel; --unchecked to rewrite it" in shown.err
    assert main([*command, "--unchecked"]) == 0 and bytecode.read(new.read_bytes())
    assert explain_bytecode(file.read_bytes())[1] == file.read_bytes()


# -- sizes -----------------------------------------------------------------------------------------


def behind(first, low, high, is_stored):
    """Row 0 is accessed from iteration `first` on, and the number of iterations has limits."""

    def build(body, p, n):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        limits = {"predicate": bytecode.Bounded(low, high)}
        n = body.one("assume", I32, limits, value=n)
        trips = body.one("subi", I32, NO_FLAGS, lhs=n, rhs=body.integer(first))
        value = body.constant(tile("f32", 4, 64), 0.0)
        access = body.store if is_stored else body.load
        given = [value] * is_stored
        body.loop(trips, lambda k: (access(view, zero, *given), [])[1], [])

    (found,) = bytecode.read(function(build, POINTER, I32)).functions
    return checked_at_sizes(found)


@pytest.mark.parametrize(("low", "high"), [(0, None), (0, 110), (102, 102)])
def test_sizes_are_those_that_the_function_assumes_and_that_execute_each_access(low, high):
    assert "store and store share byte 0" in behind(100, low, high, is_stored=True).lost
    assert behind(100, low, high, is_stored=False).confirms


def test_an_access_that_no_size_executes_is_not_checked():
    checked = behind(100, 0, 100, is_stored=False)
    assert checked.absent == (("load",),) and "executes load" in checked.text


@pytest.mark.parametrize(
    ("order", "may_alias", "is_same", "confirms"),
    [
        ("weak", (), True, False),
        ("weak", (), False, True),
        ("weak", [("p0", "p1")], False, False),
        ("acquire", (), False, False),
    ],
)
def test_two_accesses_that_are_never_executed_together_are_not_checked(
    order, may_alias, is_same, confirms
):
    """Of one parameter, of two that may share bytes, or ordered by the first one itself."""

    def build(body, p, q, n):
        views, zero = [body.view(p, *WIDE), body.view(p if is_same else q, *WIDE)], body.integer(0)
        value = body.constant(tile("f32", 4, 64), 0.0)
        few = body.one("subi", I32, NO_FLAGS, lhs=body.integer(3), rhs=n)
        many = body.one("subi", I32, NO_FLAGS, lhs=n, rhs=body.integer(4))
        start = body.one("make_token", TOKEN)
        body.loop(few, lambda k, t: [body.load(views[0], [k, zero], t, order)[1]], [start])
        body.loop(many, lambda k: (body.store(views[1], [k, zero], value), [])[1], [])

    (found,) = bytecode.read(function(build, POINTER, POINTER, I32)).functions
    checked = checked_at_sizes(found, may_alias)
    assert checked.confirms == confirms
    assert confirms or "executes load and store together" in checked.text


def few_iterations(body, n):
    """Of which there are none or one at small sizes."""
    rounded = {"signedness": "signed", "rounding": "zero"}
    yield body.one("subi", I32, NO_FLAGS, lhs=n, rhs=body.integer(4))
    yield body.one("divi", I32, rounded, lhs=n, rhs=body.integer(128))


@pytest.mark.parametrize("which", [0, 1])
def test_the_order_of_an_access_and_itself_needs_two_iterations(which):
    def build(body, p, n):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)
        trips = list(few_iterations(body, n))[which]
        body.loop(trips, lambda k: (body.store(view, zero, value), [])[1], [])

    (found,) = bytecode.read(function(build, POINTER, I32)).functions
    assert "store and store share byte 0" in checked_at_sizes(found).lost


@pytest.mark.parametrize("most", [1, 2])
def test_a_loop_that_no_size_repeats_is_not_checked(most):
    def build(body, p, n):
        view, zero = body.view(p, *WIDE), body.integer(0)
        value = body.constant(tile("f32", 4, 64), 0.0)
        trips = body.one("mini", I32, {"signedness": "signed"}, lhs=n, rhs=body.integer(most))
        body.loop(trips, lambda k: (body.store(view, [k, zero], value), [])[1], [])

    (found,) = bytecode.read(function(build, POINTER, I32)).functions
    checked = checked_at_sizes(found)
    assert checked.confirms == (most == 2)
    assert most == 2 or "executes store in two iterations" in checked.text


def test_a_loop_of_one_iteration_at_all_sizes_is_checked():
    def build(body, p):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)
        body.loop(1, lambda k: (body.store(view, zero, value), [])[1], [])

    (found,) = bytecode.read(function(build, POINTER)).functions
    assert checked_at_sizes(found).confirms


@pytest.mark.parametrize("after", [True, False])
def test_branches_of_one_if_are_not_executed_together(after):
    """A store after them is, and has no token."""

    def build(body, p, n):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)
        is_first = body.one("trunci", tile("i1"), NO_FLAGS, source=n)
        blocks = []
        for _ in range(2):
            with body.block(()) as region:
                body.store(view, zero, value)
                body.add("yield", (), values=[])
            blocks.append(region.block)
        body.add("if", (), {}, tuple(blocks), condition=is_first)
        if after:
            body.store(view, zero, value)

    (found,) = bytecode.read(function(build, POINTER, I32)).functions
    checked = checked_at_sizes(found)
    assert bool(checked.lost) == after and checked.confirms != after


def compared(body, one, other, how="eq"):
    attributes = {"comparison": how, "signedness": "signed"}
    return body.one("cmpi", tile("i1"), attributes, lhs=one, rhs=other)


def branches(body, condition, *made, end="yield"):
    """An `if` whose branches are these functions."""
    blocks = []
    for build in made:
        with body.block(()) as region:
            build()
            body.add(end, (), values=[])
        blocks.append(region.block)
    return body.add("if", (), {}, tuple(blocks), condition=condition)


def unusual_conditions(body, n):
    """True at none of the sizes, or for few numbers."""
    block = body.add("get_tile_block_id", (I32,) * 3)[0]
    count = body.add("get_num_tile_blocks", (I32,) * 3)[0]
    last = body.one("subi", I32, NO_FLAGS, lhs=count, rhs=body.integer(1))
    yield compared(body, block, last)
    yield compared(body, block, body.integer(7))
    yield compared(body, n, body.integer(5000), "ge")
    yield compared(body, n, body.integer(9))


@pytest.mark.parametrize("has_token", [True, False])
@pytest.mark.parametrize("which", range(4))
def test_a_branch_is_executed_regardless_of_its_condition(which, has_token):
    def build(body, p, n):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)
        token = body.store(view, zero, value)
        condition = list(unusual_conditions(body, n))[which]
        waits = token if has_token else None
        branches(body, condition, lambda: body.store(view, zero, value, waits), lambda: None)

    (found,) = bytecode.read(function(build, POINTER, I32)).functions
    checked = checked_at_sizes(found)
    assert (checked.confirms, bool(checked.lost)) == (has_token, not has_token)


@pytest.mark.parametrize("number", [3, 7])
def test_branches_of_many_loaded_conditions_are_executed_together(number):
    def build(body, p, numbers):
        view, zero = body.view(p, *WIDE), body.integer(0)
        value, tokens = body.constant(tile("f32", 4, 64), 0.0), body.one("make_token", TOKEN)
        for _ in range(number):
            loaded = body.add("load_ptr_tko", (I32, TOKEN), WEAK, source=numbers)[0]
            ends = []
            for at in range(2):
                with body.block(()) as region:
                    new = body.store(view, [body.integer(at), zero], value, tokens)
                    body.add("yield", (), values=[new])
                ends.append(region.block)
            condition = compared(body, loaded, zero)
            (tokens,) = body.add("if", (TOKEN,), {}, tuple(ends), condition=condition)

    (found,) = bytecode.read(function(build, POINTER, tile(pointer("i32")))).functions
    assert checked_at_sizes(found).confirms


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("is_same", [True, False])
def test_branches_are_of_two_iterations_unless_all_have_the_same_condition(is_same, is_constant):
    """The tile of one iteration's first branch is that of the iteration before in the other."""

    def build(body, p, n, m):
        view, zero = body.view(p, *WIDE), body.integer(0)
        value = body.constant(tile("f32", 4, 64), 0.0)

        def iteration(k):
            number = n if is_same else body.one("addi", I32, NO_FLAGS, lhs=n, rhs=k)
            later = body.one("addi", I32, NO_FLAGS, lhs=k, rhs=body.integer(1))
            branches(body, compared(body, number, body.integer(1000), "ge"),
                     lambda: body.store(view, [k, zero], value),
                     lambda: body.store(view, [later, zero], value))  # fmt: skip
            return []

        body.loop(4 if is_constant else m, iteration, [])

    (found,) = bytecode.read(function(build, POINTER, I32, I32)).functions
    checked = checked_at_sizes(found)
    assert (checked.confirms, bool(checked.lost)) == (is_same, not is_same)


def test_what_follows_an_if_that_always_returns_is_not_executed():
    def build(body, p, n):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)
        condition = compared(body, n, body.integer(1))
        branches(body, condition, lambda: None, lambda: None, end="return")
        body.store(view, zero, value)

    (found,) = bytecode.read(function(build, POINTER, I32)).functions
    assert not checked_at_sizes(found).missing


@pytest.mark.parametrize("has_token", [True, False])
def test_a_loop_whose_bound_is_loaded_is_executed_with_other_iterations_each_time(has_token):
    """The tokens of the inner loop order nothing where it has no iteration."""

    def build(body, p, q):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)

        def outer(i, token):
            first = body.store(view, zero, value, token)
            start = first if has_token else body.one("make_token", TOKEN)
            (after,) = body.loop(
                loaded(body, q), lambda k, t: [body.join([body.load(view, zero, first)[1], t])],
                [start],
            )  # fmt: skip
            return [body.store(view, zero, value, after)]

        body.loop(4, outer, [body.one("make_token", TOKEN)])

    (found,) = bytecode.read(function(build, POINTER, POINTER)).functions
    checked = checked_at_sizes(found)
    assert checked.confirms == has_token and bool(checked.lost) != has_token


def test_iterations_whose_number_is_loaded_are_known_one_by_one():
    """The first tile of iteration k is row k, of which iterations before access nothing."""

    def build(body, p, q):
        view, zero = body.view(p, *WIDE), body.integer(0)
        body.loop(loaded(body, q), lambda k: (body.copied(view, [k, zero], [k, zero]), [])[1], [])

    (found,) = bytecode.read(function(build, POINTER, POINTER)).functions
    assert checked_at_sizes(found).confirms


def copied(shape, strides, extents, sink, limits=(None, None)):
    """Whether a load of the first tile and a store of `sink` are confirmed; the last stride that is
    a parameter has the limits."""

    def build(body, p, m, n, s):
        s = body.one("assume", I32, {"predicate": bytecode.Bounded(*limits)}, value=s)
        sizes, steps = [m, n][: shape.count(DYNAMIC)], [s] * strides.count(DYNAMIC)
        view = body.view(p, shape, strides, extents, sizes, steps)
        body.copied(view, [body.integer(0)] * len(sink), [body.integer(at) for at in sink])

    return explain_bytecode(function(build, POINTER, *[I32] * 3))[0].splitlines()[-1]


CHECKED = "concrete sizes: every order has a token"


def test_extents_contain_tiles_that_are_far_from_the_start():
    dynamic = (DYNAMIC, DYNAMIC)
    assert CHECKED in copied(dynamic, (DYNAMIC, 1), (128, 128), (40, 0))


def test_an_access_that_is_outside_at_all_sizes_needs_no_execution():
    assert CHECKED in copied((DYNAMIC, 1), (DYNAMIC, 1), (1, 64), (0, 1))


def test_a_stride_may_be_between_two_constants():
    assert CHECKED in copied((8, 4, 8), (64, DYNAMIC, 1), (1, 1, 8), (0, 1, 0), (0, 20))


def test_a_flag_is_true_in_some_executions():
    def build(body, p, flag):
        view, zero = body.view(p, *WIDE), body.integer(0)
        trips = body.one("select", I32, condition=flag, if_true=body.integer(4), if_false=zero)
        body.loop(trips, lambda k: (body.load(view, [k, zero]), [])[1], [])

    text, _ = explain_bytecode(function(build, POINTER, tile("i1")))
    assert CHECKED in text


# -- values that are not calculated ----------------------------------------------------------------


def by_loaded_pointers(body, p, q, numbers):
    """An element at a place that is loaded, through a pointer of another type."""
    number = loaded(body, numbers)
    at = body.one("offset", POINTER, pointers=p, offsets=number)
    again = body.one("ptr_to_ptr", POINTER, source=at)
    body.add("store_ptr_tko", (TOKEN,), WEAK, pointers=again, value=body.constant(tile("f32"), 1))


def by_loaded_index(body, p, q, numbers):
    view = body.view(p, *WIDE)
    body.store(
        view, [loaded(body, numbers), body.integer(0)], body.constant(tile("f32", 4, 64), 1.0)
    )


def by_loaded_choice(body, p, q, numbers):
    is_first = body.one("trunci", tile("i1"), NO_FLAGS, source=loaded(body, numbers))
    either = body.one("select", POINTER, condition=is_first, if_true=p, if_false=q)
    body.add("store_ptr_tko", (TOKEN,), WEAK, pointers=either, value=body.constant(tile("f32"), 1))


def loaded(body, q):
    source = body.one("ptr_to_ptr", tile(pointer("i32")), source=q)
    return body.add("load_ptr_tko", (I32, TOKEN), WEAK, source=source)[0]


@pytest.mark.parametrize("access", [by_loaded_pointers, by_loaded_index, by_loaded_choice])
def test_an_access_at_a_place_that_is_loaded_may_be_anywhere_in_its_parameter(access):
    def build(body, p, q, numbers):
        access(body, p, q, numbers)
        body.load(body.view(p, *WIDE), [body.integer(0)] * 2)

    (found,) = bytecode.read(function(build, *[POINTER] * 3)).functions
    assert "share byte 0 of parameter 0" in checked_at_sizes(found).lost


def test_operations_on_values_alone_do_not_prevent_the_check():
    def build(body, p):
        number, tall = body.integer(2), tile("f32", 4, 64)
        body.add("get_num_tile_blocks", [I32] * 3)
        value, token = body.load(body.view(p, *WIDE), [number, body.integer(0)])
        for name in ("floor", "ceil", "sin", "cos"):
            value = body.one(name, tall, source=value)
        as_bits = body.one("bitcast", tile("i32", 4, 64), source=value)
        value = body.one("bitcast", tall, source=body.one("absi", as_bits.type, source=as_bits))
        value = body.one("pow", tall, source=value, exponent=value)
        both = body.one("cat", tile("f32", 8, 64), {"dim": 0}, lhs=value, rhs=value)
        part = body.add("extract", (tall,), source=both, indices=[number, number])[0]
        body.store(body.view(p, *WIDE), [number, body.integer(0)], part, token)

    assert "checked at 6 concrete sizes" in explain_bytecode(function(build, POINTER))[0]


@pytest.mark.parametrize("has_both", [True, False])
def test_a_token_of_branches_that_are_not_known_is_what_both_wait_for(has_both):
    def build(body, p, q):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value, token = body.load(view, zero)
        is_first = body.one("trunci", tile("i1"), NO_FLAGS, source=loaded(body, q))
        with body.block(()) as one:
            body.add("yield", (), values=[token])
        with body.block(()) as other:
            new = token if has_both else body.one("make_token", TOKEN)
            body.add("yield", (), values=[new])
        (found,) = body.add("if", (TOKEN,), {}, (one.block, other.block), condition=is_first)
        body.store(view, zero, value, found)

    (found,) = bytecode.read(function(build, POINTER, POINTER)).functions
    assert bool(checked_at_sizes(found).lost) != has_both


def test_integers_without_a_sign_are_extended_so():
    """255 of 8 bits is row 255, not the one before the first."""

    def build(body, p):
        byte = body.constant(tile("i8"), -1)
        far = body.one("exti", I32, {"signedness": "unsigned"}, source=byte)
        view, value = body.view(p, (1024, 64), *WIDE[1:]), body.constant(tile("f32", 4, 64), 0.0)
        for row in (far, body.integer(255)):
            body.store(view, [row, body.integer(0)], value)

    (found,) = bytecode.read(function(build, POINTER)).functions
    assert "share byte" in checked_at_sizes(found).lost


def test_a_loop_without_a_sign_has_iterations_beyond_those_with_one():
    """Of 200 iterations in 8 bits, each stores one element."""

    def build(body, p):
        kind, value = tile("i8"), body.constant(tile("f32", 1), 0.0)
        view = body.view(p, (1024,), (1,), (1,))
        low, high, step = (body.constant(kind, number) for number in (0, -56, 1))
        with body.block((kind,)) as region:
            body.store(view, [region.arguments[0]], value)
            body.add("continue", (), values=[])
        body.add("for", (), {"unsigned": True}, (region.block,), lower=low, upper=high, step=step,
                 inits=[])  # fmt: skip
        body.store(view, [body.integer(199)], value)

    (found,) = bytecode.read(function(build, POINTER)).functions
    assert "store and store.2 share byte 796" in checked_at_sizes(found).lost


@pytest.mark.parametrize(("trips", "executions"), [(2**20, 1), (None, 3)])
def test_a_loop_that_does_not_end_is_not_executed_again(trips, executions, monkeypatch):
    """With a constant bound, every execution is as long."""

    def build(body, p, count=None):
        view = body.view(p, *WIDE)

        def repeated(k, token):
            zero = [body.integer(0)] * 2
            value, loaded = body.load(view, zero, token)
            return [body.store(view, zero, value, loaded)]

        body.loop(trips or body.one("muli", I32, NO_FLAGS, lhs=count, rhs=count), repeated,
                  [body.one("make_token", TOKEN)])  # fmt: skip

    parameters = [POINTER] if trips else [POINTER, I32]
    (found,) = bytecode.read(function(build, *parameters)).functions
    begun = []

    class Counted(concrete_sizes.Execution):
        def run(self, function, scalars=()):
            begun.append(scalars)
            return super().run(function, [10**4 for _ in scalars])

    monkeypatch.setattr(concrete_sizes, "Execution", Counted)
    checked = checked_at_sizes(found)

    assert len(begun) == executions and not checked.executed
    assert "more than 20000 operations are executed" in checked.text
