"""Rotary position embedding, for NKI 0.6."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def rope_kernel(x, cos, sin):
    """Turn the two halves of every head's vector by an angle that grows with the position.

    x: (S, H, D), D even; cos, sin: (S, D/2), the angles of position s for all heads.
    With x = [a | b] along the last axis, returns [a cos - b sin | b cos + a sin], (S, H, D) in
    x's dtype; products are float32.
    """
    positions, heads, dim = x.shape
    half = dim // 2
    assert dim == 2 * half, f"a head of {dim} elements has no two halves"
    assert cos.shape[1] == half and sin.shape[1] == half, "cos and sin hold half a head"
    out = nl.ndarray((positions, heads, dim), dtype=x.dtype, buffer=nl.shared_hbm)

    for start in range(0, positions, nl.tile_size.pmax):
        height = min(nl.tile_size.pmax, positions - start)
        tile = nl.ndarray((height, heads, dim), dtype=x.dtype, buffer=nl.sbuf)
        cosines = nl.ndarray((height, half), dtype=cos.dtype, buffer=nl.sbuf)
        sines = nl.ndarray((height, half), dtype=sin.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start : start + height, :, :])
        nisa.dma_copy(dst=cosines, src=cos[start : start + height, :])
        nisa.dma_copy(dst=sines, src=sin[start : start + height, :])

        # A step of 0 shows the same angles to every head (and to both halves).
        cos_of_heads = cosines.ap(pattern=[[half, height], [0, 2 * heads], [1, half]])
        sin_of_heads = sines.ap(pattern=[[half, height], [0, heads], [1, half]])

        straight = nl.ndarray((height, 2 * heads, half), dtype=nl.float32, buffer=nl.sbuf)
        crossed = nl.ndarray((height, heads, dim), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(
            dst=straight,
            data1=tile.reshape((height, 2 * heads, half)),
            data2=cos_of_heads,
            op=nl.multiply,
        )
        nisa.tensor_tensor(
            dst=crossed[:, :, 0:half],
            data1=tile[:, :, half:dim],
            data2=sin_of_heads,
            op=nl.multiply,
        )
        nisa.tensor_tensor(
            dst=crossed[:, :, half:dim],
            data1=tile[:, :, 0:half],
            data2=sin_of_heads,
            op=nl.multiply,
        )

        by_head = straight.reshape((height, heads, dim))
        nisa.tensor_tensor(
            dst=tile[:, :, 0:half],
            data1=by_head[:, :, 0:half],
            data2=crossed[:, :, 0:half],
            op=nl.subtract,
        )
        nisa.tensor_tensor(
            dst=tile[:, :, half:dim],
            data1=by_head[:, :, half:dim],
            data2=crossed[:, :, half:dim],
            op=nl.add,
        )
        nisa.dma_copy(dst=out[start : start + height, :, :], src=tile)

    return out
