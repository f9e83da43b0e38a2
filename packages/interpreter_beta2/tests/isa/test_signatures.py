"""How each version spells its instructions."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from neuroncore.errors import KernelError, SignatureError
from nki_beta2 import BACKEND, language

ALL = BACKEND.versions
FROM_0_3 = ALL[1:]
FROM_0_4 = ALL[2:]

# Calls as public kernels write them (arguments by position where those do), the versions they are
# written for, and which parameter each argument is.
CALLS = [
    ("tensor_copy(dst, src)", ALL, "dst src"),
    ("tensor_copy(dst, src, eng)", ALL, "dst src engine"),
    ("tensor_tensor(dst, a, b, op)", ALL, "dst data1 data2 op"),
    ("tensor_tensor(dst, a, b, op, eng)", ALL, "dst data1 data2 op engine"),
    ("tensor_scalar(dst, a, op, s)", ALL, "dst data op0 operand0"),
    (
        "tensor_scalar(dst, a, op, s, False, op, s, True)",
        ALL,
        "dst data op0 operand0 reverse0 op1 operand1 reverse1",
    ),
    ("tensor_scalar(dst, a, op, s, op1=op, operand1=s)", ALL, "dst data op0 operand0 op1 operand1"),
    ("tensor_reduce(dst, op, a, 1)", ALL, "dst op data axis"),
    ("tensor_reduce(dst, op, a, (1,), True, True)", ALL, "dst op data axis negate keepdims"),
    ("activation(dst, op, a)", ALL, "dst op data"),
    ("activation(dst, op, a, b, s)", ALL, "dst op data bias scale"),
    (
        "activation(dst, op, a, b, s, op, r, cmd)",
        ALL,
        "dst op data bias scale reduce_op reduce_res reduce_cmd",
    ),
    ("reciprocal(dst, a)", ALL, "dst data"),
    ("memset(dst, 0)", ALL, "dst value"),
    ("memset(dst, 0.0, eng)", ALL, "dst value engine"),
    ("nc_transpose(dst, a)", ALL, "dst data"),
    ("nc_transpose(dst, a, eng)", ALL, "dst data engine"),
    ("nc_matmul(dst, w, x)", ALL, "dst stationary moving"),
    (
        "nc_matmul(dst, w, x, False, True, False)",
        ALL,
        "dst stationary moving is_stationary_onezero is_moving_onezero is_transpose",
    ),
    (
        "nc_matmul(dst, w, x, False, False, False, (0, 0), (32, 32))",
        ("0.2",),
        "dst stationary moving is_stationary_onezero is_moving_onezero is_transpose "
        "tile_position tile_size",
    ),
    (
        "nc_matmul(dst, w, x, False, False, False, True, (0, 0), (32, 32))",
        FROM_0_3,
        "dst stationary moving is_stationary_onezero is_moving_onezero is_transpose accumulate "
        "tile_position tile_size",
    ),
    ("dma_copy(dst, src)", ALL, "dst src"),
    ("dma_copy(dst, src, op, oob, dge, True)", ("0.2",), "dst src dst_rmw_op oob_mode dge_mode "
     "unique_indices"),
    ("dma_copy(dst, src, oob, dge, eng)", ("0.3",), "dst src oob_mode dge_mode engine"),
    ("dma_copy(dst, src, None, oob, dge, eng)", FROM_0_4, "dst src priority oob_mode dge_mode "
     "engine"),
    ("exponential(dst, x)", ALL, "dst src"),
    ("exponential(dst, x, m, r, cmd, 1.0)", ALL, "dst src max_value reduce_res reduce_cmd "
     "reduce_init"),
    ("activate2(dst, op, x, 1.0, 2.0, op, op)", FROM_0_4, "dst op data imm0 imm1 op0 op1"),
    ("activate2(dst, op, x, 1.0, 2.0, op, op, 0.5, False, True)", FROM_0_4,
     "dst op data imm0 imm1 op0 op1 relu_param reverse0 reverse1"),
    ("nonzero_with_count(dst, x, 16, -1)", ALL, "dst src index_offset padding_val"),
    ("topk(v, i, x, 42)", ALL[4:5], "val_dst idx_dst src n"),
    ("topk(val_dst=v, idx_dst=i, src=x, n=42)", ALL[4:5], "val_dst idx_dst src n"),
    ("quantize_mx(dst=d, src=x, dst_scale=s)", ALL, "dst src dst_scale"),
    ("nc_matmul_mx(dst, a, b, s, t)", ALL, "dst stationary moving stationary_scale moving_scale"),
    ("nc_matmul_mx(dst, a, b, s, t, (0, 0), (32, 128), True)", FROM_0_3, "dst stationary moving "
     "stationary_scale moving_scale tile_position tile_size accumulate"),
    ("dma_compute(dst, s, w, op)", ("0.2",), "dst srcs scales reduce_op"),
    ("dma_compute(dst, s, op, w, True)", FROM_0_3, "dst srcs reduce_op scales unique_indices"),
    ("dma_compute(dst=d, srcs=s, scales=w, reduce_op=op)", ALL, "dst srcs scales reduce_op"),
    ("iota(dst, p, 5)", ALL, "dst pattern offset"),
    ("iota(dst, p, 5, 1)", ALL, "dst pattern offset channel_multiplier"),
    ("iota(dst, p, channel_multiplier=1)", FROM_0_3, "dst pattern channel_multiplier"),
    (
        "affine_select(dst, p, 5, 1, a, 0.0, op)",
        ("0.2",),
        "dst pattern offset channel_multiplier on_true_tile on_false_value cmp_op",
    ),
    (
        "affine_select(dst, p, 1, a, 0.0, op, 5)",
        FROM_0_3,
        "dst pattern channel_multiplier on_true_tile on_false_value cmp_op offset",
    ),
    (
        "affine_select(dst, p, 1, a, 0.0)",
        FROM_0_3,
        "dst pattern channel_multiplier on_true_tile on_false_value",
    ),
]  # fmt: skip


class _Word(str):
    """A value of which only the name matters."""

    __slots__ = ()


class _Words(dict):
    def __missing__(self, name: str) -> _Word:
        return _Word(name)


def bound(call: str, version: str) -> list[str]:
    """The parameters that a call's arguments fill, in the order in which they are written."""
    name = call.partition("(")[0]
    given = inspect.signature(getattr(language(version)[2], name))
    arguments = eval(call.replace(name, "_give", 1), _Words(_give=lambda *a, **k: (a, k)))
    filled = given.bind(*arguments[0], **arguments[1])
    return list(filled.arguments)


