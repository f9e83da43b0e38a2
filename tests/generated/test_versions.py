"""Kernels of the benchmark's functions, small: every version's compiler takes them, checks pass."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import generator_workloads as generator

import nki_runtime
import nkigen_lite
from neuroncore.checks import watching
from neuroncore.checks.subset import check_script
from nkigen_lite import as_spec
from nkigen_lite.cli.generated_source import normal_inputs
from nkigen_lite.compiler.compile import Compiled

VERSIONS = ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7")

# Tiles that are full and tiles that are not, at sizes that take a blink.
SMALL: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "softmax": (generator.softmax, ("f32[300, 130]",)),
    "rmsnorm": (generator.rmsnorm, ("f32[300, 130]", "f32[130]")),
    "chain": (generator.chain, ("bf16[130, 70]", "bf16[130, 70]")),
    "line": (generator.line, ("f32[70000]",)),
    "matmul": (generator.mm, ("f32[200, 300]", "f32[300, 520]")),
    "attention": (generator.attention, ("f32[1, 2, 130, 64]",) * 3),
    "gated": (
        generator.gated, ("f32[130, 128]", "f32[128, 256]", "f32[128, 256]", "f32[256, 128]")
    ),
    "lm_head": (generator.mm, ("bf16[1, 256]", "bf16[256, 1100]")),
    "reverse_axes": (generator.reverse_axes, ("f32[2, 3, 40, 20]",)),
    "weight_transpose": (generator.weight_transpose, ("f32[6, 3, 2, 4, 5]",)),
    "strided": (generator.strided, ("f32[1, 16, 32, 32]",)),
    "convolution": (
        generator.convolution, ("f32[2, 3, 9, 8]", "f32[4, 3, 3, 3]", "f32[4]")
    ),
    "convolution_last": (
        generator.convolution_last, ("f32[2, 9, 8, 3]", "f32[4, 3, 3, 3]", "f32[4]")
    ),
    "depthwise": (generator.depthwise, ("f32[1, 256, 5, 4]", "f32[256, 1, 3, 3]")),
    "patches": (generator.patches, ("f32[3, 3, 2, 16, 16]", "f32[130, 3, 2, 16, 16]")),
    "top_8": (generator.top_8, ("f32[130, 70]",)),
    "sort": (np.sort, ("f32[130, 30]",)),
    "embedding": (generator.embedding, ("bf16[130, 70]", "i32[200]")),
    "selective_scan": (
        generator.selective_scan,
        ("f32[130, 20]", "f32[130, 20]", "f32[130, 4]", *["f32[20, 4]"] * 2),
    ),
    "cache_write": (generator.cache_write, ("bf16[3, 40, 8]", "i32[]", "bf16[3, 8]")),
    "dense_experts": (
        generator.dense_experts,
        ("f32[128, 130]", "f32[130, 3]", "f32[3, 130, 140]", "f32[3, 140, 130]"),
    ),
    "clip_loss": (generator.clip_loss, (*["f32[128, 64]"] * 2, "f32[]")),
    "groupnorm": (generator.groupnorm, ("f32[2, 64, 4, 5]", *["f32[64]"] * 2)),
    "interleaved_rope": (
        generator.interleaved_rope, ("f32[130, 3, 8]", *["f32[130, 1, 4]"] * 2)
    ),
    "last_axes_swapped": (generator.last_axes_swapped, ("f32[2, 3, 40, 20]",)),
    "adamw": (generator.adamw, ("f32[130, 70]",) * 4),
    "picked_rows": (generator.picked_rows, ("f32[130, 70]",)),
    "llama_block": (
        generator.llama_block,
        (
            "bf16[1, 128]", "i32[]", *["bf16[20, 16]"] * 2, *["bf16[2, 20, 32]"] * 2, "bf16[128]",
            "bf16[128, 128]", *["bf16[128, 64]"] * 2, "bf16[128, 128]", "bf16[128]",
            *["bf16[128, 200]"] * 2, "bf16[200, 128]",
        ),
    ),
    "gpt_block": (
        generator.gpt_block,
        (
            "f32[40, 128]", *["f32[128]"] * 2, "f32[128, 384]", "f32[128, 128]",
            *["f32[128]"] * 2, "f32[128, 256]", "f32[256, 128]",
        ),
    ),
}  # fmt: skip


def made(name: str, version: str) -> Compiled:
    function, specs = SMALL[name]
    return nkigen_lite.compile(function, *specs, nki=version)


def written(kernel: Compiled, folder: Path) -> Path:
    path = folder / "written_kernel.py"
    path.write_text(kernel.source, encoding="utf-8")
    return path


def test_every_function_of_the_benchmark_is_here():
    assert {w.function for w in generator.WORKLOADS} == {f for f, _ in SMALL.values()}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SMALL)
def test_the_versions_compiler_takes_the_source(name, version, tmp_path):
    path = written(made(name, version), tmp_path)

    assert check_script(path, version) == []


@pytest.mark.parametrize("version", ["0.2", "0.6"])
@pytest.mark.parametrize("name", SMALL)
def test_nothing_is_found_in_a_run(name, version, tmp_path):
    kernel = made(name, version)
    path = written(kernel, tmp_path)
    arrays = [a if a.dtype.kind in "iu" else abs(a) for a in normal_inputs(
        [as_spec(spec) for spec in SMALL[name][1]], seed=0
    )]  # fmt: skip

    with nki_runtime.use(nki=version, target="trn2"):
        spec = importlib.util.spec_from_file_location("written_kernel", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with watching("memory", "capacity", "device", "race", "traps") as report:
            found = getattr(module, kernel.program.name)(*kernel.inputs(*arrays))

    assert str(report) == "nothing found"
    results = kernel.results(
        found if isinstance(found, tuple) else (found,), [a.copy() for a in arrays]
    )
    ours = results if isinstance(results, tuple) else (results,)
    again = kernel(*(a.copy() for a in arrays))
    for mine, programs in zip(ours, again if isinstance(again, tuple) else (again,), strict=True):
        assert np.array_equal(mine, programs)
