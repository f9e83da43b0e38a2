"""Every public call of 0.1 with one wrong argument: taken, or rejected under a caret, and never a
complaint of Python's or NumPy's own.
"""

import inspect

import numpy as np
import pytest

from neuroncore.errors import KernelError, SignatureError
from neuroncore.instructions import KernelWarning
from nki_beta1 import nisa, nki, nl, nt

P, F = 16, 16
X = np.arange(P * F, dtype=np.float32).reshape(P, F) / 64


def column(dtype=nl.float32, columns=1, value=1):
    return nl.full((P, columns), value, dtype=dtype)


def fresh(dtype=nl.float32, shape=(P, F)):
    return nl.full(shape, 7, dtype=dtype)


def rows_of(x):
    return x[nl.full((P, 1), 3, dtype=nl.int32), nl.arange(F)[None, :]]


CALLS = {
    "activation": lambda t, x: {"op": nl.exp, "data": t},
    "activation_reduce": lambda t, x: {
        "op": nl.square, "data": t, "reduce_op": np.add, "reduce_res": column()},
    "affine_select": lambda t, x: {
        "pred": nl.arange(P)[:, None] >= nl.arange(F)[None, :], "on_true_tile": t,
        "on_false_value": 0.0},
    "bn_aggr": lambda t, x: {"data": nisa.bn_stats(t)},
    "bn_stats": lambda t, x: {"data": t},
    "dma_copy": lambda t, x: {"dst": fresh(), "src": x},
    "dma_transpose": lambda t, x: {"src": t},
    "dropout": lambda t, x: {"data": t, "prob": 0.5},
    "iota": lambda t, x: {
        "expr": nl.arange(P)[:, None] + nl.arange(F)[None, :], "dtype": nl.int32},
    "local_gather": lambda t, x: {
        "src_buffer": t, "index": nl.zeros((P, 1), dtype=nl.uint16)},
    "max8": lambda t, x: {"src": t},
    "memset": lambda t, x: {"shape": (P, F), "value": 1.0, "dtype": nl.float32},
    "nc_find_index8": lambda t, x: {"data": t, "vals": nisa.max8(src=t)},
    "nc_match_replace8": lambda t, x: {"data": t, "vals": nisa.max8(src=t), "imm": 0.0},
    "nc_matmul": lambda t, x: {"stationary": t, "moving": t},
    "nc_stream_shuffle": lambda t, x: {
        "src": nl.zeros((32, F), dtype=nl.float32), "dst": fresh(shape=(32, F)),
        "shuffle_mask": list(range(32))},
    "nc_transpose": lambda t, x: {"data": t},
    "range_select": lambda t, x: {
        "on_true_tile": t, "comp_op0": np.greater_equal, "comp_op1": np.less, "bound0": column(),
        "bound1": column(value=3)},
    "reciprocal": lambda t, x: {"data": t},
    "scalar_tensor_tensor": lambda t, x: {
        "data": t, "op0": np.multiply, "operand0": 2.0, "op1": np.add, "operand1": t},
    "select_reduce": lambda t, x: {
        "dst": fresh(), "predicate": fresh(nl.uint8), "on_true": t, "on_false": 0.0},
    "sequence_bounds": lambda t, x: {"segment_ids": nl.ones((1, F), dtype=nl.float32)},
    "tensor_copy": lambda t, x: {"src": t},
    "tensor_copy_dynamic_dst": lambda t, x: {
        "dst": fresh()[:, column(nl.int32)[0, 0]], "src": t[:, 0:1]},
    "tensor_copy_dynamic_src": lambda t, x: {"src": t[:, column(nl.int32)[0, 0]]},
    "tensor_copy_predicated": lambda t, x: {
        "src": t, "dst": fresh(), "predicate": fresh(nl.uint8)},
    "tensor_partition_reduce": lambda t, x: {"op": np.add, "data": t},
    "tensor_reduce": lambda t, x: {"op": np.add, "data": t, "axis": 1},
    "tensor_scalar": lambda t, x: {"data": t, "op0": np.add, "operand0": 1.0},
    "tensor_scalar_cumulative": lambda t, x: {
        "src": t, "dst": fresh(), "op0": np.add, "op1": np.add, "imm0": 1.0},
    "tensor_scalar_reduce": lambda t, x: {
        "data": t, "op0": np.add, "operand0": 1.0, "reduce_op": np.add, "reduce_res": column()},
    "tensor_tensor": lambda t, x: {"data1": t, "data2": t, "op": np.add},
    "tensor_tensor_scan": lambda t, x: {
        "data0": t, "data1": t, "initial": 0.0, "op0": np.multiply, "op1": np.add},
}  # fmt: skip
"""A legal call of every instruction."""

