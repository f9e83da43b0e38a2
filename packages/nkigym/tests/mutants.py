"""Small changes to a tile program, most of which make it compute something else."""

from nkigym.tiles.program import ALLOCATE, LOAD, STORE, Reference, tile

SHIFTS = (-256, -128, -64, 64, 128, 256)


def mutants(program, random, number):
    """So many changed programs; the program itself is never among them."""
    kinds = list(KINDS)
    made = []
    while len(made) < number:
        changed = KINDS[random.choice(kinds)](list(program.statements), random)
        mutant = program._replace(statements=tuple(changed))
        if mutant != program:
            made.append(mutant)
    return made


def drop_last_store(lines, _):
    last = max(at for at, line in enumerate(lines) if line.operator == STORE)
    return [line for at, line in enumerate(lines) if at != last]


def drop_a_statement(lines, random):
    del lines[random.randrange(len(lines))]
    return lines


def repeat_a_statement(lines, random):
    at = random.randrange(len(lines))
    lines.insert(random.randrange(len(lines) + 1), lines[at])
    return lines


def exchange_statements(lines, random):
    i, j = (random.randrange(1, len(lines)) for _ in range(2))
    lines[i], lines[j] = lines[j], lines[i]
    return lines


def exchange_neighbours(lines, random):
    at = random.randrange(2, len(lines))
    lines[at - 1], lines[at] = lines[at], lines[at - 1]
    return lines


def swap_operands(lines, random):
    at = one_of(lines, random, lambda line: line.operator not in (LOAD, STORE, ALLOCATE))
    if len(lines[at].references) < 2:
        return lines
    (left, a), (right, b), *others = lines[at].arguments
    lines[at] = lines[at]._replace(arguments=((left, b), (right, a), *others))
    return lines


def drop_accumulator(lines, random):
    at = one_of(lines, random, lambda line: len(line.arguments) == 3)
    if at is not None:
        lines[at] = lines[at]._replace(arguments=lines[at].arguments[:2])
    return lines


def wrong_accumulator(lines, random):
    at = one_of(lines, random, lambda line: len(line.arguments) == 3)
    other = one_of(lines, random, lambda line: line.operator not in (LOAD, STORE, ALLOCATE))
    if at is not None:
        given = ("accumulator", tile(lines[other].output.name, 128, 128))
        lines[at] = lines[at]._replace(arguments=(*lines[at].arguments[:2], given))
    return lines


def shift_what_is_read(lines, random):
    at = one_of(lines, random, lambda line: line.operator != ALLOCATE)
    which = random.randrange(len(lines[at].references))  # attributes come last
    return replaced(lines, at, which, shifted(lines[at].arguments[which][1], random))


def reuse_unequal_loads(lines, random):
    i, j = (one_of(lines, random, lambda line: line.operator == LOAD) for _ in range(2))
    kept, gone = lines[i].output.name, lines[j].output.name
    if i == j:
        return lines
    return [
        line._replace(
            arguments=tuple(
                (name, given._replace(name=kept) if given in named(line, gone) else given)
                for name, given in line.arguments
            )
        )
        for at, line in enumerate(lines)
        if at != j
    ]


def named(line, name):
    """What the statement reads of a variable."""
    return [reference for reference in line.references if reference.name == name]


def another_variable(lines, random):
    at = one_of(lines, random, lambda line: line.operator not in (LOAD, ALLOCATE))
    which = 0 if lines[at].operator == STORE else random.randrange(len(lines[at].references))
    other = random.choice([line.output.name for line in lines[1:] if line.operator != STORE])
    return replaced(lines, at, which, lines[at].arguments[which][1]._replace(name=other))


def another_place(lines, random):
    i, j = (one_of(lines, random, lambda line: line.operator == STORE) for _ in range(2))
    return replaced(lines, i, 1, lines[j].arguments[1][1])


KINDS = {
    made.__name__: made
    for made in (
        drop_last_store, drop_a_statement, repeat_a_statement, exchange_statements,
        exchange_neighbours, swap_operands, drop_accumulator, wrong_accumulator,
        shift_what_is_read, reuse_unequal_loads,
        another_variable, another_place,
    )
}  # fmt: skip


def one_of(lines, random, fits):
    """The place of some statement that fits; None where there is none."""
    places = [at for at, line in enumerate(lines) if fits(line)]
    return random.choice(places) if places else None


def shifted(reference, random):
    axis, shift = random.randrange(2), random.choice(SHIFTS)
    intervals = tuple(
        (start + shift, stop + shift) if at == axis else (start, stop)
        for at, (start, stop) in enumerate(reference.intervals)
    )
    return reference._replace(intervals=intervals)


def replaced(lines, at, which, reference: Reference):
    """One argument changed; what a store writes stands twice."""
    arguments = tuple(
        (name, reference if place == which else given)
        for place, (name, given) in enumerate(lines[at].arguments)
    )
    lines[at] = lines[at]._replace(arguments=arguments)
    if lines[at].operator == STORE:
        lines[at] = lines[at]._replace(output=arguments[1][1])
    return lines
