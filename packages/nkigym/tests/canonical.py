"""Programs without names, order and numbering of tiles, from their statements: slow, on its own.

Values are walked from the stores, whose places have the same names in all programs; the value met
first is number 0. Loads without readers are counted by what they load.
"""

from itertools import permutations, product

from nkigym.tiles.program import ALLOCATE, LOAD, STORE

TILE = 128


def form(program):
    """The least of what exchanges of tiles along M and N make of a program of `A.T @ B`."""
    (_, (_, rows)), (_, (_, columns)) = program.parameters
    exchanges = product(permutations(range(rows // TILE)), permutations(range(columns // TILE)))
    forms = [walked(program, m, n) for m, n in exchanges]
    return min(form for form in forms if form is not None)


def walked(program, m, n):
    """The program as seen from its stores, tiles exchanged; None where an interval breaks."""
    lines = {s.output.name: s for s in program.statements if s.operator not in (ALLOCATE, STORE)}
    along = {"A": m, "B": n}
    numbers, said = {}, []
    try:
        stores = sorted(
            (moved(s.output.intervals[0], m), moved(s.output.intervals[1], n), s.references[0])
            for s in program.statements
            if s.operator == STORE
        )
        for row, column, read in stores:
            said.append((row, column, visit(read.name, lines, along, n, numbers, said)))
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


def visit(name, lines, along, n, numbers, said):
    """The number of a variable; what it is made of is said when it is first met.

    A call is said with the columns of the result that it computes, from where its moving tile was
    loaded, so that which of them a reader takes follows from where that stores them.
    """
    if name in numbers:
        return numbers[name]
    line = lines[name]
    if line.operator == LOAD:
        numbers[name] = len(numbers)
        said.append(loaded(line, along))
        return numbers[name]
    operands = [visit(r.name, lines, along, n, numbers, said) for r in line.references]
    moving = line.references[1]
    start = lines[moving.name].references[0].intervals[1][0]
    a, b = moving.intervals[1]
    numbers[name] = len(numbers)
    stationary = line.references[0]
    offset = lines[stationary.name].references[0].intervals[1][0]
    c, d = stationary.intervals[1]
    rows = moved((offset + c, offset + d), along["A"])
    said.append((rows, moved((start + a, start + b), n), operands))
    return numbers[name]


def loaded(line, along):
    source = line.references[0]
    return source.name, source.intervals[0], moved(source.intervals[1], along[source.name])


def moved(interval, to):
    start, stop = interval
    there = sorted(to[at] for at in range(start // TILE, stop // TILE))
    if there[-1] - there[0] + 1 != len(there):
        raise BrokenIntervalError
    return there[0], len(there)
