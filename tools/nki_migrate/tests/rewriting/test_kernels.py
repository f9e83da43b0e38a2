"""Whole kernels: the migrated text is compared with golden files.

`NKI_UPDATE_GOLDEN=1 pytest …` writes them anew; review the difference like code.
"""

import os
from pathlib import Path

import pytest

from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

GOLDEN = Path(__file__).parent.parent / "golden"
EXAMPLES = Path(__file__).parents[4] / "examples"
CASES = {
    "softmax": ("beta1/softmax.py", Request()),
    "masked_add": ("beta1/masked_add.py", Request()),
    "transpose": ("beta1/transpose.py", Request()),
    "matmul_tiled": ("beta1/matmul_tiled.py", Request()),
    "matmul_tiled_folded": ("beta1/matmul_tiled.py", Request(block_dims="fold")),
    "causal_softmax": ("beta1_todo/causal_softmax.py", Request()),
}


@pytest.fixture(params=CASES, ids=str)
def kernel(request):
    path, options = CASES[request.param]
    text = (EXAMPLES / path).read_text()
    return request.param, migrate_source(text, path, options)


def test_migrated_kernel_is_the_golden_one(kernel):
    name, result = kernel
    golden = GOLDEN / f"{name}.py.golden"
    if os.environ.get("NKI_UPDATE_GOLDEN"):
        golden.write_text(result.after)

    assert result.after == golden.read_text()


def test_migrated_kernel_migrates_to_itself(kernel):
    _, result = kernel

    assert migrate_source(result.after, result.path, Request()).after == result.after


def test_only_the_todo_example_leaves_something(kernel):
    name, result = kernel
    left = [f.rule for f in result.findings if not f.applied]

    assert left == (["NKI1172"] if name == "causal_softmax" else [])
    assert [k.complete for k in result.kernels] == [name != "causal_softmax"]