VALUES = {
    "None": lambda t, x: None,
    "text": lambda t, x: "abc",
    "no text": lambda t, x: "",
    "int": lambda t, x: 3,
    "zero": lambda t, x: 0,
    "negative": lambda t, x: -5,
    "a trillion": lambda t, x: 10**12,
    "a huge number": lambda t, x: 10**400,
    "float": lambda t, x: 2.5,
    "infinity": lambda t, x: float("inf"),
    "nan": lambda t, x: float("nan"),
    "complex": lambda t, x: 1j,
    "bytes": lambda t, x: b"abc",
    "object": lambda t, x: object(),
    "array": lambda t, x: np.ones((2, 2)),
    "array without axes": lambda t, x: np.array(2.0),
    "list": lambda t, x: [1, 2],
    "nested list": lambda t, x: [[1, "a"], 2],
    "empty tuple": lambda t, x: (),
    "huge shape": lambda t, x: (10**9, 10**9),
    "dict": lambda t, x: {"a": 1},
    "set": lambda t, x: {1},
    "range": lambda t, x: range(3),
    "tile": lambda t, x: t,
    "small tile": lambda t, x: fresh(shape=(2, 2)),
    "cube": lambda t, x: fresh(shape=(P, 2, 8)),
    "integers": lambda t, x: fresh(nl.int32),
    "PSUM": lambda t, x: nl.zeros((P, F), dtype=nl.float32, buffer=nl.psum),
    "waiting": lambda t, x: nl.exp(t),
    "HBM": lambda t, x: x,
    "index": lambda t, x: nl.arange(8)[:, None],
    "index tile": lambda t, x: column(nl.int32)[0, 0] + nl.arange(4)[None, :],
    "mask": lambda t, x: nl.arange(8)[:, None] < 4,
    "fitting mask": lambda t, x: nl.arange(P)[:, None] + nl.arange(F)[None, :] < 4,
    "masks": lambda t, x: (nl.arange(P)[:, None] < 4) & (nl.arange(F)[None, :] < 4),
    "rows and columns": lambda t, x: nl.mgrid[0:P, 0:F],
    "ufunc": lambda t, x: np.exp,
    "function": lambda t, x: nl.exp,
    "lambda": lambda t, x: lambda a: a,
    "class": lambda t, x: int,
    "access": lambda t, x: t[nl.arange(8)[:, None], nl.arange(99)[None, :]],
    "wrapped": lambda t, x: t[nl.arange(P)[:, None], nl.arange(F)[None, :] * 5 % F],
    "moved": lambda t, x: t[:, column(nl.int32)[0, 0]],
    "moved past the end": lambda t, x: t[
        nl.arange(P)[:, None], column(nl.int32)[0, 0] + nl.arange(F)[None, :]
    ],
    "rows": lambda t, x: rows_of(x),
    "tiles": lambda t, x: (t, t),
    "bool": lambda t, x: True,
    "module": lambda t, x: nl,
    "dtype": lambda t, x: nl.float32,
    "packed dtype": lambda t, x: nl.float8_e4m3,
    "memory": lambda t, x: nl.psum,
    "engine": lambda t, x: nisa.tensor_engine,
    "slice": lambda t, x: slice(0, 3),
    "scalar": lambda t, x: np.float32(2),
    "blocks": lambda t, x: nl.ndarray((2, nl.par_dim(8), 16), dtype=nl.float32),
    "cores": lambda t, x: nl.nc(2),
}


