"""Barriers of compiled kernels: none without a conflict, one for each that there is."""

import pytest
from packages.tokenplan.tests.tile_ir import kernels

from tokenplan.tile_ir import Order, orders_of, total_orders

THOROUGH = [pytest.param(target, marks=pytest.mark.thorough) for target in ("sm_80", "sm_120")]
TARGETS = ("sm_90", "sm_100", *THOROUGH)
each_target = pytest.mark.parametrize("target", TARGETS)


@each_target
@pytest.mark.parametrize("make", [kernels.even_odd, kernels.two_stores, kernels.disjoint_store],
                         ids=lambda make: make.__name__)  # fmt: skip
def test_disjoint_accesses_need_no_barrier_and_the_total_order_has_some(tileiras, make, target):
    kernel = make()
    found = orders_of(kernel.described())

    assert found.kept == ()
    assert kernels.statistics(kernel, target).barriers == 0
    assert kernels.statistics(kernel, target, total_orders(found.kernel)).barriers >= 2


@each_target
def test_a_recurrence_keeps_its_order_and_no_other(tileiras, target):
    kernel = kernels.recurrence()

    assert orders_of(kernel.described()).kept == (Order("store", "load", "k", 1),)
    assert kernels.statistics(kernel, target).barriers > 0
    assert kernels.statistics(kernel, target, ()).barriers == 0


@each_target
@pytest.mark.parametrize("family", ["RAW", "WAR", "WAW"])
def test_a_litmus_kernel_loses_its_barrier_with_its_order(tileiras, family, target):
    kernel = kernels.litmus(family)
    (kept,) = orders_of(kernel.described()).kept
    with_order = kernels.statistics(kernel, target)
    without = kernels.statistics(kernel, target, ())

    assert kept.loop is None
    assert with_order.barriers > without.barriers == 0
    if family == "WAW":  # one of two stores is dropped
        assert without.instructions["STG"] < with_order.instructions["STG"]


FENCES = {"acquire": {"CCTL": True, "ERRBAR": False}, "release": {"CCTL": False, "ERRBAR": True},
          "acq_rel": {"CCTL": True, "ERRBAR": True}}  # fmt: skip
"""Whether caches are invalidated, and whether earlier writes are complete."""


@each_target
@pytest.mark.parametrize("order", FENCES)
def test_an_atomic_update_has_the_fences_of_its_order(tileiras, order, target):
    found = kernels.statistics(kernels.litmus(order), target)

    assert found.instructions["ATOMG"] + found.instructions["ATOM"] == 1, found.names
    assert {name: found.instructions[name] > 0 for name in FENCES[order]} == FENCES[order]
