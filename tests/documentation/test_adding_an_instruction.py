"""The page's diff is how max8 came in: taken back it is gone, applied it is there and tested."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documentation.guides import Guide, touched

PAGE = "adding-an-instruction.md"
PACKAGE = "packages/neuroncore"
CALLABLE = """
import numpy as np
from neuroncore.isa.functions import make_function
from neuroncore.machine.core import NeuronCore
from neuroncore.enums import MemorySpace
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.surface import signature

for version in ("0.2", "0.6"):
    core = NeuronCore()
    src = core.adopt(np.arange(9, dtype=np.float32).reshape(1, 9), MemorySpace.sbuf)
    dst = core.allocate((1, 8), "float32", MemorySpace.sbuf)
    make_function(INSTRUCTIONS["max8"], signature("max8", version))(dst, src)
    assert dst.array.tolist() == [[8, 7, 6, 5, 4, 3, 2, 1]]
"""
IN_THE_LANGUAGE = """
import numpy as np
import nki_beta2

for version in ("0.2", "0.6"):
    nki, nl, nisa = nki_beta2.language(version)

    @nki.jit
    def largest(x):
        tile, top = nl.ndarray((1, 9), x.dtype), nl.ndarray((1, 8), x.dtype)
        out = nl.ndarray((1, 8), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(tile, x)
        nisa.max8(top, tile)
        nisa.dma_copy(out, top)
        return out

    given = np.arange(9, dtype=np.float32).reshape(1, 9)
    assert largest(given).tolist() == [[8, 7, 6, 5, 4, 3, 2, 1]]
"""


@pytest.fixture
def guide(tmp_path: Path) -> Guide:
    """The package as it is, somewhere else. (The table's columns may have other widths.)"""
    return Guide.on_copy(PAGE, PACKAGE, tmp_path)


def test_the_diff_is_one_record_its_surface_lines_and_one_test():
    assert touched(PAGE) == [
        f"{PACKAGE}/src/neuroncore/instructions/max8.py",
        f"{PACKAGE}/src/neuroncore/surface/isa.txt",
        f"{PACKAGE}/tests/instructions/test_max8.py",
    ]


def test_taken_back_the_instruction_is_gone_and_applied_it_is_there(guide: Guide):
    guide.apply("--reverse")
    gone = guide.run("-c", CALLABLE)
    assert "KeyError: 'max8'" in gone.stderr

    guide.apply()
    there = guide.run("-c", CALLABLE)
    assert there.returncode == 0, there.stderr
    in_beta2 = guide.run("-c", IN_THE_LANGUAGE)
    assert in_beta2.returncode == 0, in_beta2.stderr


def test_the_new_test_passes_with_the_record_and_not_without(guide: Guide):
    green = guide.run_new_test()
    assert green.returncode == 0, green.stdout

    record = f"{PACKAGE}/src/neuroncore/instructions/max8.py"
    guide.replace(record, "[:, ::-1]", "")  # smallest first
    assert guide.run_new_test().returncode == 1
