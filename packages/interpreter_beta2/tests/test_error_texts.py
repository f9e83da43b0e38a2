"""The message of a mistake: where it is, what was expected and given, and the rule."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest


@pytest.fixture
def says(complaint):
    """`says(statements, text, …)`: a kernel of these statements ends in this text.

    `x` is a parameter; `t`, `u`, `acc` are new tiles of (128, 64) in SBUF, the last in PSUM.
    """

    def check(statement, text, version="0.6", target="trn2", x=None):
        source = HEAD + f"    {statement}\n\nkernel(array)\n"
        array = np.zeros((128, 64), np.float32) if x is None else x
        assert complaint(source, version, target, array=array) == dedent(text).strip("\n")

    return check


HEAD = """\
@nki.jit
def kernel(x):
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    u = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    acc = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
"""


def test_an_unknown_dtype(says):
    says(
        "nl.ndarray((128, 64), dtype='float31', buffer=nl.sbuf)",
        """
        kernel.py:6:5: 'float31' is not an NKI dtype
            nl.ndarray((128, 64), dtype='float31', buffer=nl.sbuf)
                                        ^^^^^^^^^
            expected: one of bool_, int8, int16, int32, uint8, uint16, uint32, float16, \
bfloat16, float32, tfloat32, float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, \
float8_e5m2_x4, float8_e4m3fn_x4, float4_e2m1fn_x4, or an alias of one
            got:      'float31' (a string)
            did you mean float32 or float16 or tfloat32?
            [NKI: supported data types]
        """,
    )


def test_129_partitions(says):
    says(
        "nl.ndarray((129, 64), dtype=nl.float32, buffer=nl.sbuf)",
        """
        kernel.py:6:5: 129 partitions in SBUF
            nl.ndarray((129, 64), dtype=nl.float32, buffer=nl.sbuf)
                       ^^^^^^^^^
            expected: at most 128
            got:      shape (129, 64), float32
            dimension 0 is the partition dimension: tile it, or put it into the free dimensions
            [NKI architecture guide: on-chip memories have 128 partitions]
        """,
    )


def test_a_result_across_two_psum_banks(says):
    says(
        "nisa.nc_matmul(nl.ndarray((64, 1024), nl.float32, nl.psum)[0:64, 480:544], t, u)",
        """
        kernel.py:6:5: nc_matmul: dst reaches byte 2176 of a PSUM bank
            nisa.nc_matmul(nl.ndarray((64, 1024), nl.float32, nl.psum)[0:64, 480:544], t, u)
                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            expected: one PSUM bank of 2048 bytes
            got:      shape (64, 64), float32, PSUM from byte 1920 of its bank
            [NKI: nc_matmul, one PSUM bank]
        """,
    )


def test_more_psum_than_there_is(says):
    says(
        "nl.ndarray((128, 4097), dtype=nl.float32, buffer=nl.psum)",
        """
        kernel.py:6:5: 16388 bytes per partition do not fit PSUM
            nl.ndarray((128, 4097), dtype=nl.float32, buffer=nl.psum)
                       ^^^^^^^^^^^
            expected: at most 16384 bytes per partition on trn2
            got:      shape (128, 4097), float32
            [NKI architecture guide: PSUM size]
        """,
    )


def test_a_rejected_dtype(says):
    says(
        "nisa.nc_matmul(acc, t.view(nl.int32), u)",
        """
        kernel.py:6:5: nc_matmul: stationary is int32
            nisa.nc_matmul(acc, t.view(nl.int32), u)
                                ^^^^^^^^^^^^^^^^
            expected: bfloat16, float16, float32, float8_e4m3, float8_e4m3fn, float8_e5m2, tfloat32
            got:      shape (128, 64), int32, SBUF
            [NKI: nc_matmul, dtypes]
        """,
    )


def test_an_array_of_64_bits(complaint):
    source = HEAD + "\nkernel(x=array)\n"

    assert complaint(source, array=np.zeros((2, 2))).splitlines()[:3] == [
        "kernel.py:7:1: dtype('float64') is not an NKI dtype",
        "    kernel(x=array)",
        "             ^^^^^",
    ]


def test_a_slice_out_of_range(says):
    says(
        "nisa.tensor_copy(dst=t, src=u[0:128, 0:65])",
        """
        kernel.py:6:33: slice 0:65 is outside dimension 1
            nisa.tensor_copy(dst=t, src=u[0:128, 0:65])
                                        ^^^^^^^^^^^^^^
            expected: 0 <= start < stop <= 64 and step >= 1
            got:      start 0, stop 65, step 1 on a tensor of shape (128, 64)
            clamp the bound with min(…) where the last tile is ragged
            [NKI language guide: tensor indexing]
        """,
    )


def test_a_write_to_an_array_that_is_read_only(says):
    array = np.zeros((128, 64), np.float32)
    array.flags.writeable = False

    says(
        "nisa.dma_copy(x, t)",
        """
        kernel.py:6:5: dma_copy: dst is read-only
            nisa.dma_copy(x, t)
                          ^
            expected: a tensor made with nl.ndarray, or an argument that may be written
            got:      shape (128, 64), float32, HBM
            an argument may be written when its NumPy array is writable \
