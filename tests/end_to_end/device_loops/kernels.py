"""Kernels of NKI 0.6 with loops of the device, in the forms that 0.7 removes."""

import nki
import nki.isa as nisa
import nki.language as nl


def row_of(x, index):
    """One row of a matrix of 8 columns, chosen on the device."""
    return x.ap([[8, 1], [1, 8]], scalar_offset=index, indirect_dim=0)


def number_at(numbers, index):
    """One number of a column, chosen on the device."""
    return numbers.ap([[1, 1], [1, 1]], scalar_offset=index, indirect_dim=0)


def loaded(cell):
    """A register with the number of a cell."""
    register = nisa.register_alloc()
    nisa.register_load(register, cell)
    return register


def to_sbuf(x):
    """A copy in SBUF."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def to_hbm(tile):
    """A copy that the kernel returns."""
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def sum_of_rows(x, count):
    total = nl.zeros((1, 8), dtype=nl.float32, buffer=nl.sbuf)
    last = loaded(to_sbuf(count))
    for i in nl.dynamic_range(last):  # as many rows as the data say
        row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=row_of(x, i))
        nisa.tensor_tensor(total, total, row, nl.add)
    return to_hbm(total)


@nki.jit
def every_second_row(x, first):
    out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    start = loaded(to_sbuf(first))
    for i in nl.dynamic_range(start, 7, 2):
        row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=row_of(x, i))
        nisa.tensor_scalar(row, row, nl.multiply, 2.0)
        nisa.dma_copy(dst=row_of(out, i), src=row)
    return out


@nki.jit
def gather_rows(x, indices):
    out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    index = nisa.register_alloc()
    cell = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    for i in nl.dynamic_range(start=0, stop=4):
        nisa.dma_copy(dst=cell, src=number_at(indices, i))
        nisa.register_load(index, cell)
        nisa.dma_copy(dst=row_of(out, i), src=row_of(x, index))
    return out


@nki.jit
def nested(x, lengths):
    """Row i is added lengths[i] times: the end of the inner loop is data of the outer one."""
    total = nl.zeros((1, 8), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.dynamic_range(4):
        row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=row_of(x, i))
        cell = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=cell, src=number_at(lengths, i))
        turns = nisa.register_alloc()
        nisa.register_load(turns, cell)
        for _ in nl.dynamic_range(turns):
            nisa.tensor_tensor(total, total, row, nl.add)
    return to_hbm(total)


@nki.jit
def triangle(x):
    """The inner loop ends at the outer variable, both choose rows."""
    total = nl.zeros((1, 8), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.dynamic_range(1, 5):
        weight = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=weight, src=row_of(x, i))
        for j in nl.dynamic_range(i):
            row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=row, src=row_of(x, j))
            nisa.tensor_tensor(row, row, weight, nl.multiply)
            nisa.tensor_tensor(total, total, row, nl.add)
    return to_hbm(total)


@nki.jit
def linked_list(x, following):
    """Where the next row is, the register carries from turn to turn."""
    total = nl.zeros((1, 8), dtype=nl.float32, buffer=nl.sbuf)
    place = nisa.register_alloc(0)
    cell = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    for _ in nl.dynamic_range(5):
        row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=row_of(x, place))
        nisa.tensor_tensor(total, total, row, nl.add)
        nisa.dma_copy(dst=cell, src=number_at(following, place))
        nisa.register_load(place, cell)
    end = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.register_store(end, place)
    return to_hbm(total), to_hbm(end)


@nki.jit
def carried_through_two_loops(x, following):
    place = nisa.register_alloc(1)
    cell = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    out = nl.ndarray((3, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in nl.dynamic_range(3):
        for _ in nl.dynamic_range(2):
            nisa.dma_copy(dst=cell, src=number_at(following, place))
            nisa.register_load(place, cell)
        nisa.dma_copy(dst=row_of(out, i), src=row_of(x, place))
    return out


@nki.jit
def halve_until_zero(start):
    """The condition is data; the register is read after the loop."""
    steps = nl.zeros((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    cell = to_sbuf(start)
    more = nisa.register_alloc()
    nisa.register_load(more, cell)
    while more:
        nisa.tensor_scalar(cell, cell, nl.right_shift, 1)
        nisa.tensor_scalar(steps, steps, nl.add, 1)
        nisa.register_load(more, cell)
    end = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.register_store(end, more)
    return to_hbm(steps), to_hbm(end)


@nki.jit
def while_in_for(counts):
    """A countdown for each of four numbers."""
    turns = nl.zeros((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    cell = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    more = nisa.register_alloc()
    for i in nl.dynamic_range(4):
        nisa.dma_copy(dst=cell, src=number_at(counts, i))
        nisa.register_load(more, cell)
        while more:
            nisa.tensor_scalar(turns, turns, nl.add, 1)
            nisa.tensor_scalar(cell, cell, nl.subtract, 1)
            nisa.register_load(more, cell)
    return to_hbm(turns)


@nki.jit
def for_in_while(x, counts):
    """The inner loop changes what the outer one waits for."""
    total = nl.zeros((1, 8), dtype=nl.float32, buffer=nl.sbuf)
    cell = to_sbuf(counts)
    more = nisa.register_alloc()
    nisa.register_load(more, cell)
    while more:
        for i in nl.dynamic_range(2):
            row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=row, src=row_of(x, i))
            nisa.tensor_tensor(total, total, row, nl.add)
            nisa.tensor_scalar(cell, cell, nl.subtract, 1)
            nisa.register_load(more, cell)
    return to_hbm(total)


@nki.jit
def last_row(x, count):
    """A tile of the body is used after the loop."""
    last = loaded(to_sbuf(count))
    for i in nl.dynamic_range(last):
        columns = 8
        row = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=row_of(x, i))
        nisa.tensor_scalar(row, row, nl.add, 1.0)
    return to_hbm(row)


@nki.jit
def last_of_inner(x):
    """A tile goes through both loops, filled anew in each turn."""
    for i in nl.dynamic_range(3):
        for j in nl.dynamic_range(2):
            both = nl.zeros((1, 8), dtype=nl.float32, buffer=nl.sbuf)
            row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=row, src=row_of(x, i))
            nisa.tensor_tensor(both, both, row, nl.add)
            nisa.dma_copy(dst=row, src=row_of(x, j))
            nisa.tensor_tensor(both, both, row, nl.add)
    return to_hbm(both)  # pyrefly: ignore


@nki.jit
def last_product(x):
    """A PSUM tile is used after the loop; each turn starts its own sum."""
    tile = to_sbuf(x)
    for i in nl.dynamic_range(3):
        acc = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)
        for k in range(2):
            nisa.nc_matmul(dst=acc, stationary=tile, moving=tile)
    result = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)  # pyrefly: ignore
    return to_hbm(result)


@nki.jit
def products(x):
    """A PSUM tile of each turn stays in the body."""
    tile = to_sbuf(x)
    total = nl.zeros((8, 8), dtype=nl.float32, buffer=nl.sbuf)
    for _ in nl.dynamic_range(3):
        acc = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=acc, stationary=tile, moving=tile)
        nisa.nc_matmul(dst=acc, stationary=tile, moving=tile)
        nisa.tensor_tensor(total, total, acc, nl.add)
    return to_hbm(total)


@nki.jit
def squares(x):
    """The variable goes into a tensor: it has to be a register."""
    out = nl.ndarray((8, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    cell = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    for i in nl.dynamic_range(8):
        nisa.register_store(cell, i)
        nisa.tensor_tensor(cell, cell, cell, nl.multiply)
        nisa.dma_copy(dst=number_at(out, i), src=cell)
    return out


def store_number(out, index):
    """A helper that uses its index as a register."""
    cell = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    copy = nisa.register_alloc()
    nisa.register_move(copy, index)
    nisa.register_store(cell, copy)
    nisa.dma_copy(dst=number_at(out, index), src=cell)


@nki.jit
def through_a_helper(x, count):
    out = nl.ndarray((8, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    for i in nl.dynamic_range(2, 6):
        store_number(out, i)
    for i in nl.dynamic_range(0, loaded(to_sbuf(count))): store_number(out, i)  # fmt: skip
    return out


@nki.jit
def loops_in_python_loops(x):
    """Each Python turn traces two device loops; the order of instructions is fixed in the body."""
    out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    for part in range(2):
        factor = 2.0 + part
        for i in nl.dynamic_range(4 * part, 4 * part + 4):
            row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
            with nl.no_reorder():
                nisa.dma_copy(dst=row, src=row_of(out, i))
                nisa.tensor_scalar(row, row, nl.multiply, factor)
                nisa.dma_copy(dst=row_of(out, i), src=row)
        for i in nl.dynamic_range(8):
            for k in range(4):
                if k == 2:
                    break
                row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
                nisa.dma_copy(dst=row, src=row_of(out, i))
                nisa.tensor_scalar(row, row, nl.add, 1.0 + k)
                nisa.dma_copy(dst=row_of(out, i), src=row)
    return out
