"""One array for two parameters: no program says that, so it is rejected where one is written."""

import numpy as np
import pytest

import nki_runtime
from neuroncore.errors import LaunchError

with nki_runtime.use("beta2", nki="0.6"):
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def copied(a, b):
        tile = nl.ndarray((128, 16), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a[0:128, :])
        nisa.dma_copy(dst=b[0:128, :], src=tile)
        return b

    @nki.jit
    def added(a, b):
        out = nl.ndarray((128, 16), dtype=a.dtype, buffer=nl.shared_hbm)
        one = nl.ndarray((128, 16), dtype=a.dtype, buffer=nl.sbuf)
        two = nl.ndarray((128, 16), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=one, src=a[0:128, :])
        nisa.dma_copy(dst=two, src=b[0:128, :])
        nisa.tensor_tensor(dst=one, data1=one, data2=two, op=nl.add)
        nisa.dma_copy(dst=out, src=one)
        return out


ROWS = np.zeros((256, 16), np.float32)


def program_of(kernel, *arrays):
    with nki_runtime.use("beta2", nki="0.6"):
        return nki_runtime.program_of(kernel, *arrays)


@pytest.mark.parametrize("arrays", [(ROWS, ROWS), (ROWS[:192], ROWS[64:])], ids=["same", "parts"])
def test_parameters_that_share_memory_are_rejected_where_one_is_written(arrays):
    with pytest.raises(LaunchError, match=r"arguments a and b share memory, .* writes b"):
        program_of(copied, *arrays)


def test_parts_that_share_no_byte_and_tensors_that_are_only_read_are_taken():
    assert program_of(copied, ROWS[:128], ROWS[128:]).parameters
    assert program_of(added, ROWS, ROWS).parameters