(array.flags.writeable) and shares no memory with another that has to be copied; in 0.1 only when \
it is declared mutable
            [NKI language guide: kernel parameters]
        """,
        x=array,
    )


def test_a_wrong_engine(says):
    says(
        "nisa.tensor_copy(dst=t, src=u, engine=nisa.engine.tensor)",
        """
        kernel.py:6:5: tensor_copy: the tensor engine cannot execute it
            nisa.tensor_copy(dst=t, src=u, engine=nisa.engine.tensor)
                                                  ^^^^^^^^^^^^^^^^^^
            expected: vector, scalar, gpsimd
            got:      tensor
            [NKI: tensor_copy, engine]
        """,
    )


def test_an_engine_that_does_not_reach_the_memory(says):
    says(
        "nisa.tensor_copy(dst=acc, src=u[0:64], engine=nisa.engine.gpsimd)",
        """
        kernel.py:6:5: tensor_copy: the gpsimd engine does not reach PSUM (dst)
            nisa.tensor_copy(dst=acc, src=u[0:64], engine=nisa.engine.gpsimd)
                                 ^^^
            expected: SBUF
            got:      shape (64, 64), float32, PSUM
            [NKI architecture guide: engine reach]
        """,
    )


def test_too_many_arguments_for_the_version(says):
    says(
        "nisa.reciprocal(t, u, None, None)",
        """
        kernel.py:6:5: reciprocal: too many arguments
            nisa.reciprocal(t, u, None, None)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            expected: reciprocal(dst, data, name)
            got:      4 arguments
            [NKI 0.6: signature of reciprocal]
        """,
    )


def test_too_few_arguments_for_the_version(says):
    says(
        "nisa.iota(t, [[1, 64]])",
        """
        kernel.py:6:5: iota: argument 'offset' is missing
            nisa.iota(t, [[1, 64]])
            ^^^^^^^^^^^^^^^^^^^^^^^
            expected: iota(dst, pattern, offset, channel_multiplier, name)
            got:      offset missing
            [NKI 0.2: signature of iota]
        """,
        version="0.2",
    )


def test_an_argument_that_only_other_versions_take(says):
    says(
        "nisa.nc_matmul(acc, t, u, accumulate=False)",
        """
        kernel.py:6:5: nc_matmul: no parameter 'accumulate'
            nisa.nc_matmul(acc, t, u, accumulate=False)
                                                 ^^^^^
            expected: nc_matmul(dst, stationary, moving, is_stationary_onezero, \
is_moving_onezero, is_transpose, tile_position, tile_size, perf_mode, name)
            got:      accumulate
            accumulate is a parameter in NKI 0.3 to 0.7
            [NKI 0.2: signature of nc_matmul]
        """,
        version="0.2",
    )


def test_a_call_written_for_another_version(says):
    says(
        "nisa.affine_select(t, [[1, 64]], 0, 1, u, 0.0)",
        """
        kernel.py:6:5: affine_select: on_true_tile cannot be a int
            nisa.affine_select(t, [[1, 64]], 0, 1, u, 0.0)
                                                ^
            expected: a tensor
            got:      1
            by position? NKI 0.2 took affine_select(dst, pattern, offset, channel_multiplier, \
on_true_tile, on_false_value, cmp_op, name)
            [NKI 0.6: affine_select(dst, pattern, channel_multiplier, on_true_tile, \
on_false_value, cmp_op, offset, name)]
        """,
    )


def test_a_0_1_habit(says):
    says(
        "nisa.tensor_copy(dst=t, src=u, mask=None)",
        """
        kernel.py:6:5: tensor_copy: no parameter 'mask'
            nisa.tensor_copy(dst=t, src=u, mask=None)
                                                ^^^^
            expected: tensor_copy(dst, src, engine, name)
            got:      mask
            mask= and dtype= ended with 0.1: clamp slices with min(), and put the dtype on dst
            [NKI 0.6: signature of tensor_copy]
        """,
    )


def test_a_misspelt_argument(says):
    says(
        "nisa.tensor_copy(dst=t, scr=u)",
        """
        kernel.py:6:5: tensor_copy: no parameter 'scr'
            nisa.tensor_copy(dst=t, scr=u)
                                        ^
            expected: tensor_copy(dst, src, engine, name)
            got:      scr
            did you mean src?
            [NKI 0.6: signature of tensor_copy]
        """,
    )


def test_a_flag_that_is_not_modelled(complaint):
    source = """\
@nki.jit(platform_target="trn2")
def kernel(x):
    return x
