"""DMA copies keep their operands by name; what is left of an instruction says why."""

from __future__ import annotations

import textwrap

import pytest

from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x[0:128, 0:64])
"""


def migrated(body: str, target: str = "0.6"):
    text = HEAD + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n    return out\n"
    return migrate_source(text, "k.py", Request(target=target))


def test_operands_by_position_are_left():
    """0.1 copied from the first to the second, 0.2 the other way round."""
    result = migrated("nisa.dma_copy(x, out)")

    assert [f.rule for f in result.findings if not f.applied] == ["NKI1276"]
    assert "    nisa.dma_copy(x, out)\n" in result.after


@pytest.mark.parametrize(
    ("target", "call"),
    [
        ("0.2", "nisa.dma_copy(dst=out, src=x[0:128, 0:64], dst_rmw_op=nl.add)"),
        ("0.6", "nisa.dma_compute(out, [x[0:128, 0:64], out], reduce_op=nl.add)"),
    ],
)
def test_a_copy_that_adds_is_what_its_version_has(target, call):
    ip, jf = "nl.arange(128)[:, None]", "nl.arange(64)[None, :]"
    copied = f"nisa.dma_copy(dst=out[{ip}, {jf}], src=x[{ip}, {jf}], dst_rmw_op=np.add)"

    result = migrated(f"nl.store(out, tile)\n{copied}", target)

    assert call in result.after
    assert "TODO" not in result.after


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("nisa.sparse_dot_product(tile)", "is gone: 0.2 and later have no such instruction"),
        ("nl.rms_norm(tile, axis=1)", "`nl.rms_norm` without a weight"),
    ],
)
def test_what_is_left_says_what_there_is_to_do(call, message):
    result = migrated(f"y = {call}\nnl.store(out, tile)")

    (left,) = [f for f in result.findings if not f.applied]
    assert message in left.message
