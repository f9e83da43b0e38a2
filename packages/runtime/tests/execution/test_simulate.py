"""`simulate` finds the kernel's language and speaks the caller's arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from neuroncore.errors import LaunchError, MemorySpaceError
from nki_runtime import simulate, use


@pytest.fixture
def kernel():
    with use("beta2", nki="0.3"):
        import nki

        yield nki.jit


def test_a_kernel_runs_in_the_language_that_made_it(kernel):
    double = kernel(lambda x: 2 * x)

    with use("beta1"):
        result = simulate(double)(np.arange(3))

    assert result.tolist() == [0, 2, 4]
    assert double.runs[0][0].nki == "0.3"


def test_a_subscript_is_the_launch_grid(kernel):
    double = kernel(lambda x: 2 * x)

    simulate(double)[2](np.arange(3))

    assert double.runs[0][1] == 2


def test_a_plain_function_runs_in_the_language_in_force(monkeypatch):
    monkeypatch.setenv("NKI_RUNTIME", "beta1")

    assert simulate(lambda x, y: x - y)(5, y=3) == 2


def test_inputs_that_the_kernel_writes_are_updated_in_place(kernel):
    x = np.zeros(4, np.float32)

    simulate(kernel(lambda out: out.__setitem__(slice(2), 7)))(x)

    assert x.tolist() == [7, 7, 0, 0]


def test_what_cannot_be_called_is_rejected():
    with pytest.raises(LaunchError, match="simulate takes a kernel"):
        simulate(3)


def test_torch_tensors_come_back_as_torch_tensors(kernel):
    torch = pytest.importorskip("torch")
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)

    result, (pair, five) = simulate(kernel(lambda x: (x + 1, [x.T, 5])))(x)

    assert torch.equal(result, torch.tensor([[1.0, 2, 3], [4, 5, 6]]))
    assert torch.equal(pair, x.T)
    assert five == 5


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_torch_formats_that_numpy_lacks_keep_their_bits(name, kernel):
    torch = pytest.importorskip("torch")
    dtype, x = getattr(ml_dtypes, name), torch.tensor([0.5, -2.0, 24.0]).to(getattr(torch, name))
    seen = []

    result = simulate(kernel(lambda x: seen.append(x.dtype) or x[::-1]))(x)

    assert seen == [np.dtype(dtype)]
    assert result.dtype == x.dtype
    assert result.float().tolist() == [24.0, -2.0, 0.5]


def test_writes_land_in_the_callers_torch_tensors(kernel):
    torch = pytest.importorskip("torch")
    x = torch.zeros(2, 4, dtype=torch.bfloat16)

    def write(x, nested):
        x[0, :2] = 3
        nested["y"][0][1] = 4
        return x[:]

    y = torch.zeros(3, requires_grad=True)
    result = simulate(kernel(write))(x, nested={"y": [y]})

    assert result is x
    assert x.tolist() == [[3, 3, 0, 0], [0, 0, 0, 0]]
    assert y.tolist() == [0, 4, 0]


def test_a_torch_tensor_on_a_device_is_rejected(kernel):
    torch = pytest.importorskip("torch")

    with pytest.raises(MemorySpaceError, match="torch tensor on device meta"):
        simulate(kernel(lambda x: x))(torch.empty(3, device="meta"))


@pytest.mark.filterwarnings("ignore")
def test_jax_arrays_come_back_as_jax_arrays(kernel):
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(4, dtype=jax.numpy.bfloat16)

    result = simulate(kernel(lambda x: x + x))(x)

    assert isinstance(result, jax.Array)
    assert result.dtype == jax.numpy.bfloat16
    assert result.tolist() == [0, 2, 4, 6]


@pytest.mark.filterwarnings("ignore")
def test_arrays_of_two_libraries_in_one_call_are_rejected(kernel):
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")

    with pytest.raises(LaunchError, match="arrays of two libraries"):
        simulate(kernel(lambda x, y: x))(torch.zeros(2), jax.numpy.zeros(2))
