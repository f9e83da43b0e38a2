"""Every function that the checker knows, by name."""

from __future__ import annotations

from collections.abc import Mapping

from nkigym.checker.elementwise import SUM_AND_PRODUCT, TENSOR_ADD
from nkigym.checker.function import Function
from nkigym.checker.products import MATMUL, RMSNORM_MATMUL

FUNCTIONS: Mapping[str, Function] = {
    "matmul": MATMUL,
    "repeated_add": TENSOR_ADD,
    "rmsnorm_matmul": RMSNORM_MATMUL,
    "sum_and_product": SUM_AND_PRODUCT,
    "tensor_add": TENSOR_ADD,
}
