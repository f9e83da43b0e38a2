"""Random kernels through the reader: what is written again loses no order, at any size."""

import random
from dataclasses import replace
from functools import partial

import pytest
from packages.tokenplan.tests.tile_ir.bytecode_cases import lost
from packages.tokenplan.tests.tile_ir.random_kernels import random_kernel

from tokenplan.tile_ir import bytecode, emit, explain_bytecode, orders_of
from tokenplan.tile_ir.bytecode.building import I32

QUICK, ALL = 25, 500


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
        _, new = explain_bytecode(file)
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
