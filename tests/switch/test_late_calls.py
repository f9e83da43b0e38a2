"""Names bound early and kernels called late, in the 0.2 to 0.7 language."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nki_runtime
from neuroncore.errors import AccessError, CapacityError
from neuroncore.machine.backend import Choice
from nki_runtime import simulate, use

KERNELS = Path(__file__).with_name("new_kernels.py")
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def load(**choice):
    """The kernels of new_kernels.py, decorated under a choice that is left again."""
    with use(**choice):
        return SimpleNamespace(**runpy.run_path(str(KERNELS)))


@pytest.fixture
def small():
    return np.zeros((128, 4), np.float32)


def test_a_kernel_runs_without_any_switch():
    assert np.array_equal(load().double(X), 2 * X)


@pytest.mark.parametrize("nki", ["0.2", "0.3", "0.4", "0.5", "0.6"])
def test_the_same_file_runs_in_every_version(nki):
    kernels = load(nki=nki)

    assert kernels.double.choice.nki == nki
    assert np.array_equal(kernels.double(X), 2 * X)


def test_a_kernel_keeps_its_version_under_a_later_one():
    old, new = load(nki="0.2"), load(nki="0.6")

    with use(nki="0.6"), pytest.raises(AccessError, match="index -1 is outside dimension 0"):
        old.last_row(X)
    with use(nki="0.2"):
        assert np.array_equal(new.last_row(X), X[-1:])


def test_a_kernel_runs_on_the_device_in_force_at_the_call(small):
    kernels = load(target="trn1")

    with use("beta2", target="trn3"):
        assert np.array_equal(kernels.needs_200_kb(small), small)
    with pytest.raises(CapacityError, match="200000 bytes per partition do not fit SBUF"):
        kernels.needs_200_kb(small)


def test_options_in_force_at_the_call_count(small):
    kernels = load()

    with use(uninitialized="zero"):
        assert np.array_equal(kernels.unwritten(small), small)
    assert np.isnan(kernels.unwritten(small)).all()


def test_names_bound_under_a_switch_work_after_it():
    with use(nki="0.6"):
        import nki
        import nki.isa as nisa
        import nki.language as nl

    @nki.jit
    def copy(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x)
        return out

    assert np.array_equal(copy(X), X)


def test_an_import_inside_a_kernel_looks_at_the_switch_at_the_call():
    kernels = load()

    with use("beta2"):
        assert np.array_equal(kernels.imports_late(X), X)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nki'"):
        kernels.imports_late(X)


def test_simulate_and_nki_simulate_and_a_plain_call_agree():
    kernels = load()

    with use("beta2"):
        import nki

        results = [
            kernels.double(X),
            nki.simulate(kernels.double)(X),
            simulate(kernels.double)(X),
            simulate(kernels.double)[2](X),
        ]

    assert all(np.array_equal(result, 2 * X) for result in results)


def test_simulate_updates_inputs_in_place():
    x = X.copy()

    result = simulate(load().double_in_place)(x)

    assert np.array_equal(x, 2 * X)
    assert np.array_equal(result, 2 * X)


def test_current_says_the_choice_while_it_is_in_force():
    with use(nki="0.4", target="inf2"):
        assert nki_runtime.current() == Choice("beta2", "0.4", "trn1")
    assert nki_runtime.current() is None
