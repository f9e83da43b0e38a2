"""What 0.5 offers and does not ask for."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULES"]

_SCALES = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def quantize(dst, src):
    scale = nl.ndarray((128, 16), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.quantize_mx(dst=dst, src=src, dst_scale=scale)
"""
_VIEWS = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def columns(dst, x):
    nisa.dma_copy(dst=dst, src=x.ap([[512, 128], [2, 256]], offset=1))
"""

RULES = (
    Rule(
        id="NKI4005",
        step=("0.4", "0.5"),
        klass="a",
        safety=Safety.SAFE,
        title="scales of MX formats may stay `uint8`",
        page="`nl.float8_e8m0fnu` is new and has the same bits; `nl.uint8` is still taken.\n",
        examples=(Example.of(_SCALES, _SCALES),),
        keeps=True,
    ),
    Rule(
        id="NKI4006",
        step=("0.4", "0.5"),
        klass="a",
        safety=Safety.SAFE,
        title="hand-made views over `.ap` may stay",
        page="""\
Tensors have `slice`, `select`, `permute`, `broadcast`, `reshape_dim`, `flatten_dims` and
`rearrange` now, which compose; `.ap` means what it meant.

**Trap.** `.ap` works on the storage, so it ignores a view that it is called on.
""",
        examples=(Example.of(_VIEWS, _VIEWS),),
        keeps=True,
    ),
)
