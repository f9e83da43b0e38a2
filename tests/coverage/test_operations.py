"""Operations of `op=` arguments by version: every name, every instruction that takes one.

What a version has is what the carried names say (nki_names.json), not the machine's own table.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from nki_coverage import known_names, modules_of

from neuroncore.activations import ACTIVATIONS, Activation
from neuroncore.alu import ALU_OPS, AVERAGE, BYPASS, AluOp
from neuroncore.errors import AbsentNameError, KernelError
from neuroncore.instructions import INSTRUCTIONS, Instruction
from neuroncore.instructions._limits import check
from neuroncore.isa.examples import Use, example_call
from neuroncore.surface import VERSIONS, signature, version_tuple

NAMED = {n.name: n.versions[0] for n in known_names() if n.module == "nki.language"}
OPERATIONS = {**ALU_OPS, **ACTIVATIONS, BYPASS.name: BYPASS, AVERAGE.name: AVERAGE}
NO_NAME = {"identity"}
"""In no version's names; the language guide has it as the activation that nl.copy is."""
AS_ALU = {"square": "0.4", "relu": "0.4"}
"""ScalarE's functions in every version, and new opcodes of the ALU [NKI 0.4: release notes]."""


def first_version(op: Any) -> str:
    """The first version that takes an operation, as an ALU's where it is one."""
    later = AS_ALU if isinstance(op, AluOp) else {}
    return later.get(op.name, NAMED.get(op.name, VERSIONS[0]))


def test_the_names_say_of_every_operation_when_it_came():
    assert OPERATIONS.keys() - NAMED.keys() == NO_NAME
    assert AS_ALU.keys() <= NAMED.keys()
    assert {n for n in OPERATIONS if n in NAMED and NAMED[n] > "0.3"} == {
        "abs_max", "abs_min", "prelu", "bypass", "average",
    }  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_version_has_the_names_of_its_operations_and_no_others(version):
    nl = modules_of(version)["nki.language"]
    later = {name for name in OPERATIONS.keys() - NO_NAME if NAMED[name] > version}

    assert {name for name in OPERATIONS if not hasattr(nl, name)} == later
    for name in later:
        with pytest.raises(AbsentNameError, match=f"{name} is not part of NKI {version}"):
            getattr(nl, name)


def taking_operations() -> Iterator[tuple[Instruction, str]]:
    """Instructions and their attributes that hold an operation."""
    for record in INSTRUCTIONS.values():
        for name, attr in record.attrs.items():
            taken = (_converted(attr.convert, op) for op in ("add", "exp"))
            if any(isinstance(value, (AluOp, Activation)) for value in taken):
                yield record, name


def _converted(convert: Any, given: str) -> Any:
    try:
        return convert(given)
    except (KernelError, ValueError):
        return None


TAKING = list(taking_operations())


def test_the_attributes_are_found():
    assert {(r.name, a) for r, a in TAKING} >= {
        ("tensor_scalar", "op0"), ("tensor_scalar", "op1"), ("tensor_tensor", "op"),
        ("activation", "op"), ("activate2", "op"), ("activate2", "op0"), ("activate2", "reduce_op"),
        ("tensor_reduce", "op"), ("tensor_partition_reduce", "op"), ("dma_compute", "reduce_op"),
        ("select_reduce", "reduce_op"), ("affine_select", "cmp_op"),
    }  # fmt: skip


def uses(record: Instruction, attr: str, op: str, version: str) -> Iterator[Use]:
    """Calls on gen4, which has every operation: the record's examples with one in place."""
    settings = {"target": "trn3", "version": version_tuple(version)}
    numbers = ({}, {attr.replace("op", "operand"): None}, {attr.replace("op", "operand"): 0.0})
    for example in record.examples:
        for number in numbers:
            if number.keys() <= record.operands.keys():
                try:
                    yield example_call(record, example, **settings, **{attr: op}, **number)
                except KernelError:
                    return  # no operation of this attribute


def is_taken(use: Use) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return not check(use.call)


PAIRS = [
    pytest.param(record, attr, op, id=f"{record.name}-{attr}-{op}")
    for record, attr in TAKING
    for op in OPERATIONS
]


@pytest.mark.parametrize(("record", "attr", "op"), PAIRS)
def test_an_operation_is_rejected_before_the_version_that_added_it(record, attr, op):
    having = [v for v in VERSIONS if signature(record.name, v) is not None]

    for version in having:
        for use in uses(record, attr, op, version):
            if first_version(use.call.attrs[attr]) > version:
                assert not is_taken(use), f"{use.call} in NKI {version}"


def test_operations_that_came_later_are_taken_from_their_version_on():
    came = set()
    for record, attr in TAKING:
        for op in OPERATIONS:
            for use in uses(record, attr, op, "0.6"):
                first = first_version(use.call.attrs[attr])
                if first > "0.2" and is_taken(use):
                    came.add((record.name, attr, op))
                    assert is_taken(replace(use, call=_in(use, max(first, _since(record)))))

    assert {op for _, _, op in came} == {
        "abs_max", "abs_min", "square", "relu", "bypass", "average", "prelu",
    }  # fmt: skip
    assert {(n, a) for n, a, op in came if op == "abs_max"} >= {
        ("tensor_scalar", "op0"), ("tensor_scalar", "op1"), ("tensor_tensor", "op"),
        ("scalar_tensor_tensor", "op0"), ("tensor_tensor_scan", "op1"),
    }  # fmt: skip


def _since(record: Instruction) -> str:
    return next(v for v in VERSIONS if signature(record.name, v) is not None)


def _in(use: Use, version: str) -> Any:
    call = use.call
    return type(call)(
        call.record, call.specs, call.attrs, call.target, call.options, version_tuple(version)
    )
