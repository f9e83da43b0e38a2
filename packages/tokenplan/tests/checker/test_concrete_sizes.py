"""The checker on rewritten functions, before they are written."""

import pytest
from packages.tokenplan.tests.tile_ir import kernels
from packages.tokenplan.tests.tile_ir.bytecode_cases import POINTER, function

from tokenplan.checker import checked_at_sizes
from tokenplan.tile_ir import bytecode, bytecode_report, explain_bytecode
from tokenplan.tile_ir.bytecode.building import I32
from tokenplan.tile_ir.bytecode.types import DYNAMIC
from tokenplan.tile_ir.orders import Orders, orders_of_kernel


def without_orders(*arguments):
    found = orders_of_kernel(*arguments)
    return Orders(found.kernel, found.graph, found.needed, ())


def test_a_function_whose_new_tokens_lose_an_order_is_not_changed(monkeypatch):
    data = kernels.bytes_of(kernels.recurrence())
    monkeypatch.setattr(bytecode_report, "orders_of_kernel", without_orders)
    text, new = explain_bytecode(data, check=checked_at_sizes)

    assert bytecode.read(new) == bytecode.read(data)
    assert "not rewritten: at concrete sizes the checker finds that store_view_tko" in text


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
    text, _ = explain_bytecode(function(build, POINTER, I32), check=checked_at_sizes)
    assert "not rewritten" in text and "share byte" in text


def raised(body, p, is_index):
    """A power that decides nothing, and one that is an index; the checker calculates neither."""
    cube = body.one("pow", I32, source=body.integer(2), exponent=body.integer(3))
    index = [cube if is_index else body.integer(0), body.integer(0)]
    body.load(body.view(p, (64, 64), (64, 1), (4, 64)), index)


@pytest.mark.parametrize("is_index", [False, True])
def test_what_the_checker_cannot_calculate_matters_where_an_access_depends_on_it(is_index):
    data = function(lambda body, p: raised(body, p, is_index), POINTER)
    text, _ = explain_bytecode(data, check=checked_at_sizes)

    reason = "not checked at concrete sizes: the index of load_view_tko depends on what is not"
    assert (reason in text) == is_index != ("checked at 4 concrete sizes" in text)


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

    text, _ = explain_bytecode(function(build, POINTER), check=checked_at_sizes)
    assert "checked at 4 concrete sizes: every order has a token" in text
