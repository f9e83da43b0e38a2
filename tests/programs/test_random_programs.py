"""Random programs of every instruction: emitted for every version they agree, or are rejected."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.programs.random_programs import WITHOUT, Drawn, drawn

from neuroncore.errors import KernelError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.program import emit
from neuroncore.surface import VERSIONS
from nki_runtime import use

SEED = 23_000
"""The first seed; the others follow."""
pytestmark = pytest.mark.filterwarnings("ignore")  # overflow and NaN of extreme inputs


def as_bytes(result: Any) -> list[bytes]:
    return [r.tobytes() for r in (result if isinstance(result, tuple) else (result,))]


def counted(case: Drawn) -> Counter[str]:
    """How the sources for all versions compare with the program's own results."""
    return Counter(outcome(case, version) for version in VERSIONS[1:])


def outcome(case: Drawn, version: str) -> str:
    try:
        source = emit(case.program, version)
    except KernelError:
        return "rejected"
    names: dict[str, Any] = {}
    with use("beta2", nki=version, target=case.program.target):
        exec(compile(source, f"<{case.program.name}>", "exec"), names)
        result = names[case.program.name](*copy.deepcopy(case.arrays))
    return "agrees" if as_bytes(result) == case.results else f"differs in {version}"


@pytest.mark.parametrize("instruction", sorted(INSTRUCTIONS.keys() - WITHOUT.keys()))
def test_an_instruction_agrees_or_is_rejected_in_every_version(instruction):
    case = drawn(SEED, instruction)

    assert counted(case).keys() <= {"agrees", "rejected"}, (case.fill, str(case.program))


def test_inputs_and_statements_follow_from_the_seed():
    one, other = drawn(SEED), drawn(SEED)

    assert one.program == other.program
    assert [a.tobytes() for a in one.arrays] == [a.tobytes() for a in other.arrays]
    assert np.any([drawn(SEED + n).program != one.program for n in range(1, 4)])


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_a_thousand_random_programs_agree_or_are_rejected_in_every_version():
    total: Counter[str] = Counter()
    for seed in range(SEED, SEED + 1050):
        found = counted(drawn(seed))
        assert found.keys() <= {"agrees", "rejected"}, seed
        total += found

    assert total["agrees"] > 4 * total["rejected"]