@pytest.mark.parametrize(
    ("call", "version", "parameters"),
    [(call, v, names) for call, versions, names in CALLS for v in versions],
)
def test_arguments_by_position_reach_their_parameters(call, version, parameters):
    assert sorted(bound(call, version)) == sorted(parameters.split())
    positional = [n for n in parameters.split() if f"{n}=" not in call]
    assert bound(call, version)[: len(positional)] == positional


# Defaults as the stubs print them.
DEFAULTS = {
    "activation": "bias=None scale=1.0 reduce_op=None reduce_res=None reduce_cmd=reduce_cmd.idle",
    "affine_select": "cmp_op=nl.equal",
    "dma_copy": "oob_mode=oob_mode.error dge_mode=dge_mode.unknown",
    "iota": "channel_multiplier=0",
    "memset": "engine=engine.unknown",
    "nc_matmul": "is_stationary_onezero=False is_moving_onezero=False is_transpose=False "
    "tile_position=() tile_size=() perf_mode=matmul_perf_mode.none",
    "nc_transpose": "engine=engine.unknown",
    "reciprocal": "",
    "tensor_copy": "engine=engine.unknown",
    "tensor_reduce": "negate=False keepdims=False",
    "tensor_scalar": "reverse0=False op1=None operand1=None reverse1=False engine=engine.unknown",
    "tensor_tensor": "engine=engine.unknown",
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_the_documented_ones(every, name):
    parameters = inspect.signature(getattr(every.nisa, name)).parameters

    for text in DEFAULTS[name].split():
        parameter, _, value = text.partition("=")
        owner, _, member = value.partition(".")
        if owner == "nl":
            expected = member
        elif hasattr(every.nisa, owner):
            expected = getattr(every.nisa, owner)[member]
        else:
            expected = eval(value)
        assert parameters[parameter].default == expected
    assert list(parameters)[-1] == "name"
    assert parameters["name"].default is None


@pytest.mark.parametrize(
    ("name", "parameter", "versions"),
    [
        ("nc_matmul", "accumulate", FROM_0_3),
        ("dma_copy", "dst_rmw_op", ("0.2",)),
        ("dma_copy", "unique_indices", ("0.2",)),
        ("dma_copy", "engine", FROM_0_3),
        ("dma_copy", "priority", FROM_0_4),
    ],
)
def test_parameters_come_and_go(name, parameter, versions):
    having = [
        v for v in ALL if parameter in inspect.signature(getattr(language(v)[2], name)).parameters
    ]

    assert tuple(having) == versions


# -- and the calls do what they say ----------------------------------------------------------------


def test_affine_select_by_position(every, ramp):
    """Keep x[p, i] where 2 + p - i >= 0."""
    nl, nisa = every.nl, every.nisa

    def kernel(x):
        t = every.tile(x)
        if every.version == "0.2":
            nisa.affine_select(t, [[-1, 8]], 2, 1, t, -1.0, nl.greater_equal)
        else:
            nisa.affine_select(t, [[-1, 8]], 1, t, -1.0, nl.greater_equal, 2)
        return every.out(t)

    assert np.array_equal(every.run(kernel, ramp), np.where(np.tri(4, 8, 2) > 0, ramp, -1.0))


@pytest.mark.parametrize("version", ALL)
def test_the_other_versions_order_is_rejected_and_explained(speak, version, ramp):
    lang, old = speak(version), version == "0.2"
    nl, nisa = lang.nl, lang.nisa

    def kernel(x):
        t = lang.tile(x)
        if old:
            nisa.affine_select(t, [[-1, 8]], 1, t, -1.0, nl.greater_equal, 2)
        else:
            nisa.affine_select(t, [[-1, 8]], 2, 1, t, -1.0, nl.greater_equal)

    with pytest.raises(KernelError) as wrong:
        lang.run(kernel, ramp)
    other = "NKI 0.3 to 0.7 took" if old else "NKI 0.2 took"
    assert f"by position? {other} affine_select(" in str(wrong.value)


def test_accumulate_by_position(every):
    """Two matmuls into one tile: from 0.3 on the seventh argument says whether they add up."""
    nl, nisa = every.nl, every.nisa
    w, x = np.eye(4, 3, dtype=np.float32), np.ones((4, 5), np.float32)

    def kernel(w, x):
        left, right = every.tile(w), every.tile(x)
        acc, tile = nl.ndarray((3, 5), nl.float32, nl.psum), nl.ndarray((3, 5), nl.float32)
        for add in (False, True):
            flags = (False, False, False) if every.version == "0.2" else (False, False, False, add)
            nisa.nc_matmul(acc, left, right, *flags)
        nisa.tensor_copy(tile, acc)
        return every.out(tile)

    assert np.array_equal(every.run(kernel, w, x), 2 * (w.T @ x))


@pytest.mark.parametrize("version", ALL)
def test_the_third_argument_of_dma_copy(speak, version, ramp):
    """0.2: an operation that adds into dst; 0.3: the mode out of bounds; 0.4: a priority."""
    lang = speak(version)
    third = {"0.2": lang.nl.add, "0.3": lang.nisa.oob_mode.skip}.get(version)

    def kernel(x):
        tile = lang.nl.zeros((4, 8), lang.nl.float32)
        lang.nisa.dma_copy(tile, x, third)
        lang.nisa.dma_copy(tile, x, third)
        return lang.out(tile)

    assert np.array_equal(lang.run(kernel, ramp), 2 * ramp if version == "0.2" else ramp)


@pytest.mark.parametrize("version", ALL)
def test_an_argument_of_another_version_is_rejected(speak, version, ramp):
    lang = speak(version)
    foreign = {"accumulate": False} if version == "0.2" else {"dst_rmw_op": None}
    name = "nc_matmul" if version == "0.2" else "dma_copy"

    def kernel(x):
        t = lang.tile(x)
        getattr(lang.nisa, name)(t, t, **({"moving": t} if version == "0.2" else {}), **foreign)

    span = "0.3 to 0.7" if version == "0.2" else "0.2"
    with pytest.raises(SignatureError, match=f"is a parameter in NKI {span}"):
        lang.run(kernel, ramp)
