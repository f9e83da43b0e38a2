"""The ways to write a part of a kernel, and which of them is taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkigen_lite.compiler.compile import compile


def max_pool(x: Any) -> Any:
    return x.reshape(8, 64, 28, 2, 28, 2).max((3, 5))


def test_a_way_of_too_many_instructions_is_not_played():
    kernel = compile(lambda x: x.reshape(8, 64, 28, 2, 28).max(3), "f32[8,64,56,28]")

    assert "not rows on partitions, added on VectorE: 71,680 instructions" in kernel.explain()


def test_pooling_is_numpys(moves):
    x = np.random.default_rng(0).standard_normal((8, 64, 56, 56)).astype(np.float32)

    moves(max_pool, x)
