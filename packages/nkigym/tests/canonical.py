"""Programs without names, order and numbering of tiles, from their statements: slow, on its own.

Values are walked from the stores, whose places have the same names in all programs; the value met
first is number 0. Loads without readers are counted by what they load.
"""

from itertools import permutations, product

from nkigym.tiles.program import ALLOCATE, LOAD, STORE

TILE = 128


def form(program):
    """The least of what exchanges of tiles make of a program of `A.T @ B`, or of A and B alone.

    In `A.T @ B`, M and N are the columns of A and of B; else rows and columns of both.
    """
    rows, columns = next(iter(program.outputs.values()))
    exchanges = product(permutations(range(rows // TILE)), permutations(range(columns // TILE)))
    forms = [walked(program, m, n) for m, n in exchanges]
    return min(form for form in forms if form is not None)


def walked(program, m, n):
    """The program as seen from its stores, tiles exchanged; None where an interval breaks."""
    lines = {s.output.name: s for s in program.statements if s.operator not in (ALLOCATE, STORE)}
    contracts = any(line.operator == "nc_matmul" for line in lines.values())
    along = {"A": (None, m), "B": (None, n)} if contracts else {"A": (m, n), "B": (m, n)}
    numbers, said = {}, []
    try:
        stores = sorted(
            (s.output.name, *places(s.output.intervals, (m, n)), s.references[0])
            for s in program.statements
            if s.operator == STORE
        )
        for output, row, column, read in stores:
            said.append((output, row, column, visit(read.name, lines, along, numbers, said)))
        dead = sorted(
            loaded(line, along)
            for name, line in lines.items()
            if line.operator == LOAD and name not in numbers
        )
    except BrokenIntervalError:
        return None
    return repr((said, dead))


class BrokenIntervalError(Exception):
    pass


def visit(name, lines, along, numbers, said):
    """The number of a variable; what it is made of is said when it is first met.

    A call is said with the parts of the loads that it reads, so that which of its columns a reader
    takes follows from where that stores them.
    """
    if name in numbers:
        return numbers[name]
    line = lines[name]
    if line.operator == LOAD:
        numbers[name] = len(numbers)
        said.append(loaded(line, along))
        return numbers[name]
    operands = [visit(r.name, lines, along, numbers, said) for r in line.references]
    numbers[name] = len(numbers)
    parts = [part(r, lines[r.name], along) for r in line.references if r.name in lines]
    said.append((line.operator, line.attributes, parts, operands))
    return numbers[name]


def part(reference, line, along):
    """The part of a parameter that a call reads of a load; None for another variable."""
    if line.operator != LOAD:
        return None
    (source,) = line.references
    (row, _), (column, _) = source.intervals
    rows, columns = reference.intervals
    shifted = (row + rows[0], row + rows[1]), (column + columns[0], column + columns[1])
    return source.name, *places(shifted, along[source.name])


def loaded(line, along):
    source = line.references[0]
    return source.name, *places(source.intervals, along[source.name])


def places(intervals, exchanges):
    return [moved(interval, to) for interval, to in zip(intervals, exchanges, strict=True)]


def moved(interval, to):
    """Where the tiles of an interval are after an exchange; as they are, without one."""
    if to is None:
        return interval
    start, stop = interval
    there = sorted(to[at] for at in range(start // TILE, stop // TILE))
    if there[-1] - there[0] + 1 != len(there):
        raise BrokenIntervalError
    return there[0], len(there)
