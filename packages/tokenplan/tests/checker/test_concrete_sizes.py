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


def test_what_the_checker_cannot_execute_is_reported():
    def build(body, p):
        body.one(
            "pow", body.one("iota", I32).type, source=body.integer(2), exponent=body.integer(3)
        )
        body.load(body.view(p, (64, 64), (64, 1), (4, 64)), [body.integer(0)] * 2)

    text, _ = explain_bytecode(function(build, POINTER), check=checked_at_sizes)
    assert "not checked at concrete sizes: pow is not supported by the checker" in text
