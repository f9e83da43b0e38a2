"""A tour of NKI 0.6: every memory, engine and way of indexing once, in small kernels.

memories       HBM (shared, private, plain), SBUF, PSUM, and the DMA between them
tensor_engine  nc_matmul in its three ways to accumulate, nc_transpose
vector_engine  tensor_tensor, tensor_scalar, tensor_reduce, reciprocal, nc_transpose, tensor_copy
scalar_engine  activation with bias, scale and running sums, tensor_scalar, tensor_copy
gpsimd_engine  iota, affine_select, exact integers, memset
indexing       int, slice, step, ds, ellipsis, a view of a view, reshape, view, ap
dynamic        rows and columns chosen by values that the device computes or loads
programs       program_id and num_programs: one kernel, one or two cores
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def memories(x):
    """2 * x + 0.5 by the longest way. x: (P, F) float32, P <= 128, F <= 512."""
    device = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
    private = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    bank = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.psum)
    constant = nl.full(x.shape, 0.5, dtype=nl.float32, buffer=nl.sbuf)
    result = nl.zeros(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

    nisa.dma_copy(dst=device, src=x)  # HBM to HBM
    nisa.dma_copy(dst=tile, src=device)  # HBM to SBUF
    nisa.dma_copy(dst=private, src=tile)  # SBUF to HBM
    nisa.dma_copy(dst=result, src=private)
    nisa.tensor_copy(dst=bank, src=tile)  # SBUF to PSUM; a DMA does not get there

    # A vector instruction reads at most one operand from PSUM.
    nisa.tensor_tensor(dst=result, data1=bank, data2=result, op=nl.add)
    nisa.tensor_tensor(dst=result, data1=result, data2=constant, op=nl.add)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def tensor_engine(w, x):
    """2 * w.T @ x, 3 * w.T @ x and w.T. w: (K, M), x: (K, N); K, M <= 128, N <= 512."""
    rows, height = w.shape
    width = x.shape[1]
    stationary = nl.ndarray((rows, height), dtype=w.dtype, buffer=nl.sbuf)
    moving = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=stationary, src=w)
    nisa.dma_copy(dst=moving, src=x)

    twice = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=twice, stationary=stationary, moving=moving, accumulate=False)
    nisa.nc_matmul(dst=twice, stationary=stationary, moving=moving, accumulate=True)

    # Left to itself, PSUM overwrites what no matmul has written yet and adds to the rest.
    thrice = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.psum)
    for _ in range(3):
        nisa.nc_matmul(dst=thrice, stationary=stationary, moving=moving)

    transposed = nl.ndarray((height, rows), dtype=w.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=transposed, data=stationary, engine=nisa.engine.tensor)

    return store(leave_psum(twice)), store(leave_psum(thrice)), store(leave_psum(transposed))


@nki.jit
def vector_engine(x, y):
    """1 / (1 - (x*y - max(x*y))) beside a column of zeros, and its first 32 x 32 transposed.

    x, y: (P, F) float32, 32 <= P <= 128, F >= 32.
    """
    height, width = x.shape
    a = load(x)
    b = load(y)
    product = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
    minus_max = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
    inverse = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
    result = nl.ndarray((height, width + 1), dtype=nl.float32, buffer=nl.sbuf)
    corner = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.sbuf)

    nisa.tensor_tensor(dst=product, data1=a, data2=b, op=nl.multiply, engine=nisa.engine.vector)
    nisa.tensor_reduce(dst=minus_max, op=nl.maximum, data=product, axis=1, negate=True)
    nisa.tensor_scalar(
        dst=product,
        data=product,
        op0=nl.add,
        operand0=minus_max,  # one number per partition
        op1=nl.subtract,
        operand1=1.0,  # one number for all
        reverse1=True,  # 1.0 - data, not data - 1.0
        engine=nisa.engine.vector,
    )
    nisa.reciprocal(dst=inverse, data=product)

    nisa.memset(dst=result, value=0.0, engine=nisa.engine.vector)
    nisa.tensor_copy(dst=result[:, 0:width], src=inverse, engine=nisa.engine.vector)
    nisa.nc_transpose(dst=corner, data=inverse[0:32, 0:32], engine=nisa.engine.vector)

    return store(result), store(corner)


@nki.jit
def scalar_engine(x):
    """2 * exp(x/2 + 1/4) + 1, and the rows' sums of exp(x/2 + 1/4). x: (P, F), F even."""
    height, width = x.shape
    half = width // 2
    tile = load(x)
    bias = nl.full((height, 1), 0.25, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((height, 1), dtype=nl.float32, buffer=nl.sbuf)
    result = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)
    copied = nl.ndarray((height, width), dtype=nl.float32, buffer=nl.sbuf)

    # The engine keeps a sum per partition between calls: start it, then go on.
    nisa.activation(
        dst=result[:, 0:half],
        op=nl.exp,
        data=tile[:, 0:half],
        bias=bias,
        scale=0.5,
        reduce_op=nl.add,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.activation(
        dst=result[:, half:width],
        op=nl.exp,
        data=tile[:, half:width],
        bias=bias,
        scale=0.5,
        reduce_op=nl.add,
        reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reduce,
    )

    nisa.tensor_scalar(
        dst=result,
        data=result,
        op0=nl.multiply,
        operand0=2.0,
        op1=nl.add,
        operand1=1.0,
        engine=nisa.engine.scalar,
    )
    nisa.tensor_copy(dst=copied, src=result, engine=nisa.engine.scalar)
    return store(copied), store(total)


@nki.jit
def gpsimd_engine(x):
    """2 * (2²⁴ + 1 + position) + 1 as int32, and x below its diagonal. x: (P, F)."""
    height, width = x.shape
    tile = load(x)
    count = nl.ndarray((height, width), dtype=nl.int32, buffer=nl.sbuf)
    one = nl.ndarray((height, width), dtype=nl.int32, buffer=nl.sbuf)
    copied = nl.ndarray((height, width), dtype=nl.int32, buffer=nl.sbuf)

    # 2²⁴ + 1 is the first integer that float32 cannot hold; this engine adds int32 exactly.
    nisa.iota(dst=count, pattern=[[1, width]], offset=2**24 + 1, channel_multiplier=width)
    nisa.memset(dst=one, value=1, engine=nisa.engine.gpsimd)
    nisa.tensor_tensor(dst=count, data1=count, data2=count, op=nl.add, engine=nisa.engine.gpsimd)
    nisa.tensor_tensor(dst=count, data1=count, data2=one, op=nl.add, engine=nisa.engine.gpsimd)
    nisa.tensor_copy(dst=copied, src=count, engine=nisa.engine.gpsimd)

    # Keep x[p, j] where p - j >= 0.
    nisa.affine_select(
        dst=tile,
        pattern=[[-1, width]],
        channel_multiplier=1,
        on_true_tile=tile,
        on_false_value=0.0,
        cmp_op=nl.greater_equal,
    )
    return store(copied), store(tile)


@nki.jit
def indexing(x):
    """Pieces of x side by side, each cut in another way. x: (4, 128, 64) float32."""
    assert x.shape[0] == 4 and x.shape[1] == 128 and x.shape[2] == 64
    tile = nl.ndarray((128, 4, 64), dtype=x.dtype, buffer=nl.sbuf)
    for block in range(4):
        nisa.dma_copy(dst=tile[:, block, :], src=x[block])  # an int drops its dimension

    pieces = nl.zeros((128, 456), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=pieces[:, 0:64], src=tile[:, 0, :])
    nisa.tensor_copy(dst=pieces[:, 64:96], src=tile[..., 0:64:2][:, 1, :])  # a view of a view
    nisa.tensor_copy(dst=pieces[:, nl.ds(96, 32)], src=tile[:, 2, nl.ds(16, 32)])
    nisa.tensor_copy(dst=pieces[:, 128:192], src=tile.reshape((128, 256))[:, 192:256])

    # ap: [step, count] pairs over the storage, partitions first (their step: a partition's
    # elements). Here the last axis runs over blocks 0 and 1, which interleaves them.
    interleaved = tile.ap(pattern=[[256, 128], [1, 64], [64, 2]], offset=0)
    nisa.tensor_copy(dst=pieces[:, 192:320], src=interleaved)
    # Here a step of 0 repeats element 5.
    repeated = tile.ap(pattern=[[256, 128], [0, 8]], offset=5)
    nisa.tensor_copy(dst=pieces[:, 384:392], src=repeated)

    # view: the same bytes as another dtype; without its sign bit a float is its magnitude.
    nisa.tensor_scalar(
        dst=pieces[:, 320:384].view(nl.uint32),
        data=tile[:, 0, :].view(nl.uint32),
        op0=nl.bitwise_and,
        operand0=0x7FFFFFFF,
    )

    # An int on the partition dimension keeps it; few partitions may start at 0, 32, 64 or 96.
    nisa.tensor_copy(dst=pieces[0, 392:456], src=tile[0, 1, :])
    nisa.tensor_copy(dst=pieces[96:128, 392:456], src=tile[96:128, 3, :])
    return store(pieces)


@nki.jit
def dynamic(table, rows, start):
    """Rows of a table, four rows and eight columns: all chosen at run time.

    table: (N, F); rows: (P, 1) int32, each below N; start: (1, 1) int32, at most N - 4 and F - 8.
    Returns table[rows] upside down (P, F), table[start:start+4] (4, F) and
    table[rows][:, start:start+8] (P, 8).
    """
    width = table.shape[1]
    height = rows.shape[0]
    index = load(rows)
    first = load(start)

    # vector_offset: a row number for each partition, to read,
    gathered = nl.ndarray((height, width), dtype=table.dtype, buffer=nl.sbuf)
    pattern = [[width, height], [1, width]]
    chosen = table.ap(pattern=pattern, offset=0, vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=gathered, src=chosen)

    # and to write; these numbers come from the device itself.
    upside_down = nl.ndarray((height, width), dtype=table.dtype, buffer=nl.shared_hbm)
    descending = nl.ndarray((height, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.iota(dst=descending, pattern=[[0, 1]], offset=height - 1, channel_multiplier=-1)
    target = upside_down.ap(pattern=pattern, offset=0, vector_offset=descending, indirect_dim=0)
    nisa.dma_copy(dst=target, src=gathered)

    # scalar_offset: one number moves the whole pattern, in HBM along rows,
    window = nl.ndarray((4, width), dtype=table.dtype, buffer=nl.sbuf)
    four_rows = table.ap(
        pattern=[[width, 4], [1, width]], offset=0, scalar_offset=first, indirect_dim=0
    )
    nisa.dma_copy(dst=window, src=four_rows)

    # and on chip along columns.
    columns = nl.ndarray((height, 8), dtype=table.dtype, buffer=nl.sbuf)
    eight_columns = gathered.ap(
        pattern=[[width, height], [1, 8]], offset=0, scalar_offset=first, indirect_dim=1
    )
    nisa.tensor_copy(dst=columns, src=eight_columns)

    return upside_down, store(window), store(columns)


@nki.jit
def programs(x):
    """-x, each program its share of the rows. x: (R, C); R a multiple of the programs."""
    rows, cols = x.shape
    share = rows // nl.num_programs(0)
    assert share * nl.num_programs(0) == rows, f"{rows} rows do not divide among the programs"
    begin = nl.program_id(0) * share
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)

    for start in range(0, share, nl.tile_size.pmax):
        height = min(nl.tile_size.pmax, share - start)
        mine = nl.ds(begin + start, height)
        tile = load(x[mine, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=-1.0)
        nisa.dma_copy(dst=out[mine, :], src=tile)
    return out


def load(source):
    """A new SBUF tile with a matrix of HBM, at most 128 rows."""
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    return tile


def store(tile):
    """A new output with an SBUF tile."""
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def leave_psum(bank):
    """A PSUM tile's copy in SBUF, from where a DMA can fetch it."""
    tile = nl.ndarray(bank.shape, dtype=bank.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=bank)
    return tile
