"""Opportunities on flat statements, written from the rules alone: slow, and on its own.

An opportunity is (kind, first, second) with positions in the statement list. `[a, b)` intervals
touch where the end of one is the start of the other.
"""

from nkigym.tiles.program import LOAD, STORE, Reference, Statement

LIMITS = {"nc_matmul": {"K": 128, "M": 128, "N": 512}}
AXES = {"nc_matmul": {"stationary": "KM", "moving": "KN", "accumulator": "MN", "result": "MN"}}
MOST_ROWS = 128


def opportunities(program):
    """Reuse pairs, load merges, compute merges, store merges."""
    lines = program.statements
    return [
        *(("reuse", *pair) for pair in reuse_pairs(lines)),
        *(("merge loads", *pair) for pair in load_merges(lines)),
        *(("merge calls", *pair) for pair in call_merges(lines)),
        *(("merge stores", *pair) for pair in store_merges(lines)),
    ]


def applied(program, opportunity):
    """The program after one opportunity."""
    kind, *pair = opportunity
    return program._replace(statements=tuple(_APPLY[kind](list(program.statements), *pair)))


# -- listing ---------------------------------------------------------------------------------------


def reuse_pairs(lines):
    groups = {}
    for at, line in enumerate(lines):
        if line.operator == LOAD:
            source = line.references[0]
            groups.setdefault((source.name, source.intervals), []).append(at)
    return [
        (group[i], group[j])
        for group in groups.values()
        for i in range(len(group))
        for j in range(i + 1, len(group))
    ]


def load_merges(lines):
    groups = {}
    for at, line in enumerate(lines):
        if line.operator == LOAD:
            source = line.references[0]
            groups.setdefault((source.name, source.intervals[0]), []).append(at)

    def columns(at):
        return lines[at].references[0].intervals[1]

    found = []
    for group in groups.values():
        ordered = sorted(group, key=lambda at: columns(at)[0])
        found += walked_twice(ordered, lambda i, j: touch(columns(i), columns(j)))
    return found


def call_merges(lines):
    by_operator = {}
    for at, line in enumerate(lines):
        if line.operator in LIMITS:
            by_operator.setdefault(line.operator, []).append(at)
    loads = {line.output.name: line.references[0] for line in lines if line.operator == LOAD}
    return [
        pair
        for calls in by_operator.values()
        for pair in walked_twice(calls, lambda i, j: one_call(lines[i], lines[j], loads))
    ]


def one_call(one, other, loads):
    if len(one.references) != len(other.references) or attributes(one) != attributes(other):
        return False
    differ = [
        (name, a, b)
        for (name, a), (_, b) in zip(tensors(one), tensors(other), strict=True)
        if signature(a, loads) != signature(b, loads)
    ]
    if len(differ) != 1:
        return False
    name, a, b = differ[0]
    axes = axes_that_differ(a.intervals, b.intervals)
    if a.name != b.name or len(axes) != 1:
        return False
    axis = axes[0]
    letter = AXES[one.operator][name][axis]
    if letter not in AXES[one.operator]["result"]:
        return False
    start, stop = united(a.intervals[axis], b.intervals[axis])
    fits = stop - start <= LIMITS[one.operator][letter]
    return touch(a.intervals[axis], b.intervals[axis]) and fits


def signature(reference, loads):
    from_zero = all(start == 0 for start, _ in reference.intervals)
    if from_zero and reference.name in loads:
        source = loads[reference.name]
        return source.name, source.intervals
    return reference.name if from_zero else (reference.name, reference.intervals)


def store_merges(lines):
    stores = [at for at, line in enumerate(lines) if line.operator == STORE]

    def fit(i, j):
        (read, written), (read_too, written_too) = lines[i].references, lines[j].references
        if read.name != read_too.name:
            return False
        axes = axes_that_differ(written.intervals, written_too.intervals)
        read_axes = axes_that_differ(read.intervals, read_too.intervals)
        if len(axes) != 1 or len(read_axes) != 1:
            return False
        one, other = written.intervals[axes[0]], written_too.intervals[axes[0]]
        read_one, read_other = read.intervals[read_axes[0]], read_too.intervals[read_axes[0]]
        start, stop = united(one, other)
        rows_fit = axes[0] != 0 or stop - start <= MOST_ROWS
        return touch(one, other) and touch(read_one, read_other) and rows_fit

    return walked_twice(stores, fit)


def walked_twice(members, fits):
    used = set()
    found = []
    for at, i in enumerate(members):
        if i in used:
            continue
        for j in members[at + 1 :]:
            if j not in used and fits(i, j):
                found.append((i, j))
                used |= {i, j}
                break
    return found


