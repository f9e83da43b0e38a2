"""Launching on one core or two, program ids, loops."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import KernelError, LaunchError


def negate_a_share(lang, x):
    """-x in shared HBM, each program its rows."""
    share = x.shape[0] // lang.nl.num_programs(0)
    mine = lang.nl.ds(lang.nl.program_id(0) * share, share)
    tile = lang.tile(x[mine, 0 : x.shape[1]])
    lang.nisa.tensor_scalar(tile, tile, lang.nl.multiply, -1.0)
    out = lang.nl.ndarray(x.shape, dtype=x.dtype, buffer=lang.nl.shared_hbm)
    lang.nisa.dma_copy(dst=out[mine, 0 : x.shape[1]], src=tile)
    return out


@pytest.mark.parametrize("lnc", [1, 2, (2,), np.int64(2)])
def test_programs_share_what_they_write_to_shared_hbm(every, ramp, lnc):
    kernel = every.nki.jit(lambda x: negate_a_share(every, x))

    assert np.array_equal(kernel[lnc](ramp), -ramp)


def test_a_launch_without_brackets_is_one_program(every, ramp):
    assert np.array_equal(every.run(lambda x: negate_a_share(every, x), ramp), -ramp)


@pytest.mark.parametrize(
    ("lnc", "seen"), [(None, [(0, 1, 0)]), (1, [(0, 1, 1)]), (2, [(0, 2, 1), (1, 2, 1)])]
)
def test_a_program_knows_its_place(every, lnc, seen):
    places, nl = [], every.nl

    def kernel():
        places.append((nl.program_id(0), nl.num_programs(0), nl.program_ndim()))

    jitted = every.nki.jit(kernel)
    (jitted if lnc is None else jitted[lnc])()

    assert places == seen


def test_the_axis_may_be_left_out(every):
    assert every.inside(every.nl.program_id) == 0
    assert every.inside(every.nl.num_programs) == 1
    assert every.inside(lambda: every.nl.num_programs(None)) == 1


@pytest.mark.parametrize("axis", [1, -1, "x"])
def test_there_is_one_axis(every, axis):
    with pytest.raises(LaunchError, match="a launch has one axis, the LNC degree"):
        every.inside(lambda: every.nl.program_id(axis))


@pytest.mark.parametrize("lnc", [0, 3, -1, 2.0, True, "2", (2, 2), None])
def test_a_launch_has_one_or_two_cores(every, lnc):
    kernel = every.nki.jit(lambda: None)

    with pytest.raises(LaunchError, match="the LNC degree: 1 or 2"):
        kernel[lnc]


def test_programs_have_their_own_sbuf(now):
    """What the first program wrote is not in the second one's new tile."""
    nl, nisa = now.nl, now.nisa
    seen = []

    def kernel():
        tile = nl.ndarray((1, 4), nl.float32)
        out = nl.ndarray((2, 4), nl.float32, nl.shared_hbm)
        nisa.dma_copy(dst=out[nl.ds(nl.program_id(0), 1), 0:4], src=tile)
        seen.append(tile)
        nisa.memset(tile, 1.0)
        return out

    assert np.isnan(now.nki.jit(kernel)[2]()).all()
    assert seen[0].storage is not seen[1].storage


def test_programs_have_their_own_accumulators(now):
    """Registers of the scalar engine do not leak from one core to the other."""
    nl, nisa = now.nl, now.nisa

    def kernel():
        out = nl.ndarray((2, 1), nl.float32, nl.shared_hbm)
        ones, total = nl.ones((1, 4), nl.float32), nl.ndarray((1, 1), nl.float32)
        nisa.activation(
            ones, nl.copy, ones, reduce_op=nl.add, reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reduce,
        )  # fmt: skip
        nisa.dma_copy(dst=out[nl.ds(nl.program_id(0), 1), 0:1], src=total)
        return out

    assert np.array_equal(now.nki.jit(kernel)[2](), [[4.0], [4.0]])


def test_filling_a_shared_tensor_does_not_undo_another_program(now):
    nl, nisa = now.nl, now.nisa

    def kernel():
        out = nl.zeros((2, 3), nl.float32, nl.shared_hbm)
        nisa.dma_copy(dst=out[nl.ds(nl.program_id(0), 1), 0:3], src=nl.ones((1, 3), nl.float32))
        return out

    assert np.array_equal(now.nki.jit(kernel)[2](), np.ones((2, 3)))


def test_programs_agree_about_shared_tensors(now):
    nl = now.nl

    def kernel():
        return nl.ndarray((2, 3 + nl.program_id(0)), nl.float32, nl.shared_hbm)

    with pytest.raises(LaunchError, match="create different shared tensors"):
        now.nki.jit(kernel)[2]()


@pytest.mark.parametrize("name", ["program_id", "num_programs", "program_ndim"])
def test_program_functions_belong_in_kernels(every, name):
    with pytest.raises(LaunchError, match=rf"nl\.{name} is used outside a kernel"):
        getattr(every.nl, name)()


# -- loops -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["affine_range", "sequential_range", "static_range"])
def test_ranges_are_pythons(every, name):
    loop = getattr(every.nl, name)

    assert list(loop(4)) == [0, 1, 2, 3]
    assert list(loop(2, 9, 3)) == [2, 5, 8]
    assert list(loop(1, 3)) == [1, 2]


@pytest.mark.parametrize("name", ["affine_range", "sequential_range", "static_range"])
@pytest.mark.parametrize("bounds", [(1.5,), ("3",), (0, 4, 0)], ids=str)
def test_bounds_are_compile_time_ints(every, name, bounds):
    with pytest.raises(KernelError, match=rf"(?s)nl\.{name}.*compile-time ints"):
        getattr(every.nl, name)(*bounds)
