"""Hand-written kernels of four workloads of the generator, for NKI 0.7 and trn2.

`import nki` needs a backend: `with nki_runtime.use("beta2", nki="0.7")` around the import.
"""

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def interleaved_rope(x: Any, cos: Any, sin: Any) -> Any:
    """Neighbours (a, b) of every head's vector become (a cos - b sin, a sin + b cos).

    x: (S, H, D) float32; cos, sin: (S, 1, D/2). VectorE takes an element a cycle where one operand
    is in PSUM, half of one where both are in SBUF: the angles are in PSUM. GpSimdE adds.
    """
    positions, heads, dim = x.shape
    half = dim // 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, positions, 128):
        pairs = nl.ndarray((128, heads, dim), dtype=x.dtype, buffer=nl.sbuf)
        angles = nl.ndarray((128, 2, half), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=angles[:, 0:1, :], src=cos[start : start + 128, :, :])
        nisa.dma_copy(dst=angles[:, 1:2, :], src=sin[start : start + 128, :, :])
        nisa.dma_copy(dst=pairs, src=x[start : start + 128, :, :])

        signed = nl.ndarray((128, 3, half), dtype=x.dtype, buffer=nl.psum)  # cos, -sin, sin
        nisa.activation(dst=signed[:, 0, :], op=nl.copy, data=angles[:, 0, :])
        nisa.activation(dst=signed[:, 1, :], op=nl.copy, data=angles[:, 1, :], scale=-1.0)
        nisa.activation(dst=signed[:, 2, :], op=nl.copy, data=angles[:, 1, :])

        straight = nl.ndarray((128, heads, half, 2), dtype=x.dtype, buffer=nl.sbuf)
        crossed = nl.ndarray((128, heads, half, 2), dtype=x.dtype, buffer=nl.sbuf)
        row = [[heads * dim, 128], [dim, heads], [2, half]]
        cosines = [[3 * half, 128], [0, heads], [1, half], [0, 2]]
        nisa.tensor_tensor(
            dst=straight, data1=pairs.reshape((128, heads, half, 2)),
            data2=signed.ap(pattern=cosines), op=nl.multiply,
        )  # fmt: skip
        for place in range(2):
            sines = signed.ap(pattern=cosines[:3], offset=(1 + place) * half)
            nisa.tensor_tensor(
                dst=crossed[:, :, :, place], data1=pairs.ap(pattern=row, offset=1 - place),
                data2=sines, op=nl.multiply,
            )  # fmt: skip
        nisa.tensor_tensor(
            dst=straight, data1=straight, data2=crossed, op=nl.add, engine=nisa.engine.gpsimd
        )
        nisa.dma_copy(
            dst=out[start : start + 128, :, :], src=straight.reshape((128, heads, dim))
        )  # fmt: skip
    return out


