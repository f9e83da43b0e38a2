"""Changes of Python objects in bodies of device loops, up to 0.6 read from the source."""

from __future__ import annotations

import pytest
from trap_examples import run

from neuroncore.checks.traps import Example

LOOP = """
@nki.jit
def counted(x):
    total, kept = load(x), []
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
        ("own = []\n        own.append(i)", []),
        ("nl.add(total, total)", []),
    ],
    ids=["list", "print", "list of the body", "function of nl"],
)
def test_what_outlives_the_body_is_reported(body, said):
    outcome = run("loop.py", Example(LOOP.format(body=f"        {body}"), nki="0.5"))

    found = [f.message for f in outcome.findings if f.code == "HW48"]
    assert (outcome.error, found) == (None, said)
