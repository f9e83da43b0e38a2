"""The example kernels of the public Neuron SDK, where a clone is given, and the harness itself."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from tests.corpora.sdk_examples.__main__ import main, markdown
from tests.corpora.sdk_examples.cases import CASES, NOT_PYTHON, Case
from tests.corpora.sdk_examples.references import add, exactly, half_ulp
from tests.corpora.sdk_examples.run import Result, run_case
from tests.corpora.sdk_examples.sources import kernels_in, unpack

CHECKOUT = os.environ.get("NEURON_SDK_CHECKOUT")
needs_checkout = pytest.mark.skipif(
    not CHECKOUT, reason="NEURON_SDK_CHECKOUT names no clone of aws-neuron/aws-neuron-sdk"
)

DOUBLE = """
import os
import nki
import nki.language as nl

os.environ["SDK_EXAMPLE_WAS_HERE"] = "1"


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, value=nl.add(tile, tile))
    return out
"""


@pytest.fixture(scope="session")
def examples(tmp_path_factory):
    return unpack(Path(CHECKOUT or ""), tmp_path_factory.mktemp("sdk"))


@needs_checkout
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_example_does_what_it_is_there_for(case, examples):
    result = run_case(case, examples)

    assert result.is_good, f"{result.outcome}: {result.detail}"


@needs_checkout
def test_every_kernel_of_the_examples_has_a_case(examples):
    named = {case.name for case in CASES}

    others = {name for name in kernels_in(examples) if name not in named}
    assert {name.partition(":")[0] for name in others} == NOT_PYTHON.keys()
    assert named <= kernels_in(examples)


@needs_checkout
@pytest.mark.parametrize("file", NOT_PYTHON)
def test_what_is_called_no_python_does_not_run(file, examples):
    text = (examples / file).read_text(encoding="utf-8")

    with pytest.raises((SyntaxError, ImportError)):
        exec(compile(text, file, "exec"), {})


# -- the harness -----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "double.py").write_text(DOUBLE)
    return tmp_path


def doubling(reference=None, rejected="", shape=(4, 3)):
    return Case("double.py", "double", lambda: (np.ones(shape, np.float32),), reference, rejected)


def test_a_kernel_that_computes_its_reference_matches(folder):
    result = run_case(doubling(lambda x: exactly(2.0 * x)), folder)

    assert (result.outcome, result.detail, result.is_good) == ("matches", "exactly", True)
    assert "SDK_EXAMPLE_WAS_HERE" not in os.environ


def test_what_formats_do_not_explain_differs(folder):
    exact = run_case(doubling(lambda x: exactly(2.0 * x + 2.0**-22)), folder)
    rounded = run_case(doubling(lambda x: add(x, x + np.float32(2.0**-23))), folder)
    far = run_case(doubling(lambda x: add(x, x + np.float32(2.0**-21))), folder)

    assert [r.outcome for r in (exact, rounded, far)] == ["differs", "matches", "differs"]


def test_a_result_of_another_shape_differs(folder):
    assert run_case(doubling(lambda x: exactly(2.0 * x[:1])), folder).outcome == "differs"


def test_what_must_be_rejected_is_rejected_for_that_reason(folder):
    tall = (200, 3)

    assert run_case(doubling(rejected="200 partitions in SBUF", shape=tall), folder).is_good
    assert not run_case(doubling(rejected="something else", shape=tall), folder).is_good
    assert not run_case(doubling(rejected="anything"), folder).is_good


def test_half_an_ulp_is_that_of_the_format():
    values = np.array([1.0, 1.5, 2.0, 0.75])

    assert np.array_equal(half_ulp(values, np.dtype(np.float16)) * 2**11, [1.0, 1.0, 2.0, 0.5])


def test_the_table_names_files_outcomes_and_what_is_no_python():
    case = doubling(rejected="200 partitions")

    table = markdown([Result(case, "rejected", "double.py:3: a | b")])

    assert "1 of the 1 kernels" in table
    assert "| double.py | double | trn2 | rejected | double.py:3: a \\| b |" in table
    assert all(f"| {file} | | | not Python |" in table for file in NOT_PYTHON)


def test_the_command_wants_a_checkout(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("NEURON_SDK_CHECKOUT", raising=False)

    for arguments, why in (([], "NEURON_SDK_CHECKOUT is not set"),
                           (["--checkout", str(tmp_path)], "has no nki/examples")):  # fmt: skip
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert why in capsys.readouterr().err