@nki.jit
def last_axes_swapped(x: Any) -> Any:
    """x (B, H, 128, 64) float32 as (B, H, 64, 128): TensorE transposes two heads at once, so that
    every partition is stored from."""
    batches, heads, rows, columns = x.shape
    assert (rows, columns) == (128, 64) and heads % 8 == 0, "two heads fill the partitions"
    out = nl.ndarray((batches, heads, columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    matrix = rows * columns
    for first in range(0, batches * heads, 8):
        loaded = nl.ndarray((rows, 8, columns), dtype=x.dtype, buffer=nl.sbuf)
        made = nl.ndarray((128, 4, rows), dtype=x.dtype, buffer=nl.sbuf)
        bank = nl.ndarray((128, 4, rows), dtype=x.dtype, buffer=nl.psum)
        by_row = [[columns, rows], [matrix, 8], [1, columns]]
        nisa.dma_copy(dst=loaded, src=x.ap(pattern=by_row, offset=first * matrix))
        for pair in range(4):
            both = loaded[:, 2 * pair : 2 * pair + 2, :].reshape((rows, 128))
            nisa.nc_transpose(dst=bank[:, pair, :], data=both)
        nisa.tensor_copy(dst=made, src=bank)
        by_column = [[rows, 128], [2 * matrix, 4], [1, rows]]
        nisa.dma_copy(dst=out.ap(pattern=by_column, offset=first * matrix), src=made)
    return out


@nki.jit
def picked_rows(x: Any, kept: Any) -> Any:
    """The rows of x whose numbers are `kept`, never on chip: as many as are evenly spaced by one
    DMA."""
    out = nl.ndarray((len(kept), x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    first = 0
    while first < len(kept):
        step = kept[min(first + 1, len(kept) - 1)] - kept[first] or 1
        last = first + 1
        while last < len(kept) and kept[last] - kept[last - 1] == step:
            last += 1
        rows = x[kept[first] : kept[last - 1] + 1 : step, :]
        nisa.dma_copy(dst=out[first:last, :], src=rows)
        first = last
    return out


DIGITS = 4  # bytes of an int32


@nki.jit
def int32_product(a: Any, b: Any) -> Any:
    """a @ b modulo 2**32. a: (300, 513), b: (513, 200), int32.

    a = sum of u[i] 256**i, 0 <= u[i] <= 255; b = sum of d[j] 256**j, -128 <= d[j] <= 128: float32
    adds 513 products of two digits exactly, as 513 * 255 * 128 < 2**24. Ten products of digits
    count modulo 2**32. The sums of one weight have less than 27 bits; GpSimdE adds them exactly.
    Shifts fill with zeros: a negative sum carries 2**24 too much, to a weight of 2**8 or more,
    which vanishes modulo 2**32.
    """
    rows, columns = a.shape[0], b.shape[1]
    height, depth, chunks = 100, 103, 5  # rows of a tile, terms of a product, of which there are 5
    out = nl.ndarray((rows, columns), dtype=nl.int32, buffer=nl.shared_hbm)
    right = digits_of_b(b, depth, chunks)
    for top in range(0, rows, height):
        left = digits_of_a(a, top, height, depth, chunks)
        total = nl.ndarray((height, DIGITS, columns), dtype=nl.int32, buffer=nl.sbuf)
        for i in range(DIGITS):
            count = DIGITS - i
            part = nl.ndarray((height, count, columns), dtype=nl.int32, buffer=nl.sbuf)
            for j in range(0, count, 2):
                two = min(2, count - j)
                sums = nl.ndarray((height, two, columns), dtype=nl.float32, buffer=nl.psum)
                for k in range(chunks):
                    nisa.nc_matmul(
                        dst=sums, stationary=left[:, i, k, :], moving=right[:, k, j : j + two, :],
                        accumulate=k > 0,
                    )  # fmt: skip
                place = total if i == 0 else part
                nisa.activation(dst=place[:, j : j + two, :], op=nl.copy, data=sums)
            if i > 0:
                add(total[:, i:DIGITS, :], total[:, i:DIGITS, :], part)
        carry = nl.ndarray((height, columns), dtype=nl.int32, buffer=nl.sbuf)
        for place in range(1, DIGITS):
            nisa.tensor_scalar(
                dst=carry, data=total[:, place - 1, :], op0=nl.right_shift, operand0=8
            )
            add(total[:, place, :], total[:, place, :], carry)
        done = nl.ndarray((height, columns), dtype=nl.int32, buffer=nl.sbuf)
        low = [[DIGITS * columns * 4, height], [4, columns], [4 * columns, DIGITS]]
        nisa.tensor_copy(
            dst=done.view(nl.uint8).reshape((height, columns, DIGITS)),
            src=total.view(nl.uint8).ap(pattern=low),
        )
        nisa.dma_copy(dst=out[top : top + height, :], src=done)
    return out


def digits_of_a(a: Any, top: int, height: int, depth: int, chunks: int) -> Any:
    """The bytes of rows of a, transposed: (terms of a chunk, digit, chunk, row) bfloat16."""
    terms, padded = a.shape[1], depth * chunks
    tile = nl.ndarray((height, padded), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=tile[:, terms:padded], value=0)
    nisa.dma_copy(dst=tile[:, 0:terms], src=a[top : top + height, :])
    bits = tile.view(nl.float32)
    transposed = nl.ndarray((depth, chunks, height), dtype=nl.float32, buffer=nl.psum)
    for k in range(chunks):
        nisa.nc_transpose(dst=transposed[:, k, :], data=bits[:, k * depth : (k + 1) * depth])
    digits = nl.ndarray((depth, DIGITS, chunks, height), dtype=nl.bfloat16, buffer=nl.sbuf)
    row = chunks * height
    for first, copy in ((0, nisa.tensor_copy), (2, on_scalar_engine)):
        bytes_of = [[4 * row, depth], [1, 2], [4, row]]
        copy(
            dst=digits[:, first : first + 2, :, :].reshape((depth, 2, row)),
            src=transposed.view(nl.uint8).ap(pattern=bytes_of, offset=first),
        )
    return digits


def digits_of_b(b: Any, depth: int, chunks: int) -> Any:
    """The signed digits of b: (terms of a chunk, chunk, digit, column) bfloat16.

    The bytes of (b mod 2**24) + 0x808080, less 128; the last digit is b's last byte, signed, and
    the carry.
    """
    terms, columns = b.shape
    tile = nl.ndarray((depth, chunks, columns), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=tile[:, chunks - 1, :], value=0)
    for k in range(chunks):
        count = min(depth, terms - k * depth)
        nisa.dma_copy(dst=tile[0:count, k, :], src=b[k * depth : k * depth + count, :])
    lifted = nl.ndarray((depth, chunks * columns), dtype=nl.int32, buffer=nl.sbuf)
    half = nl.ndarray((depth, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=half, value=0x808080)
    flat = tile.reshape((depth, chunks * columns))
    nisa.tensor_scalar(dst=lifted, data=flat, op0=nl.bitwise_and, operand0=0xFFFFFF)
    add(lifted, lifted, half.ap(pattern=[[1, depth], [0, chunks * columns]]))
    digits = nl.ndarray((depth, chunks, DIGITS, columns), dtype=nl.bfloat16, buffer=nl.sbuf)
    row = 4 * chunks * columns
    low = [[row, depth], [4 * columns, chunks], [1, 3], [4, columns]]
    nisa.tensor_scalar(
        dst=digits[:, :, 0:3, :], data=lifted.view(nl.uint8).ap(pattern=low),
        op0=nl.subtract, operand0=128.0,
    )  # fmt: skip
    last = [[row, depth], [4 * columns, chunks], [4, columns]]
    nisa.tensor_tensor(
        dst=digits[:, :, 3, :], data1=tile.view(nl.int8).ap(pattern=last, offset=3),
        data2=lifted.view(nl.uint8).ap(pattern=last, offset=3), op=nl.add,
        engine=nisa.engine.gpsimd,
    )  # fmt: skip
    return digits


def on_scalar_engine(dst: Any, src: Any) -> None:
    """A copy by ScalarE."""
    nisa.activation(dst=dst, op=nl.copy, data=src)


def add(dst: Any, data1: Any, data2: Any) -> None:
    """A sum of int32, exact on GpSimdE."""
    nisa.tensor_tensor(dst=dst, data1=data1, data2=data2, op=nl.add, engine=nisa.engine.gpsimd)
