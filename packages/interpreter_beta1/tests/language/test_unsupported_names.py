"""What is not the language, or not modelled: the message says which and why."""

import sys

import numpy as np
import pytest

from neuroncore.errors import LaunchError, UnsupportedError
from neuroncore.machine.backend import Choice
from nki_beta1 import BACKEND, nki, nl

PRIVATE = {
    "from neuronxcc.nki._private.attention import core": "neuronxcc.nki._private",
    "import neuronxcc.nki._private_nkl.utils": "neuronxcc.nki._private_nkl",
    "from neuronxcc.nki.kernels.attention import flash_fwd": "neuronxcc.nki.kernels",
    "from neuronxcc.starfish.support import dtype": "neuronxcc.starfish",
    "from neuronxcc.nki.isa import _matmul": "neuronxcc.nki.isa._matmul",
}


@pytest.fixture
def as_neuronxcc(monkeypatch):
    for name, found in BACKEND.modules(Choice("beta1", "0.1")).items():
        monkeypatch.setitem(sys.modules, name, found)


@pytest.mark.usefixtures("as_neuronxcc")
@pytest.mark.parametrize("statement", PRIVATE)
def test_a_private_module_is_rejected_where_it_is_imported(statement):
    with pytest.raises(UnsupportedError) as caught:
        exec(compile(f"\n\n{statement}", "rejected.py", "exec"))

    lines = str(caught.value).splitlines()
    assert lines[0] == f"rejected.py:3:1: {PRIVATE[statement]} is not part of the NKI 0.1 language"
    assert "the public modules" in lines[1] and "private modules change" in lines[3]


@pytest.mark.usefixtures("as_neuronxcc")
def test_a_program_can_ask_whether_a_private_module_is_there():
    with pytest.raises(ImportError):
        import neuronxcc.nki._private  # noqa: F401


@pytest.mark.usefixtures("as_neuronxcc")
def test_public_modules_are_found():
    from neuronxcc.nki import isa, language
    from neuronxcc.nki.isa.constants import engine

    assert isa.dma_engine is engine.dma and language.arange


@pytest.mark.parametrize(
    ("module", "name", "reason"),
    [
        (nl, "gemm_grid", "use nl.mgrid"),
        (nki, "FrameworkKernel", "call the kernel with arrays"),
        (nki.compiler, "multi_buffer", "leave it out"),
        (nki.isa, "builtin_custom_op", "run only on the device"),
    ],
)
def test_a_rejected_name_says_why(module, name, reason):
    with pytest.raises(UnsupportedError, match=f"{name} .NKI 0.1. is not modelled") as caught:
        getattr(module, name)

    assert reason in str(caught.value)


def test_a_reduction_over_programs_is_rejected_but_for_one():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=nl.all_reduce(nl.load(x), op=np.add, program_axes=[0]))
        return out

    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(kernel[1](x), x)
    with pytest.raises(UnsupportedError, match="a reduction over 2 programs is not modelled"):
        kernel[2](x)


def test_a_kernel_that_calls_itself_is_rejected():
    @nki.jit
    def countdown(x, n):
        return x if n == 0 else countdown(x, n - 1)

    with pytest.raises(LaunchError, match="kernel countdown calls itself") as caught:
        countdown(np.zeros((2, 2), np.float32), 3)

    assert "countdown(x, n - 1)" in str(caught.value) and "^^^" in str(caught.value)


def test_kernels_that_call_each_other_are_rejected_with_the_way_round():
    @nki.jit
    def ping(x):
        return pong(x)

    @nki.jit
    def pong(x):
        return ping(x)

    with pytest.raises(LaunchError, match="ping calls pong calls ping"):
        ping(np.zeros((2, 2), np.float32))


def test_a_function_without_end_is_rejected():
    def forever(x):
        return forever(x)

    with pytest.raises(LaunchError, match="kernel forever recurses without end"):
        nki.jit(forever)(np.zeros((2, 2), np.float32))


def test_a_kernel_may_call_another_one_twice():
    @nki.jit
    def double(tile):
        return nl.multiply(tile, 2.0)

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=double(double(nl.load(x))))
        return out

    np.testing.assert_array_equal(kernel(np.ones((2, 2), np.float32)), np.full((2, 2), 4))


class TestTheOldDialect:
    """Kernels of SDK 2.20 are given their output: undecorated, without a result."""

    @staticmethod
    def doubled(x, out):
        nl.store(out, value=nl.load(x) * 2)

    def test_a_function_without_result_writes_its_arguments(self):
        x, out = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)

        nki.simulate_kernel(self.doubled, x, out)

        np.testing.assert_array_equal(out, 2 * x)

    @pytest.mark.filterwarnings("ignore:.*simulated machine")
    def test_a_measured_function_does_too(self):
        x, out = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)

        nki.baremetal(self.doubled)(x, out)

        np.testing.assert_array_equal(out, 2 * x)

    def test_a_function_with_a_result_does_not(self):
        def kernel(x, out):
            self.doubled(x, out)
            return out

        with pytest.raises(UnsupportedError.__base__, match="read-only"):  # pyrefly: ignore
            nki.simulate_kernel(kernel, np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32))
