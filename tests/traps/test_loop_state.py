"""Changes of Python objects in bodies of device loops, up to 0.6 read from the source."""

from __future__ import annotations

import pytest
from trap_examples import run

from neuroncore.checks.traps import Example

LOOP = """
@nki.jit
def counted(x):
    total, kept, numbers = load(x), [], iter(range(9))
    for i in nl.dynamic_range(3):
{body}
        nisa.tensor_scalar(dst=total, data=total, op0=nl.add, operand0=1.0)
    return store(total)


counted(np.zeros((1, 8), np.float32))
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("kept.append(i)", ["kept is changed in the body of nl.dynamic_range"]),
        ("print(i)", ["print is called in the body of nl.dynamic_range"]),
        ("next(numbers)", ["numbers is changed in the body of nl.dynamic_range"]),
        ("own = []\n        own.append(i)", []),
        ("nl.add(total, total)", []),
    ],
    ids=["list", "print", "iterator", "list of the body", "function of nl"],
)
def test_what_outlives_the_body_is_reported(body, said):
    outcome = run("loop.py", Example(LOOP.format(body=f"        {body}"), nki="0.5"))

    found = [f.message for f in outcome.findings if f.code == "HW48"]
    assert (outcome.error, found) == (None, said)


BODIES_OF_ONE_NAME = """
@nki.jit
def clean(x):
    total = load(x)

    def body(i):
        nisa.tensor_scalar(dst=total, data=total, op0=nl.add, operand0=1.0)

    nl.fori_loop(0, 3, body)

    def body(i):
        own = {}
        own[0] = nisa.tensor_scalar(dst=total, data=total, op0=nl.add, operand0=1.0)

    nl.fori_loop(0, 3, body)
    return store(total)


@nki.jit
def unused(x):
    kept = {}

    def body(i):
        kept[0] = i

    nl.fori_loop(0, 3, body)


clean(np.zeros((1, 8), np.float32))
"""


def test_a_body_is_the_function_of_its_own_scope():
    outcome = run("loop.py", Example(BODIES_OF_ONE_NAME, nki="0.7"))

    assert (outcome.error, [f.message for f in outcome.findings if f.code == "HW48"]) == (None, [])
