"""NKI1109: launchers of the frameworks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]

_LAUNCHERS = {"torch_neuronx.nki_jit", "jax_neuronx.nki_call"}


def _check(node: ast.expr, site: Site) -> Iterator[Finding]:
    name = site.canonical(node)
    if name in _LAUNCHERS:
        message = (
            f"`{name}` is gone: decorate with `nki.jit`, call the kernel, take what it returns"
        )
        yield site.finding("NKI1109", node, message, safety=Safety.MANUAL)


_BAD = """
import neuronxcc.nki.language as nl
from torch_neuronx import nki_jit

@nki_jit
def kernel(x):
    return x
"""
_GOOD = """
import nki.language as nl
from torch_neuronx import nki_jit

# TODO(nki-migrate NKI1109): `torch_neuronx.nki_jit` is gone: decorate with `nki.jit`, call the kernel, take what it returns
@nki_jit
def kernel(x):
    return x
"""  # noqa: E501

RULE = Rule(
    id="NKI1109",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="`torch_neuronx.nki_jit` and `jax_neuronx.nki_call` are gone",
    page="""\
Old: `@nki_jit`, `nki_call(kernel, x, out_shape=…)`

New: `@nki.jit` and a plain call; by hand, because such kernels write to an argument (NKI1117)
""",
    examples=(Example.of(_BAD, _GOOD),),
    nodes=(ast.Attribute, ast.Name),
    check=_check,
)