# -- applying --------------------------------------------------------------------------------------


def reuse(lines, i, j):
    kept, gone = lines[i].output.name, lines[j].output.name
    del lines[j]
    return [moved(line, {gone: (kept, None, 0)}) for line in lines]


def merge_loads(lines, i, j):
    i, j = sorted((i, j))
    source, other = lines[i].references[0], lines[j].references[0]
    columns = united(source.intervals[1], other.intervals[1])
    where = source._replace(intervals=(source.intervals[0], columns))
    name, gone = lines[i].output.name, lines[j].output.name
    lines[i] = Statement(LOAD, (("src", where),), whole(name, where.intervals))
    del lines[j]
    shifts = {
        name: (name, 1, source.intervals[1][0] - columns[0]),
        gone: (name, 1, other.intervals[1][0] - columns[0]),
    }
    return [moved(line, shifts) for line in lines]


def merge_calls(lines, i, j):
    one, other = lines[i], lines[j]
    loads = {line.output.name: line.references[0] for line in lines if line.operator == LOAD}
    name, a, b = next(
        (name, a, b)
        for (name, a), (_, b) in zip(tensors(one), tensors(other), strict=True)
        if signature(a, loads) != signature(b, loads)
    )
    axis = axes_that_differ(a.intervals, b.intervals)[0]
    both = united(a.intervals[axis], b.intervals[axis])
    intervals = put(a.intervals, axis, both)
    wide = Reference(a.name, extents(intervals), intervals)
    letter = AXES[one.operator][name][axis]
    out_axis = AXES[one.operator]["result"].index(letter)
    result = put(one.output.intervals, out_axis, (0, both[1] - both[0]))
    arguments = tuple((n, wide if n == name else given) for n, given in one.arguments)
    kept, gone = one.output.name, other.output.name
    lines[i] = Statement(one.operator, arguments, whole(kept, result))
    shifts = {
        kept: (kept, out_axis, a.intervals[axis][0] - both[0]),
        gone: (kept, out_axis, b.intervals[axis][0] - both[0]),
    }
    return [line if at == i else moved(line, shifts) for at, line in enumerate(lines) if at != j]


def merge_stores(lines, i, j):
    (read, written), (read_too, written_too) = lines[i].references, lines[j].references
    axis = axes_that_differ(written.intervals, written_too.intervals)[0]
    read_axis = axes_that_differ(read.intervals, read_too.intervals)[0]
    both = united(written.intervals[axis], written_too.intervals[axis])
    where = written._replace(intervals=put(written.intervals, axis, both))
    start = min(read.intervals[read_axis][0], read_too.intervals[read_axis][0])
    intervals = put(read.intervals, read_axis, (start, start + both[1] - both[0]))
    source = Reference(read.name, extents(intervals), intervals)
    lines[i] = Statement(STORE, (("src", source), ("dst", where)), where)
    del lines[j]
    return lines


_APPLY = {
    "reuse": reuse,
    "merge loads": merge_loads,
    "merge calls": merge_calls,
    "merge stores": merge_stores,
}


def moved(line, places):
    """The statement with every reference to a moved variable where it is now."""
    arguments = tuple(
        (name, shifted(given, places) if isinstance(given, Reference) else given)
        for name, given in line.arguments
    )
    return line._replace(arguments=arguments)


def shifted(reference, places):
    if reference.name not in places:
        return reference
    name, axis, shift = places[reference.name]
    intervals = reference.intervals
    if axis is not None:
        start, stop = intervals[axis]
        intervals = put(intervals, axis, (start + shift, stop + shift))
    return Reference(name, reference.shape, intervals)


# -- intervals -------------------------------------------------------------------------------------


def touch(one, other):
    return one[1] == other[0] or other[1] == one[0]


def united(one, other):
    return min(one[0], other[0]), max(one[1], other[1])


def put(intervals, axis, interval):
    return tuple(interval if at == axis else old for at, old in enumerate(intervals))


def axes_that_differ(one, other):
    return [axis for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def extents(intervals):
    return tuple(stop - start for start, stop in intervals)


def whole(name, intervals):
    shape = extents(intervals)
    return Reference(name, shape, tuple((0, extent) for extent in shape))


def tensors(line):
    return [(name, given) for name, given in line.arguments if isinstance(given, Reference)]


def attributes(line):
    return [(name, given) for name, given in line.arguments if not isinstance(given, Reference)]
