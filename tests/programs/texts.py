"""Texts of programs that tests of several folders read."""

COPY = """\
program("trn2", "0.7")
def copy(x: float32[4, 4]):
    out = buffer(float32[4, 4], shared_hbm)
    tile = buffer(float32[4, 4], sbuf)
    dma_copy(dst=tile[:, :], src=x[:, :])
    dma_copy(dst=out[:, :], src=tile[:, :])
    return out
"""
