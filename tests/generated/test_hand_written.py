"""The hand-written kernels beside the generator's: NumPy's values, and at most twice as fast."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.generator_workloads import HAND_WRITTEN, WORKLOADS, Workload

import nki_runtime
import nkigen_lite

EXTREMES = (-(2**31), 2**31 - 1, -1, 0x7F7F7F80, 0x80808080 - 2**32, 0)


COMPARED = [w for w in WORKLOADS if w.name in HAND_WRITTEN]


def arrays_of(workload: Workload) -> list[np.ndarray]:
    """Numbers of the whole range; of integers, rows and columns of the extremes too."""
    rng = np.random.default_rng(28)
    found: list[np.ndarray] = []
    for spec in map(nkigen_lite.as_spec, workload.specs):
        if spec.dtype.is_float:
            found.append(rng.standard_normal(spec.shape, np.float32))
            continue
        numbers = rng.integers(-(2**31), 2**31, spec.shape).astype(np.int32)
        for n, extreme in enumerate(EXTREMES):
            numbers[n, :] = numbers[:, n] = extreme
        found.append(numbers)
    return found


@pytest.mark.parametrize("workload", COMPARED, ids=lambda w: w.name)
def test_a_hand_written_kernel_gives_numpys_values_and_ours_takes_at_most_twice_as_long(workload):
    name, more = HAND_WRITTEN[workload.name]
    arrays = arrays_of(workload)

    with nki_runtime.use("beta2", nki="0.7", target="trn2"):
        from benchmarks.hand_written import kernels

        kernel = getattr(kernels, name)
        result, written = kernel(*arrays, *more), nki_runtime.estimate(kernel, *arrays, *more)

    with np.errstate(over="ignore"):
        assert np.array_equal(result, workload.function(*arrays))  # float32, in the same order
    ours = nkigen_lite.compile(workload.function, *workload.specs).stats.predicted_us
    assert ours <= 2 * written.total_ns / 1e3
