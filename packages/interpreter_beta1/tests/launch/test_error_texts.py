"""What a person reads at midnight: whole messages, with the kernel's line and a caret."""

import numpy as np
import pytest

from neuroncore.errors import AccessError, KernelError, LaunchError, MemorySpaceError, ShapeError
from nki_beta1 import nisa, nki, nl

X = np.zeros((100, 200), np.float32)


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


@nki.jit
def mask_of_other_axes(x):
    i, j = nl.mgrid[0:100, 0:200]
    other = nl.arange(50)[None, :]
    return stored(nl.load(x[i, j], mask=other < 40))


@nki.jit
def mask_of_other_rank(x):
    tile = nl.load(x)
    return stored(nl.exp(tile, mask=nl.arange(100)[:, None, None] < 40))


@nki.jit
def no_mask_at_all(x):
    tile = nl.load(x)
    return stored(nl.exp(tile, mask=tile))


@nki.jit
def out_of_range(x):
    i, j = nl.mgrid[0:128, 0:200]
    return stored(nl.load(x[i, j]))


@nki.jit
def partly_masked(x):
    i, j = nl.mgrid[0:128, 0:256]
    return stored(nl.load(x[i, j], mask=j < 200))


@nki.jit
def on_chip_result(x):
    return nl.load(x)


@nki.jit
def triangle(x):
    i, j = nl.mgrid[0:100, 0:100]
    return stored(nl.transpose(nl.load(x)[i, j], mask=i >= j))


@nki.jit
def ambiguous_matmul(x):
    a = nl.load(x[0:64, 0:64])
    i = nl.arange(64)[:, None]
    return stored(nl.copy(nisa.nc_matmul(a, a, mask=i < 40)))


MESSAGES = {
    mask_of_other_axes: (
        ShapeError,
        """\
: a mask over index axes (1, 50) does not fit a tile of shape (100, 200)
    return stored(nl.load(x[i, j], mask=other < 40))
                                        ^^^^^^^^^^
    expected: the index axes of the tile, or extent 1
    build the mask from the same index expressions as the access
    [NKI 0.1: masking]""",
    ),
    mask_of_other_rank: (
        ShapeError,
        """\
: a mask over index axes (100, 1, 1) does not fit a tile of shape (100, 200)
    return stored(nl.exp(tile, mask=nl.arange(100)[:, None, None] < 40))
                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    expected: the index axes of the tile, or extent 1
    build the mask from the same index expressions as the access
    [NKI 0.1: masking]""",
    ),
    no_mask_at_all: (
        KernelError,
        """\
: mask is a Tile
    return stored(nl.exp(tile, mask=tile))
                                    ^^^^
    expected: a comparison of index expressions, such as (i * 128 + ip < rows)
    got:      <tile (100, 200), float32, SBUF>
    [NKI 0.1: masking]""",
    ),
    out_of_range: (
        AccessError,
        """\
: index out of range in dimension 0
    return stored(nl.load(x[i, j]))
                  ^^^^^^^^^^^^^^^^
    expected: 0 <= index < 100
    got:      indices 0 to 127 on a tensor of shape (100, 200)
    cut the last tile off with mask=, on every access that leaves the tensor
    [NKI 0.1: advanced tensor indexing]""",
    ),
    partly_masked: (
        AccessError,
        """\
: index out of range in dimension 0
    return stored(nl.load(x[i, j], mask=j < 200))
                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    expected: 0 <= index < 100
    got:      indices 0 to 127 on a tensor of shape (100, 200)
    cut the last tile off with mask=, on every access that leaves the tensor
    [NKI 0.1: advanced tensor indexing]""",
    ),
    triangle: (
        ShapeError,
        """\
: nc_transpose: the mask does not select a rectangle
    return stored(nl.transpose(nl.load(x)[i, j], mask=i >= j))
                                                      ^^^^^^
    expected: bounds on single axes, such as (i_p < rows) & (i_f < cols)
    got:      elements of [0:100, 0:100] in part
    compute the whole rectangle, then choose with nisa.affine_select or nl.where
    [NKI 0.1: masking]""",
    ),
    ambiguous_matmul: (
        KernelError,
        """\
: nc_matmul: a mask on 64 rows may refer to the operands or to the result
    return stored(nl.copy(nisa.nc_matmul(a, a, mask=i < 40)))
                                                    ^^^^^^
    expected: a mask on the loads, or operands cut with slices
    got:      stationary (64, 64), moving (64, 64)
    [NKI 0.1: masking]""",
    ),
}


@pytest.mark.parametrize("kernel", MESSAGES, ids=lambda kernel: kernel.__name__)
def test_a_mistake_is_explained_where_it_stands(kernel):
    kind, text = MESSAGES[kernel]

    with pytest.raises(kind) as caught:
        kernel(X)

    place, colon, rest = str(caught.value).partition(": ")
    assert place.startswith(f"{__file__}:") and colon + rest == text


def test_a_result_on_chip_is_rejected():
    with pytest.raises(MemorySpaceError) as caught:
        on_chip_result(X)

    lines = str(caught.value).splitlines()
    assert lines[0].endswith(": kernel on_chip_result returns a tensor in SBUF")
    assert lines[1:] == [
        "    return nl.load(x)",
        "    ^^^^^^^^^^^^^^^^^",
        "    expected: a tensor in HBM",
        "    got:      shape (100, 200), float32, SBUF",
        "    store it to nl.ndarray(…, buffer=nl.shared_hbm) and return that",
        "    [NKI 0.1: kernel outputs]",
    ]


def test_indices_that_a_mask_cuts_off_may_leave_the_tensor():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i, j = nl.mgrid[0:128, 0:256]
        inside = (i < 100) & (j < 200)
        nl.store(out[i, j], value=nl.load(x[i, j], mask=inside) + 1.0, mask=inside)
        return out

    np.testing.assert_array_equal(kernel(X), X + 1)


def test_a_masked_array_is_rejected():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        return out

    x = np.ma.masked_array(np.ones((4, 4), np.float32), mask=np.eye(4, dtype=bool))
    with pytest.raises(LaunchError, match=r"(?s)masked array.*4 elements masked.*\.filled"):
        kernel(x)
    assert kernel(x.filled(0)).sum() == 12
