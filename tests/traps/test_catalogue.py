"""Each trap of the catalogue is handled as its record states, and its cure is free of it."""

from __future__ import annotations

import pytest
from trap_examples import run

from neuroncore.checks.traps import Example, Handling, Trap, traps
from neuroncore.findings import Severity


def handled(*handlings: Handling) -> pytest.MarkDecorator:
    """The traps that are handled so, each with the example that contains it."""
    found = [t for t in traps().values() if t.handling in handlings and t.bad]
    return pytest.mark.parametrize(("trap", "bad"), [(t, t.bad) for t in found], ids=names(found))


def names(found: list[Trap]) -> list[str]:
    return [trap.id for trap in found]


POISONED = [t for t in traps().values() if t.undefined and t.handling is not Handling.REJECTED]


@pytest.mark.parametrize("trap", POISONED, ids=names(POISONED))
def test_an_undefined_result_fails_its_reference_where_the_option_requests_it(trap: Trap):
    assert trap.bad is not None

    with pytest.raises(AssertionError):
        run(f"{trap.id}.py", trap.bad, undefined_results="poison")


def test_every_trap_has_a_record_and_few_are_undecidable():
    undecidable = [t for t in traps().values() if t.handling is Handling.UNDECIDABLE]

    assert list(traps()) == [f"HW{number:02}" for number in range(1, 60)]
    assert len(undecidable) <= 10
    assert all(trap.by for trap in undecidable)


def test_every_trap_that_is_decided_has_an_example_and_its_cure():
    decided = [t for t in traps().values() if t.handling is not Handling.UNDECIDABLE]

    assert [t.id for t in decided if t.bad is None] == []
    assert [t.id for t in decided if t.good is None] == []


CURED = [trap for trap in traps().values() if trap.good]


@handled(Handling.DETECTED, Handling.CHECKED)
def test_a_trap_gives_the_expected_values_here_and_is_found(trap: Trap, bad: Example):
    label = f"traps[{trap.id}]" if trap.handling is Handling.DETECTED else trap.by

    outcome = run(f"{trap.id}.py", bad)

    assert outcome.error is None
    assert label in {finding.label for finding in outcome.findings}


@handled(Handling.REJECTED)
def test_a_rejected_trap_raises_its_error(trap: Trap, bad: Example):
    outcome = run(f"{trap.id}.py", bad)

    assert type(outcome.error).__name__ == trap.by


@handled(Handling.MODELLED)
def test_a_modelled_trap_gives_the_values_of_a_device(trap: Trap, bad: Example):
    assert run(f"{trap.id}.py", bad).error is None


@pytest.mark.parametrize(("trap", "good"), [(t, t.good) for t in CURED], ids=names(CURED))
def test_no_check_finds_anything_in_the_cure(trap: Trap, good: Example):
    outcome = run(f"{trap.id}_cured.py", good)

    wrong = [f for f in outcome.findings if f.rule == "traps" or f.severity is Severity.ERROR]
    assert (outcome.error, wrong) == (None, [])