"""

    assert complaint(source) == dedent(
        """\
        kernel.py:1:2: nki.jit(platform_target='trn2') is an error from 0.3 on
            @nki.jit(platform_target="trn2")
                                     ^^^^^^
            expected: nki.jit without a target
            got:      platform_target='trn2'
            choose the target with NEURON_PLATFORM_TARGET_OVERRIDE or use(target=…)
            [NKI 0.6: nki.jit]"""
    )


def test_an_operation_that_is_no_function(says):
    says(
        "nl.prelu(t)",
        """
        kernel.py:6:5: nl.prelu is not a function on tiles in this version
            nl.prelu(t)
            ^^^^^^^^^^^
            expected: an nki.isa instruction with a destination
            got:      nl.prelu(…)
            use it as an operation: nisa.activation(dst=…, op=nl.prelu, data=…)
            [NKI: nki.language, tile functions (0.3 and later)]
        """,
    )


def test_a_numpy_array_where_a_tensor_belongs(says):
    says(
        "nisa.tensor_copy(t, __import__('numpy').ones((128, 64)))",
        """
        kernel.py:6:5: tensor_copy: src cannot be a ndarray
            nisa.tensor_copy(t, __import__('numpy').ones((128, 64)))
                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            expected: a tensor
            got:      a NumPy array of shape (128, 64), float64
            arrays become tensors as arguments of the kernel: pass it to the kernel's call
            [NKI 0.6: tensor_copy(dst, src, engine, name)]
        """,
    )


def test_arithmetic_on_tensors(says):
    says(
        "y = t * 2.0",
        """
        kernel.py:6:9: the operator * on tensors
            y = t * 2.0
                ^^^^^^^
            expected: an instruction with a destination
            got:      <(128, 64), float32, SBUF>
            nisa.tensor_tensor for two tiles, nisa.tensor_scalar for a number or (P, 1)
            [NKI language guide: no tensor arithmetic]
        """,
    )


def test_assignment_to_elements(says):
    says(
        "t[0:128, 0:1] = 0.0",
        """
        kernel.py:6:5: assignment to tensor elements
            t[0:128, 0:1] = 0.0
            ^^^^^^^^^^^^^
            expected: an instruction that writes them
            got:      <(128, 64), float32, SBUF>
            nisa.tensor_copy(dst=t[…], src=…) or nisa.memset(dst=t[…], value=…)
            [NKI language guide: tensors are written by instructions]
        """,
    )


def test_a_result_on_chip(complaint):
    source = HEAD + "    return t\n\nkernel(array)\n"

    assert complaint(source, array=np.zeros((2, 2), np.float32)) == dedent(
        """\
        kernel.py:8:1: kernel kernel returns a tensor in SBUF
            kernel(array)
            ^^^^^^^^^^^^^
            expected: a tensor made with buffer=nl.shared_hbm
            got:      <(128, 64), float32, SBUF>
            copy the result there with nisa.dma_copy and return that tensor
            [NKI 0.3 migration guide: kernel outputs are shared_hbm]"""
    )


def test_a_call_over_several_lines(says):
    """The caret is under the argument, wherever it stands."""
    says(
        "nisa.tensor_tensor(\n        dst=t, data1=t,\n        data2=acc, op=nl.add,\n    )",
        """
        kernel.py:6:5: tensor_tensor: data2 has 64 partitions, dst 128
            data2=acc, op=nl.add,
                  ^^^
            expected: 128 partitions
            got:      data2: shape (64, 64), float32, PSUM; dst: shape (128, 64), float32, SBUF
            [NKI: tensor_tensor, shapes]
        """,
    )


# -- loops on the device (0.7) --------------------------------------------------------------------

LOOP_HEAD = """\
@nki.jit
def kernel(n):
"""


@pytest.mark.parametrize(("body", "expected"), [
    ("    nl.fori_loop(0, 3, lambda i: i)", """\
        kernel.py:3:5: the body of nl.fori_loop returns something
            nl.fori_loop(0, 3, lambda i: i)
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            expected: None
            got:      <scalar, int32>
            write a def without return; tensors carry state
            [NKI: nl.fori_loop]"""),
    ("    if nisa.scalar_load(n) < 4:\n        pass", """\
        kernel.py:3:8: the result of a comparison of scalars is used
            if nisa.scalar_load(n) < 4:
               ^^^^^^^^^^^^^^^^^^^^^^^
            expected: a number
            got:      <comparison of scalars, int32>
            compare tensors: nisa.tensor_tensor(…, op=nl.less)
            [NKI 0.7: NkiScalar, comparisons]"""),
    ("    for i in nl.dynamic_range(3):\n        pass", """\
        kernel.py:3:14: nki.language.dynamic_range is not part of NKI 0.7
            for i in nl.dynamic_range(3):
                     ^^^^^^^^^^^^^^^^
            expected: one of the names that dir(nki.language) lists
            got:      dynamic_range
            nl.fori_loop(start, stop, body) replaces it; it is part of NKI up to 0.6
            [NKI 0.7: nki.language]"""),
    ("    while nisa.register_alloc(3):\n        pass", """\
        kernel.py:3:5: the truth value of a register
            while nisa.register_alloc(3):
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            expected: a compile-time value
            got:      <register, int32>
            the device alone has it: nl.while_loop replaces `while register:` of NKI up to 0.6
            [NKI 0.7: values of the device in Python's control flow]"""),
])  # fmt: skip
def test_loops_and_numbers_of_the_device(complaint, body, expected):
    source = f"{LOOP_HEAD}{body}\n\nkernel(array)\n"
    told = complaint(source, version="0.7", array=np.zeros((1, 1), np.int32))
    assert told == dedent(expected)
