"""The pytest plugin of nki-runtime, in a pytest of its own as a user starts it."""

from __future__ import annotations

import subprocess
import sys

import pytest

KERNEL = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def scaled(x, factor=2.0):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=result, src=tile)
    return result

X = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
"""


@pytest.fixture
def run_tests(tmp_path):
    """Writes a test file below the kernel and runs pytest on it; the finished process."""

    def run(text, *options, kernel=KERNEL, **environment):
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
        (tmp_path / "test_kernel.py").write_text(kernel + text)
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
            cwd=tmp_path, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    return run


def test_a_kernel_that_agrees_with_its_reference_passes_on_one_process_and_on_two(run_tests):
    text = "def test_it(nki_compare):\n    nki_compare(scaled, lambda x: 2 * x, X)\n"

    for options in ([], ["-n", "2"]):
        done = run_tests(text, "--nki", "0.6", *options)

        assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


def test_a_difference_names_the_element_both_values_the_writer_and_the_tensors(run_tests, tmp_path):
    text = """
def test_it(nki_compare):
    nki_compare(scaled, lambda x: np.where(x == 7, 14.25, 2 * x), X)
"""

    done = run_tests(text, "--nki", "0.6", f"--basetemp={tmp_path / 'base'}")

    assert done.returncode == 1
    assert (
        "the result departs in 1 of 8 elements, most at [1, 2]: 14.0, the reference gives 14.25"
        in done.stdout
    )
    assert "the element was written last by dma_copy" in done.stdout
    assert "nisa.dma_copy(dst=result, src=tile)\n    ^^^^" in done.stdout
    (folder,) = (tmp_path / "base").rglob("tensors")
    assert f"what every tensor contained: {folder}" in done.stdout
    assert [file.name for file in folder.iterdir()] == ["scaled.npz"]
    assert f"the run as a page: {folder.with_name('run.html')}" in done.stdout
    assert "scaled" in folder.with_name("run.html").read_text()


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two"])
def test_a_reference_kernel_shows_the_first_instruction_that_departs(run_tests, options):
    text = """
@nki.jit
def other(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=3.0)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=result, src=tile)
    return result

def test_it(nki_compare):
    nki_compare(scaled, other, X)
"""

    done = run_tests(text, "--nki", "0.6", *options)

    assert done.returncode == 1
    assert "instruction 2 is the first whose result departs" in done.stdout
    assert ") in the kernel, np.float32(" in done.stdout
    assert "nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply" in done.stdout
    assert "    ^^^" in done.stdout
    assert "the run as a page: " in done.stdout


def test_the_first_nan_or_infinity_is_named_by_its_instruction(run_tests):
    text = """
def test_it(nki_compare):
    nki_compare(scaled, np.ones_like, np.full((1, 2), 3e38, np.float32))
"""

    done = run_tests(text, "--nki", "0.6")

    assert "first NaN or infinity: tensor_scalar, dst" in done.stdout


def test_the_marker_sets_version_target_and_options_for_one_test(run_tests):
    text = """
import pytest

@pytest.mark.nki(version="0.4", target="trn1", precise=False)
def test_it():
    import nki, nki_runtime
    choice = nki_runtime.current()
    assert (choice.nki, choice.target, choice.options.precise) == ("0.4", "trn1", False)

def test_after():
    import sys
    assert "nki" not in sys.modules
"""

    done = run_tests(text, kernel="")

    assert "2 passed" in done.stdout, done.stdout


def test_an_error_found_by_a_check_of_the_marker_fails_the_test(run_tests):
    text = """
import pytest

@nki.jit
def unwritten(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=result, src=tile)
    return result

@pytest.mark.nki(checks=["memory"])
def test_it():
    unwritten(X)
"""

    done = run_tests(text, "--nki", "0.6")

    assert (done.returncode, "1 failed" in done.stdout) == (1, True)
    assert "nisa.dma_copy(dst=result, src=tile)\n" in done.stdout


def test_a_mistake_in_a_kernel_is_shown_with_the_users_lines_and_the_caret_only(run_tests):
    text = "def test_it():\n    scaled(np.zeros((129, 4), np.float32))\n"

    done = run_tests(text, "--nki", "0.6")

    assert "PartitionError: " in done.stdout
    assert "^^^" in done.stdout
    assert "site-packages" not in done.stdout
    assert "neuroncore" not in done.stdout


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        (["--nki", "9.9"], "", "9.9"),
        ([], '@pytest.mark.nki(version="9.9")\ndef test_it(): pass', "@pytest.mark.nki: "),
        ([], '@pytest.mark.nki(checks=["memry"])\ndef test_it(): pass', "memory"),
        ([], "@pytest.mark.nki(presise=True)\ndef test_it(): pass", "precise"),
        ([], '@pytest.mark.nki(versio="0.6")\ndef test_it(): pass', "did you mean version?"),
        (
            [],
            '@pytest.mark.nki("0.6", version="0.6")\ndef test_it(): pass',
            "two values of version",
        ),
        ([], "@pytest.mark.nki(checks=5)\ndef test_it(): pass", "checks are not names"),
        ([], "@pytest.mark.nki(checks=[5])\ndef test_it(): pass", "checks are not names"),
        ([], "@pytest.mark.nki(target=['trn2'])\ndef test_it(): pass", "target is not a text"),
        ([], "@pytest.mark.nki(version=0.6)\ndef test_it(): pass", "version is not a text"),
        ([], "@pytest.mark.nki(1, 2, 3, 4, 5)\ndef test_it(): pass", "too many values by place"),
    ],
)
def test_a_wrong_choice_names_what_is_possible(run_tests, options, text, message):
    done = run_tests(text, *options, kernel="import pytest\n")

    assert done.returncode in (1, 4)
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "another exception occurred" not in done.stdout
    assert "plugin.py" not in done.stdout


def test_a_marker_takes_what_the_switch_and_the_command_take(run_tests):
    text = "@pytest.mark.nki(shadow=True, checks='memory, race')\ndef test_it(): pass"

    done = run_tests(text, kernel="import pytest\n")

    assert done.returncode == 0, done.stdout


def test_results_of_another_shape_or_number_are_a_difference(run_tests):
    text = """
def test_shape(nki_compare):
    nki_compare(scaled, lambda x: 2 * x[0], X)

def test_number(nki_compare):
    nki_compare(scaled, lambda x: (2 * x, x), X)
"""

    done = run_tests(text, "--nki", "0.6")

    assert "the result has shape (2, 4), the reference's (4,)" in done.stdout
    assert "the kernel gives 1 results, the reference 2" in done.stdout


@pytest.mark.parametrize(
    ("bound", "message"),
    [("ulps='a'", "ulps is not a bound"), ("atol=-1", "atol is not a bound"),
     ("ulp=1", "did you mean ulps?")],
)  # fmt: skip
def test_a_bound_that_is_none_is_named(run_tests, bound, message):
    text = f"def test_it(nki_compare):\n    nki_compare(scaled, lambda x: 2 * x, X, {bound})\n"

    done = run_tests(text, "--nki", "0.6")

    assert done.returncode == 1
    assert message in done.stdout
    assert "TypeError" not in done.stdout