def outcome(call):
    """What a kernel that makes `call(tile, tensor)` and stores its result ends with."""

    @nki.jit
    def kernel(x):
        result = call(nl.load(x), x)
        if isinstance(result, type(x)) and result.buffer in (nl.sbuf, nl.psum):
            out = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.shared_hbm)
            nl.store(out, value=result)
            return out
        return x

    try:
        kernel(X)
    except KernelError as error:
        return error
    except KernelWarning:  # an error in tests
        return None
    return None


def is_ours(error):
    """An error of ours at the line of the call, with a caret."""
    return error.place is not None and error.place.file == __file__ and "^" in str(error)


def parameters_of(function):
    named = inspect.signature(function).parameters.values()
    return [p.name for p in named if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def complaints(function, fitting):
    """What is not explained, of all calls with one argument wrong."""
    found = []
    for wrong in parameters_of(function):
        for value in VALUES:

            def call(t, x, wrong=wrong, value=value):
                return function(**fitting(t, x) | {wrong: VALUES[value](t, x)})

            try:
                error = outcome(call)
            except Exception as raw:  # what this test is about
                found.append(f"{wrong}={value}: {type(raw).__name__}: {raw}")
            else:
                if error is not None and not is_ours(error):
                    found.append(f"{wrong}={value}: no place: {error}")
                if has_its_name_twice(error):
                    found.append(f"{wrong}={value}: {error}")
    return found


def functions_of(module):
    return {n: f for n, f in vars(module).items() if inspect.isfunction(f) and n in module.__all__}


def has_its_name_twice(error):
    """Such as "local_gather: local_gather takes no mask"."""
    if error is None or error.instruction is None:
        return False
    short = error.instruction.rpartition(".")[2]
    return error.what.startswith((f"{short} ", f"{error.instruction} "))


# -- nisa -----------------------------------------------------------------------------------------

ISA = functions_of(nisa)


@pytest.mark.parametrize("name", CALLS)
def test_the_fitting_arguments_fit(name):
    assert outcome(lambda t, x: ISA[name](**CALLS[name](t, x))) is None


def test_every_instruction_has_a_call():
    assert CALLS.keys() == ISA.keys() - {"get_nc_version"}


@pytest.mark.parametrize("name", CALLS)
def test_an_instruction_explains_every_wrong_argument(name):
    assert complaints(ISA[name], CALLS[name]) == []


# -- nl -------------------------------------------------------------------------------------------

FITTING = {
    "axis": lambda t, x: 1,
    "condition": lambda t, x: t,
    "constant": lambda t, x: np.ones((P, F), np.float32),
    "cores": lambda t, x: nl.nc(1),
    "dst": lambda t, x: nl.ndarray((P, F), dtype=nl.float32, buffer=nl.shared_hbm),
    "dtype": lambda t, x: nl.float32,
    "fill_value": lambda t, x: 1.0,
    "indices": lambda t, x: nisa.iota(
        nl.arange(P)[:, None] * 0 + nl.arange(4)[None, :], dtype=nl.uint32
    ),
    "inner": lambda t, x: nl.nc(1),
    "loop_indices": lambda t, x: [0],
    "n": lambda t, x: 8,
    "op": lambda t, x: np.add,
    "outer": lambda t, x: 1,
    "prefix": lambda t, x: "x",
    "program_axes": lambda t, x: [],
    "rate": lambda t, x: 0.5,
    "seed": lambda t, x: 3,
    "shape": lambda t, x: (P, F),
    "size": lambda t, x: 8,
    "src": lambda t, x: t,
    "start": lambda t, x: 0,
}
"""A value that suits the parameter of that name; a tile suits the others."""

FITTING_OF = {
    "atomic_rmw": {"dst": lambda t, x: nl.ndarray(
        (P, F), dtype=nl.float32, buffer=nl.shared_hbm)[nl.full((P, 1), 3, dtype=nl.int32),
                                                        nl.arange(F)[None, :]]},
    "load": {"src": lambda t, x: x},
    "load_transpose2d": {"src": lambda t, x: x},
}  # fmt: skip
NL = functions_of(nl)


def fitting(name, function):
    """What a function has to be given."""
    parameters = inspect.signature(function).parameters.values()
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    required = [p.name for p in named if p.default is p.empty and p.name != "self"]
    known = FITTING | FITTING_OF.get(name, {})
    return lambda t, x: {p: known.get(p, lambda t, x: t)(t, x) for p in required}


@pytest.mark.parametrize("name", NL)
def test_a_function_explains_every_wrong_argument(name):
    assert complaints(NL[name], fitting(name, NL[name])) == []


METHODS = ["astype", "broadcast_to", "expand_dims", "reshape", "view"]
RECEIVERS = {
    "a tile": lambda t, x: t,
    "HBM": lambda t, x: x,
    "no strides": VALUES["wrapped"],
    "moved": VALUES["moved"],
    "a value": VALUES["waiting"],
}


@pytest.mark.parametrize("receiver", RECEIVERS)
@pytest.mark.parametrize("name", METHODS)
def test_a_method_explains_every_wrong_argument(name, receiver):
    def function(wrong):
        return lambda t, x: getattr(RECEIVERS[receiver](t, x), name)(wrong(t, x))

    assert unexplained(function) == []


def _iadd(t, v):
    t += v
    return t


ACTIONS = {
    "t + v": lambda t, v: t + v,
    "t // v": lambda t, v: t // v,
    "t @ v": lambda t, v: t @ v,
    "t ** v": lambda t, v: t**v,
    "t < v": lambda t, v: t < v,
    "t & v": lambda t, v: t & v,
    "t << v": lambda t, v: t << v,
    "t == v": lambda t, v: t == v,
    "t % v": lambda t, v: t % v,
    "t += v": lambda t, v: _iadd(t, v),
    "v - t": lambda t, v: v - t,
    "t[v]": lambda t, v: t[v],
    "t[v, :]": lambda t, v: t[v, :],
    "t[i, v]": lambda t, v: t[nl.arange(P)[:, None], v],
    "t[v:]": lambda t, v: t[v:],
    "t[...] = v": lambda t, v: t.__setitem__(Ellipsis, v),
    "t[i, j] = v": lambda t, v: t.__setitem__(tuple(nl.mgrid[0:P, 0:F]), v),
    "t[moved] = v": lambda t, v: t[:, column(nl.int32)[0, 0]].__setitem__(Ellipsis, v),
    "t[v] = 1": lambda t, v: t.__setitem__(v, 1.0),
    "i + v": lambda t, v: nl.arange(P)[:, None] + v,
    "i < v": lambda t, v: nl.arange(P)[:, None] < v,
    "i % v": lambda t, v: nl.arange(P)[:, None] % v,
    "mask & v": lambda t, v: (nl.arange(P)[:, None] < 4) & v,
    "mgrid[0:v]": lambda t, v: nl.mgrid[0:v],
    "nt.scalar(v)": lambda t, v: nt.scalar(v),
    "returns v": lambda t, v: nested(v),
}


@nki.jit
def nested(x):
    return x


@pytest.mark.parametrize("value", VALUES)
def test_a_grid_is_taken_or_rejected(value):
    def function(t, x):
        nested[VALUES[value](t, x)](x)

    error = outcome(function)

    assert error is None or is_ours(error)


def unexplained(function):
    """As `complaints`, for `function(value)(tile, tensor)`."""
    found = []
    for value, make in VALUES.items():
        try:
            error = outcome(function(make))
        except Exception as raw:  # what this test is about
            found.append(f"{value}: {type(raw).__name__}: {raw}")
        else:
            if error is not None and not is_ours(error):
                found.append(f"{value}: no place: {error}")
    return found


@pytest.mark.parametrize("action", ACTIONS)
def test_no_operand_or_index_makes_python_complain(action):
    def function(wrong):
        return lambda t, x: ACTIONS[action](t, wrong(t, x))

    assert unexplained(function) == []


@pytest.mark.parametrize("axis", [True, (True,), [np.True_]], ids=repr)
@pytest.mark.parametrize("name", ["sum", "mean", "softmax", "all", "max", "var"])
def test_a_truth_value_is_no_axis(name, axis, evaluate):
    with pytest.raises(SignatureError, match=rf"nl\.{name}: axis cannot be"):
        evaluate(lambda t: getattr(nl, name)(t, axis=axis), np.ones((4, 4), np.float32))
