"""Random kernels through the reader: what is written again loses no order, at any size."""

import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from packages.tokenplan.tests.tile_ir.byte_enumeration import Enumeration, TooLongError
from packages.tokenplan.tests.tile_ir.bytecode_cases import lost
from packages.tokenplan.tests.tile_ir.random_bytecode import random_bytecode
from packages.tokenplan.tests.tile_ir.random_kernels import random_kernel

from tokenplan.tile_ir import bytecode, emit, explain_bytecode, orders_of
from tokenplan.tile_ir.bytecode.building import I32
from tokenplan.tile_ir.bytecode.types import DYNAMIC
from tokenplan.tile_ir.bytecode_report import reported

QUICK, ALL = 25, 500
FUNCTIONS, ALL_FUNCTIONS = 20, 2_000


def with_dynamic_loops(data):
    """The file in which the upper bound of every loop is a parameter; their number."""
    module = bytecode.read(data)
    (function,) = module.functions
    old = function.body.arguments
    count = sum(op.name == "for" for op in function.body.walk())
    bounds = [bytecode.Value(len(old) + n, I32) for n in range(count)]

    def value(found):
        return found if found in old else replace(found, number=found.number + count)

    def block(found, bounds):
        operations = tuple(map(partial(operation, bounds=bounds), found.operations))
        return bytecode.Block(tuple(map(value, found.arguments)), operations)

    def operation(op, bounds):
        operands = {name: tuple(map(value, values)) for name, values in op.operands.items()}
        if op.name == "for":
            operands["upper"] = (bounds.pop(0),)
        return replace(op, operands=operands, results=tuple(map(value, op.results)),
                       regions=tuple(block(region, bounds) for region in op.regions))  # fmt: skip

    body = replace(block(function.body, list(bounds)), arguments=(*old, *bounds))
    return bytecode.write(replace(module, functions=(replace(function, body=body),))), count


def missing(seed):
    """Orders that the rewritten kernel of a seed loses."""
    rng = random.Random(seed)
    described = random_kernel(seed, extended=True).described()
    groups = [a.alias_group for a in described.arrays]
    found = orders_of(described)
    data = bytecode.write(emit(described, found.kernel, found.kept))
    dynamic, count = with_dynamic_loops(data)
    sizes = (2**24,) * len(groups)
    for file, loops in ((data, 0), (dynamic, count)):
        _, new = explain_bytecode(file, unchecked=True)
        for _ in range(1 + 2 * bool(loops)):
            trips = [rng.choice((0, 0, 1, 2, 3)) for _ in range(loops)]
            block = tuple(rng.randrange(3) for _ in range(3))
            yield from (f"seed {seed}: {text}" for text in lost(new, trips, sizes, block))


def test_random_kernels_lose_no_order_through_the_reader():
    assert [text for seed in range(QUICK) for text in missing(seed)] == []


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_many_random_kernels_lose_no_order_through_the_reader():
    assert [text for seed in range(ALL) for text in missing(seed)] == []


def lost_by(data, scalars, loaded, may_alias):
    (found,) = bytecode.read(data).functions
    return list(Enumeration(found, scalars, loaded).lost(may_alias))


def keeps_elements_disjoint(function, stride):
    """Whether the elements of every view are different bytes, where its parameter is `stride`."""
    numbers = {function.body.arguments[-1]: stride}
    for op in function.body.operations:
        if op.name == "constant":
            numbers[op.results[0]] = int.from_bytes(op.attributes["value"], "little")
        elif op.name == "assume":
            numbers[op.results[0]] = numbers.get(*op.inputs)
        elif op.name == "make_tensor_view":
            kind = op.results[0].type
            shape, strides = (
                [numbers[next(given)] if n == DYNAMIC else n for n in kind[name]]
                for name in ("shape", "strides") for given in [iter(op.operands[name])]
            )  # fmt: skip
            elements = np.tensordot(strides, np.indices(shape), 1)
            if DYNAMIC in kind["strides"] and np.unique(elements).size < elements.size:
                return False
    return True


def missing_of_function(seed, carries_addresses=False):
    """Orders that the rewritten function of a seed loses, or that the checker says it would."""
    data, rng = random_bytecode(seed, carries_addresses), random.Random(seed)
    pair, others = ("p0", "p1"), [("p0", "p2"), ("p1", "p2")]
    may_alias = [pair] if rng.random() < 0.3 else []
    distinct = others if may_alias else [pair, *others]
    new = reported(data, unchecked=True, may_alias=may_alias, distinct=distinct)
    if new.contradicted:
        yield f"seed {seed}: {new.text.splitlines()[-1]}"
    (function,) = bytecode.read(data).functions
    limits = [n for n in (7, 200, 2**20) if f"Bounded(low=1, high={n})" in str(function)]
    strides = [n for n in (1, 2, 5, 7, 64, 128, 1000) if n <= min(limits, default=n)]
    if "different elements of" in new.text:
        strides = [n for n in strides if keeps_elements_disjoint(function, n)]
    if not strides:
        return
    for _ in range(4):
        scalars = [rng.choice((0, 1, 3, 6)), rng.choice((-2, 1, 2)), rng.choice(strides)]
        loaded = rng.choice(((0,), (1,), (2, 0, 1), (0, 3)))
        aliases = [(0, 1)] * len(may_alias)
        try:
            if lost_by(data, scalars, loaded, aliases):
                continue  # a load for a bound or a condition is not in the chain of tokens
            found = lost_by(new.data, scalars, loaded, aliases)
        except TooLongError:
            continue
        yield from (f"seed {seed}: {scalars} {loaded} {pair}" for pair in found)


BOTH = pytest.mark.parametrize("carries_addresses", [False, True])


@BOTH
def test_random_functions_lose_no_order_through_the_reader(carries_addresses):
    assert [text for seed in range(FUNCTIONS)
            for text in missing_of_function(seed, carries_addresses)] == []  # fmt: skip


@BOTH
@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_many_random_functions_lose_no_order_through_the_reader(carries_addresses):
    assert [text for seed in range(ALL_FUNCTIONS)
            for text in missing_of_function(seed, carries_addresses)] == []  # fmt: skip
