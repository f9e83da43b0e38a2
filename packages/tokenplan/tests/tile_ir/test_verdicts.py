"""Verdicts on accesses: what the compiler reports of them, and code W4."""

import json
import random

import pytest
from packages.tokenplan.tests.tile_ir.access_cases import agreement, case
from packages.tokenplan.tests.tile_ir.examples import gemm
from packages.tokenplan.tests.tile_ir.random_kernels import random_kernel
from packages.tokenplan.tests.tile_ir.test_layouts import LAYOUT_KERNELS

from tokenplan.report import explained, plan_file
from tokenplan.tile_ir import TileKernel, bytecode, compiler, emit, orders_of
from tokenplan.tile_ir.verdicts import has_slow_load, verdicts

QUICK, ALL, SHARE = 30, 500, 0.98
COMPILED, ALL_COMPILED = 50, 2_000


def test_the_compiler_reports_what_is_predicted(tileiras):
    differing = [text for n in range(QUICK) if (text := agreement(case(random.Random(n)), n))]

    assert len(differing) <= QUICK * (1 - SHARE), differing


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_the_compiler_reports_what_is_predicted_of_a_large_grid(tileiras):
    differing = [text for n in range(ALL) if (text := agreement(case(random.Random(n)), n))]

    assert len(differing) <= ALL * (1 - SHARE), differing


def compile_random(seed):
    found = orders_of(random_kernel(seed).described())
    module = emit(found.described, found.kernel, found.kept)
    data = bytecode.write(module)
    assert bytecode.read(data) == module, seed
    assert compiler.compile_bytecode(data, "sm_90").cubin, seed


def test_the_compiler_accepts_random_kernels(tileiras):
    for seed in range(COMPILED):
        compile_random(seed)


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_the_compiler_accepts_many_random_kernels(tileiras):
    for seed in range(ALL_COMPILED):
        compile_random(seed)


def test_w4_names_the_access_and_the_reason_in_report_and_plan():
    kernel = TileKernel("odd_rows")
    a = kernel.array("a", (256, 64), "f16", strides=(66, 1), alignment=8)
    kernel.load(a, (0, 0), (64, 64))
    graph = orders_of(kernel.described()).graph
    (found,) = [d for d in graph.diagnostics if d.code == "W4"]

    assert found.text == (
        "load of a (partition_view of 2 dimensions) cannot use TMA: base pointer not 16-byte "
        "aligned, stride not 16-byte aligned"
    )
    assert found.text in plan_file.write(graph)
    assert "cannot use TMA" in " ".join(explained(graph).split())


def test_report_and_plan_have_the_verdict_of_each_access():
    graph = orders_of(gemm().described()).graph
    text, plan = explained(graph), json.loads(plan_file.write(graph))
    seen = [op["details"] for op in _operations(plan["body"])]

    assert seen == [{"view": "partition_view of 2 dimensions", "TMA": "possible"}] * 3
    assert text.count("partition_view of 2 dimensions; TMA: possible") == 3
    assert plan_file.read(plan_file.write(graph))[0] == graph
    older = orders_of(gemm().described(), target="sm_80").graph
    assert explained(older).count("; TMA: no TMA before sm_90") == 3


def _operations(body):
    for node in body:
        yield from _operations(node["body"]) if "loop" in node else [node]


def test_a_target_without_tma_is_the_reason():
    assert [v.obstacles for v in verdicts(gemm().described())] == [(), (), ()]
    older = {v.obstacles for v in verdicts(gemm().described(), "sm_80")}
    assert older == {("no TMA before sm_90",)}


def test_a_list_of_rows_is_slow_in_a_matrix_product_and_not_in_a_copy():
    kernels = {family: dict(LAYOUT_KERNELS[family].cases(dtype="f16"))
               for family in ("gemm", "gather")}  # fmt: skip
    slow = {(family, layout): has_slow_load(kernels[family][layout].described(), "sm_90")
            for family in kernels for layout in ("rows", "rows_xor", "chunks_xor")}  # fmt: skip

    assert slow == {
        ("gemm", "rows"): False, ("gemm", "rows_xor"): True, ("gemm", "chunks_xor"): True,
        ("gather", "rows"): False, ("gather", "rows_xor"): False, ("gather", "chunks_xor"): True,
    }  # fmt: skip
