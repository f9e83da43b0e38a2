"""The table of signatures against call sites as kernels of each version write them."""

from __future__ import annotations

import inspect

import pytest

from neuroncore.enums import DgeMode, Engine, MatmulPerfMode, OobMode, ReduceCmd
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.functions import make_function
from neuroncore.surface import VERSIONS, instruction_names, signature, version_tuple
from neuroncore.surface._read import _parse

# How the documents' examples and public kernels of a version call an instruction: what each
# positional argument means.
CALL_SITES = [
    ("0.1", "activation", "op data"),
    ("0.1", "affine_select", "pred on_true_tile on_false_value"),
    ("0.1", "iota", "expr dtype"),
    ("0.1", "memset", "shape value dtype"),
    ("0.1", "nc_matmul", "stationary moving"),
    ("0.1", "nc_transpose", "data"),
    ("0.1", "reciprocal", "data"),
    ("0.1", "tensor_copy", "src"),
    ("0.1", "tensor_reduce", "op data axis"),
    ("0.1", "tensor_scalar", "data op0 operand0 reverse0 op1 operand1"),
    ("0.1", "tensor_tensor", "data1 data2 op"),
    ("0.2", "affine_select", "dst pattern offset channel_multiplier on_true_tile on_false_value"),
    ("0.2", "dma_copy", "dst src dst_rmw_op oob_mode dge_mode unique_indices"),
    ("0.2", "iota", "dst pattern offset channel_multiplier"),
    ("0.2", "nc_matmul", "dst stationary moving is_stationary_onezero is_moving_onezero "
     "is_transpose tile_position"),
    ("0.3", "affine_select", "dst pattern channel_multiplier on_true_tile on_false_value cmp_op "
     "offset"),
    ("0.3", "dma_copy", "dst src oob_mode dge_mode engine"),
    ("0.3", "nc_matmul", "dst stationary moving is_stationary_onezero is_moving_onezero "
     "is_transpose accumulate tile_position"),
    ("0.4", "dma_copy", "dst src priority oob_mode dge_mode engine"),
    ("0.6", "activation", "dst op data bias scale reduce_op reduce_res reduce_cmd"),
    ("0.6", "dma_copy", "dst src priority oob_mode dge_mode engine"),
    ("0.6", "iota", "dst pattern offset channel_multiplier"),
    ("0.6", "memset", "dst value engine"),
    ("0.6", "nc_matmul", "dst stationary moving"),
    ("0.6", "nc_transpose", "dst data engine"),
    ("0.6", "reciprocal", "dst data"),
    ("0.6", "tensor_copy", "dst src engine"),
    ("0.6", "tensor_reduce", "dst op data axis negate keepdims"),
    ("0.6", "tensor_scalar", "dst data op0 operand0 reverse0 op1 operand1 reverse1 engine"),
    ("0.6", "tensor_tensor", "dst data1 data2 op engine"),
]  # fmt: skip

DEFAULTS = [
    ("0.6", "activation", "reduce_cmd", ReduceCmd.idle),
    ("0.6", "activation", "scale", 1.0),
    ("0.6", "affine_select", "cmp_op", "equal"),
    ("0.6", "affine_select", "offset", 0),
    ("0.6", "dma_copy", "dge_mode", DgeMode.unknown),
    ("0.6", "dma_copy", "oob_mode", OobMode.error),
    ("0.6", "nc_matmul", "accumulate", None),
    ("0.6", "nc_matmul", "perf_mode", MatmulPerfMode.none),
    ("0.6", "tensor_scalar", "engine", Engine.unknown),
    ("0.2", "dma_copy", "unique_indices", True),
]


@pytest.mark.parametrize(("version", "name", "meaning"), CALL_SITES)
def test_positional_arguments_mean_what_kernels_mean(version, name, meaning):
    found = signature(name, version)

    assert found is not None
    positional = [p.name for p in found.params if not p.keyword_only]
    assert positional[: len(meaning.split())] == meaning.split()


@pytest.mark.parametrize(("version", "name", "parameter", "default"), DEFAULTS)
def test_defaults(version, name, parameter, default):
    found = signature(name, version)

    assert found is not None
    assert {p.name: p.default for p in found.params}[parameter] == default


def test_the_parameters_that_versions_added_and_dropped():
    def has(name, parameter):
        found = {v: signature(name, v) for v in VERSIONS}
        return [v for v, s in found.items() if s and parameter in {p.name for p in s.params}]

    assert has("tensor_copy", "mask") == ["0.1"]
    assert has("tensor_copy", "name") == list(VERSIONS[1:])
    assert has("dma_copy", "dst_rmw_op") == ["0.1", "0.2"]
    assert has("dma_copy", "priority") == list(VERSIONS[3:])
    assert has("nc_matmul", "accumulate") == list(VERSIONS[2:])
    assert has("nc_matmul", "perf_mode") == list(VERSIONS)


def test_an_instruction_that_a_version_lacks_has_no_signature():
    assert signature("no_such_instruction", "0.6") is None


@pytest.mark.parametrize("version", VERSIONS)
def test_every_name_of_a_version_has_a_record_and_its_required_operands(version):
    for name in instruction_names(version):
        record, found = INSTRUCTIONS[name], signature(name, version)
        assert found is not None
        if version_tuple(version) >= (0, 2):
            fields = {p.field for p in found.params}
            required = {n for n, o in record.operands.items() if not o.optional}
            returned = {"dst"} if name == "scalar_load" else set()
            assert required - returned <= fields, name


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_functions_show_the_signature_of_their_version(version):
    for name in instruction_names(version):
        found = signature(name, version)
        assert found is not None
        function = make_function(INSTRUCTIONS[name], found)
        shown = inspect.signature(function)
        assert list(shown.parameters) == [p.name for p in found.params]
        assert function.__doc__
        assert function.__name__ == name


def test_a_line_of_the_table_reads_as_it_stands():
    first, second = _parse("f 0.5-0.6 (dst, given:field=None, *, mode=oob_mode.skip, **kwargs)")

    assert (first.version, second.version) == ("0.5", "0.6")
    assert [(p.name, p.field, p.keyword_only) for p in first.params] == [
        ("dst", "dst", False),
        ("given", "field", False),
        ("mode", "mode", True),
    ]
    assert first.params[0].required
    assert first.params[2].default is OobMode.skip
    assert first.swallows


@pytest.mark.parametrize("line", ["f (dst)", "f 0.6 dst", "f 0.6 (dst-src)"])
def test_an_unreadable_line_is_our_mistake(line):
    with pytest.raises(AssertionError, match=r"isa\.txt: cannot read"):
        _parse(line)
