"""Graphs as text: Python's syntax, so that every editor colours it and `ast` reads it.

    def line(x0: float32[4, 8]):
        v0 = constant(2.0, float32[()])  # float32[()]
        v1 = multiply(x0, v0)  # float32[4, 8]
        return v1

A constant of one number is that number; any other is its elements' bytes, row by row, compressed,
in base 64. What the graph leaves in an argument stands before the return: `x0[...] = v3`.
`parse_graph(print_graph(g)) == g` for every graph.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from nki_dtypes import DType
from nkigen_lite.ir.nodes import Node
from nkigen_lite.tensors.constant import Constant

INDENT = "    "


def node_text(node: Node) -> str:
    """One line: the value, the operation, its operands and attributes, the spec."""
    shown = [*node.operands]
    for name, value in node.attrs.items():
        if isinstance(value, Constant):
            shown += [constant_text(value), str(value.spec)]
        else:
            shown.append(f"{name}={_value(value)}")
    return f"{node.name} = {node.op}({', '.join(shown)})  # {node.spec}"


def _value(value: Any) -> str:
    return value.name if isinstance(value, DType) else repr(value)


def constant_text(constant: Constant) -> str:
    """A number for a uniform constant, else its bytes as a string."""
    if constant.uniform is not None:
        return _number(constant.uniform)
    packed = zlib.compress(constant.array.tobytes(), 9)
    return repr(base64.b64encode(packed).decode())


def constant_of(given: Any, template: np.ndarray, dtype: DType) -> Constant:
    """The constant that `constant_text` wrote; `template` gives shape and storage dtype."""
    if isinstance(given, str):
        data = zlib.decompress(base64.b64decode(given))
        return Constant(np.frombuffer(data, template.dtype).reshape(template.shape), dtype)
    one = np.array(given[0], f"u{template.dtype.itemsize}").view(template.dtype) if isinstance(
        given, tuple
    ) else np.array(given).astype(template.dtype)  # fmt: skip
    return Constant(np.broadcast_to(one, template.shape), dtype)


def _number(one: Any) -> str:
    """Python's number; `(bits,)` for what Python's numbers do not tell apart: NaNs."""
    python = one.item()
    if isinstance(python, (bool, int)):
        return repr(python)
    python = float(python)
    if python != python:
        return f"({int(one.view(f'u{one.dtype.itemsize}')):#x},)"
    return repr(python) if abs(python) != float("inf") else f"{'-' * (python < 0)}1e999"
