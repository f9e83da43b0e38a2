"""The examples of tokenplan as programs, at the sizes that its page tells of."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

from members import ROOT

from neuroncore.program import Program
from nki_runtime import program_of, use

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "stream": (((512, 256), "float32"),),
    "even_odd": (((2048, 512), "float32"),),
    "recurrence": (((2048, 512), "float32"),),
    "gemm": (((512, 512), "bfloat16"), ((512, 1024), "bfloat16")),
    "transpose": (((512, 384), "float32"),),
    "gather": (((512, 64), "float32"), ((3, 128, 1), "int32")),
    "slots": (((1024, 256), "float32"),),
    "attention": (
        ((64, 512), "float32"), ((64, 512), "float32"), ((512, 64), "float32"), 0.125,
    ),
}  # fmt: skip


@cache
def program(name: str) -> Program:
    """The example's program."""
    path = ROOT / "examples" / "tokenplan" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"tokenplan_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with use("beta2", nki="0.6"):
        spec.loader.exec_module(module)
        return program_of(getattr(module, f"{name}_kernel"), *ARGUMENTS[name])
