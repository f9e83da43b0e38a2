"""What NKI 0.7 limits where 0.6 did not, from both sides and in both versions."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import Engine, ReduceCmd
from neuroncore.errors import AttributeValueError, DTypeError, EngineError, ShapeError


def shape(free_dims):
    """Of eight elements per partition, in so many free dimensions."""
    return (2, *(1,) * (free_dims - 1), 8)


def memset(world, nisa, free_dims):
    nisa.memset(world.new(shape(free_dims)), 1.0)


def tensor_scalar_reduce(world, nisa, free_dims):
    data = world.tile(np.ones(shape(free_dims)))
    nisa.tensor_scalar_reduce(world.new((2, 8)), data, "add", 1.0, "add", world.new((2, 1)))


def tensor_copy_predicated(world, nisa, free_dims):
    chosen = world.tile(np.ones(shape(free_dims)), "uint8")
    nisa.tensor_copy_predicated(world.tile(np.ones((2, 8))), 1.0, chosen)


@pytest.mark.parametrize(
    ("call", "most"), [(memset, 4), (tensor_scalar_reduce, 3), (tensor_copy_predicated, 3)]
)
def test_free_dimensions_are_counted_from_0_7_on(world, nisa, nisa_07, call, most):
    call(world, nisa_07, most)
    call(world, nisa, most + 1)
    with pytest.raises(ShapeError, match=f"expected: at most {most + 1} from 0.7 on"):
        call(world, nisa_07, most + 1)


def copy(world, nisa, dtype="float32", src=1.0, **more):
    dst = world.tile(np.zeros((2, 4)), dtype)
    source = world.tile(np.ones((2, 4)), dtype) if src is None else src
    nisa.tensor_copy_predicated(dst, source, world.tile(np.zeros((2, 4)), "uint8"), **more)
    return dst.array


def test_a_predicate_is_reversed_for_numbers_only(world, nisa, nisa_07):
    assert copy(world, nisa_07, reverse_pred=True).all()
    assert copy(world, nisa, src=None, reverse_pred=True).all()
    with pytest.raises(AttributeValueError, match="reverse_pred with a tile as src"):
        copy(world, nisa_07, src=None, reverse_pred=True)


@pytest.mark.parametrize(
    ("dtype", "right", "wrong"), [("bfloat16", 1.0, 1), ("int8", 1, 1.0), ("float32", 0.5, 2)]
)
def test_a_number_is_of_the_kind_of_dst(world, nisa, nisa_07, dtype, right, wrong):
    copy(world, nisa_07, dtype, right)
    copy(world, nisa, dtype, wrong)
    with pytest.raises(DTypeError, match=f"a {type(wrong).__name__} for {dtype} elements"):
        copy(world, nisa_07, dtype, wrong)


def activation(world, nisa, **more):
    x = world.tile([[0.0, 4.0]])
    nisa.activation(x, "square", x, **more)
    return x.array.tolist()


def activate2(world, nisa, **more):
    x = world.tile([[0.0, 4.0]])
    nisa.activate2(x, "square", x, None, None, "bypass", "bypass", **more)
    return x.array.tolist()


@pytest.mark.parametrize("call", [activation, activate2])
def test_gpsimd_computes_functions_on_gen4(make_world, nisa_07, call):
    assert call(make_world("trn3"), nisa_07, engine=Engine.gpsimd) == [[0, 16]]
    assert call(make_world("trn3"), nisa_07, engine=Engine.scalar) == [[0, 16]]
    with pytest.raises(EngineError, match="gpsimd accumulates nothing"):
        call(make_world("trn3"), nisa_07, engine=Engine.gpsimd, reduce_op="add",
             reduce_cmd=ReduceCmd.reset_reduce)  # fmt: skip


def test_gpsimd_computes_no_function_before_gen4(world, nisa_07):
    with pytest.raises(EngineError, match=r"expected: scalar; gpsimd on gen4, from 0\.7"):
        activation(world, nisa_07, engine=Engine.gpsimd)
