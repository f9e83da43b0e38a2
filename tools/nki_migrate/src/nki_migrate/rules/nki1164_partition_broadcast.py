"""NKI1164: a row in every partition is loaded or shuffled so."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
weight = nl.load(w[0:1, 0:512], dtype=x.dtype)
scaled = tile * weight
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
weight_bcast = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=weight_bcast, src=w.ap(pattern=[[0, 128], [1, 512]], offset=0))
scaled = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_tensor(dst=scaled, data1=tile, data2=weight_bcast, op=nl.multiply)
"""

_BAD_MADE = """
tile = nl.load(x[0:128, 0:512])
weight = nl.add(nl.load(w[0:1, 0:512], dtype=x.dtype), 1.0, dtype=x.dtype)
scaled = tile * weight
"""
_GOOD_MADE = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
w_tile = nl.ndarray((1, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=w_tile, src=w[0:1, 0:512])
weight = nl.ndarray((1, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_scalar(dst=weight, data=w_tile, op0=nl.add, operand0=1.0)
weight_bcast = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
for quadrant in range(0, 128, 32):
    nisa.nc_stream_shuffle(
        dst=weight_bcast[nl.ds(quadrant, 32), :],
        src=weight,
        shuffle_mask=[0] * 32,
    )
scaled = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_tensor(dst=scaled, data1=tile, data2=weight_bcast, op=nl.multiply)
"""

RULE = Rule(
    id="NKI1164",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a row in every partition is loaded or shuffled so",
    page="""\
Old: `w = nl.load(h[0:1, jf])`, `x * w.broadcast_to((128, 512))`

New: `nisa.dma_copy(dst=w_bcast, src=h.ap(pattern=[[0, 128], [1, 512]], offset=0))`

No view repeats one partition over others. When the row comes straight from a load, DMA reads it
into all partitions; otherwise `nisa.nc_stream_shuffle` gives the 32 partitions of each quadrant
the bits of the first one, whatever the dtype.
""",
    examples=(
        Example.kernel(_BAD, _GOOD, parameters="x, w"),
        Example.kernel(_BAD_MADE, _GOOD_MADE, parameters="x, w"),
    ),
)
