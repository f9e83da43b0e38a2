"""The language as a backend: its modules, and the names it rejects."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from neuroncore.errors import LaunchError, UnsupportedError
from neuroncore.machine.backend import Backend, Choice
from neuroncore.surface import instruction_names
from nki_beta1 import BACKEND, nki, nl

CHOICE = Choice("beta1", "0.1")
PUBLIC_NAMES = tomllib.loads((Path(__file__).parents[1] / "public_names.toml").read_text())


def test_it_is_a_backend():
    assert isinstance(BACKEND, Backend)
    assert (BACKEND.name, BACKEND.versions, BACKEND.default_version) == ("beta1", ("0.1",), "0.1")
    assert BACKEND.top_level == "neuronxcc.nki"


def test_the_same_choice_gives_the_same_modules():
    first, second = BACKEND.modules(CHOICE), BACKEND.modules(Choice("beta1", "0.1"))

    assert all(first[name] is second[name] for name in first)
    assert {"neuronxcc", "neuronxcc.nki", "neuronxcc.nki.language", "neuronxcc.nki.isa",
            "neuronxcc.nki.isa.constants", "neuronxcc.nki.typing",
            "neuronxcc.nki.compiler"} == set(first)  # fmt: skip
    other = BACKEND.modules(Choice("beta1", "0.1", "trn1"))
    assert other["neuronxcc.nki"] is not first["neuronxcc.nki"]


def test_children_are_attributes_of_their_parents():
    modules = BACKEND.modules(CHOICE)

    assert modules["neuronxcc"].nki is modules["neuronxcc.nki"]
    for child in ("language", "isa", "typing", "compiler"):
        assert getattr(modules["neuronxcc.nki"], child) is modules[f"neuronxcc.nki.{child}"]


@pytest.mark.parametrize(("module", "short"), [("language", "nl"), ("isa", "nisa")])
def test_every_public_name_is_there_or_rejected_by_name(module, short):
    found = BACKEND.modules(CHOICE)[f"neuronxcc.nki.{module}"]

    names, there = PUBLIC_NAMES[module].split(), []
    for name in names:
        try:
            there.append(getattr(found, name))
        except UnsupportedError as rejected:
            assert f"{short}.{name} (NKI 0.1) is not modelled yet" in str(rejected)
    assert len(there) >= 0.9 * len(names) > 20


def test_a_rejection_names_the_function_and_the_reason():
    with pytest.raises(UnsupportedError) as caught:
        nl.gemm_grid  # noqa: B018

    assert "nl.gemm_grid (NKI 0.1) is not modelled yet" in str(caught.value)
    assert str(caught.value).startswith(__file__)
    with pytest.raises(AttributeError, match=r"of NKI 0\.1 has no attribute 'no_such_thing'"):
        nl.no_such_thing  # noqa: B018
    assert not hasattr(nl, "__wrapped__")


def test_trace_may_be_imported_but_not_called():
    trace = BACKEND.modules(CHOICE)["neuronxcc.nki"].trace

    with pytest.raises(UnsupportedError, match=r"nki\.trace \(NKI 0\.1\) is not modelled yet"):
        trace(lambda x: x)


def test_every_instruction_of_0_1_that_the_machine_has_is_offered():
    from neuroncore.instructions import INSTRUCTIONS

    isa = BACKEND.modules(CHOICE)["neuronxcc.nki.isa"]
    names = instruction_names("0.1")

    assert {"nc_matmul", "activation", "dma_copy"} <= set(names) <= set(INSTRUCTIONS)
    assert [name for name in names if not callable(vars(isa).get(name))] == []


def test_hints_to_the_compiler_change_nothing():
    compiler = BACKEND.modules(CHOICE)["neuronxcc.nki.compiler"]

    @nki.jit
    @compiler.enable_stack_allocator
    @compiler.skip_middle_end_transformations
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        with compiler.no_reorder():
            nl.store(out, value=nl.load(x) * 2)
        return out

    np.testing.assert_array_equal(kernel(np.ones((4, 4), np.float32)), 2.0)
    for hint in ("skip_middle_end_transformations", "enable_stack_allocator"):
        assert getattr(compiler, hint)(instruction_names) is instruction_names


def test_simulate_runs_kernels_and_functions_under_a_choice():
    def twice(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=nl.load(x) * 2)
        return out

    x = np.ones((4, 4), np.float32)
    kernel = nki.jit(twice)
    assert BACKEND.is_kernel(kernel) and not BACKEND.is_kernel(twice)
    for given in (kernel, twice):
        np.testing.assert_array_equal(BACKEND.simulate(given, CHOICE)(x), 2 * x)
    with pytest.raises(LaunchError, match="simulate takes a kernel"):
        BACKEND.simulate(3, CHOICE)


def test_sizes_are_those_of_the_target():
    assert nl.tile_size.pmax == 128 and nl.tile_size.gemm_moving_fmax == 512
    assert nl.fp32.min == np.finfo(np.float32).min
    with pytest.raises(UnsupportedError, match=r"nl\.tile_size\.psum_min_align"):
        nl.tile_size.psum_min_align  # noqa: B018
