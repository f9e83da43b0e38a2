"""NKI1192: `nisa.affine_select` takes a pattern."""

from nki_migrate.findings import Safety
from nki_migrate.lower.patterned import lower_affine_select
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
ip = nl.arange(128)[:, None]
jf = nl.arange(512)[None, :]
tile = nl.load(x[ip, jf])
causal = nisa.affine_select(pred=(ip + 128 >= jf), on_true_tile=tile, on_false_value=-9984.0)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
causal = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.affine_select(
    dst=causal,
    pattern=[[-1, 512]],
    offset=128,
    channel_multiplier=1,
    on_true_tile=tile,
    on_false_value=-9984.0,
    cmp_op=nl.greater_equal,
)
"""

RULE = Rule(
    id="NKI1192",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nisa.affine_select` takes a pattern",
    page="""\
Old: `nisa.affine_select(pred=(ip >= jf), on_true_tile=tile, on_false_value=number)`

New: `nisa.affine_select(dst, pattern, offset, channel_multiplier, on_true_tile, on_false_value,
cmp_op)`

`L >= R` is `L - R` compared with zero: offset + channel_multiplier · partition + Σ step · index. A
predicate of another form stays, with a TODO. A tile in PSUM is copied to SBUF first, as 0.1 did.
""",
    calls={"nisa.affine_select": lower_affine_select},
    examples=(Example.kernel(_BAD, _GOOD),),
)
