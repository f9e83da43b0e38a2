"""What a recorder reads of a value."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from nki_runtime.recording.recorder import describe


class Proxy:
    """Answers any name, at a cost."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return (4, 8)


def test_a_value_that_is_no_tensor_is_asked_for_nothing():
    proxy, module, asked = Proxy(), ModuleType("nisa"), []
    vars(module)["__getattr__"] = asked.append

    assert (describe(proxy), describe(module)) == ({}, {})
    assert (proxy.asked, asked) == ([], [])


def test_an_array_has_shape_and_dtype():
    assert describe(np.zeros((4, 8), np.int32)) == {"shape": [4, 8], "dtype": "int32"}
