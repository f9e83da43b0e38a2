"""Modules of 0.1 that kernels of 0.2 to 0.4 import for annotations alone."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

from nki_runtime import use


@pytest.mark.parametrize("version", ["0.2", "0.3", "0.4"])
def test_a_kernel_up_to_0_4_annotates_with_the_names_of_0_1(version):
    with use(nki=version):
        import neuronxcc.nki.typing as nt
        import nki

        @nki.jit
        def kernel(x: nt.tensor[4, :], y: nt.mutable_tensor = None):
            return x

        assert kernel(np.ones((4, 2), np.float32)).shape == (4, 2)
    assert "neuronxcc" not in sys.modules


def test_from_0_5_on_there_are_none():
    with use(nki="0.5"), pytest.raises(ModuleNotFoundError, match="neuronxcc"):
        importlib.import_module("neuronxcc.nki.typing")


def test_no_other_module_of_0_1_comes_with_them():
    with use(nki="0.3"), pytest.raises(ModuleNotFoundError, match=r"neuronxcc\.nki\.language"):
        importlib.import_module("neuronxcc.nki.language")


@pytest.mark.parametrize("first", ["beta1", "0.3"])
def test_the_language_0_1_supplies_its_own_modules_beside_0_3(first):
    order = [{"backend": "beta1"}, {"nki": "0.3"}]
    with use(**order[first != "beta1"]), use(**order[first == "beta1"]):
        typing = importlib.import_module("neuronxcc.nki.typing")
        language = importlib.import_module("neuronxcc.nki.language")

        assert typing.mutable_tensor is not typing.tensor
        assert language.bfloat16 and importlib.import_module("nki.isa")
