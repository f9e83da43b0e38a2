""".ap: flat[offset + Σ step · index], its bounds, its versions, its dynamic offsets."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError, DTypeError, KernelError, UnsupportedError
from neuroncore.memory import IndexRules
from neuroncore.memory.dynamic import resolve_scalar


@pytest.fixture
def t(world):
    """(4, 12) in SBUF."""
    return world.tile(np.arange(48).reshape(4, 12))


@pytest.fixture
def far(world):
    """(4, 12) in HBM."""
    return world.tile(np.arange(48).reshape(4, 12), space="hbm")


def by_hand(flat, pattern, offset=0):
    """The definition, index by index."""
    counts = [n for _, n in pattern]
    found = [
        flat[offset + sum(step * i for (step, _), i in zip(pattern, at, strict=True))]
        for at in np.ndindex(*counts)
    ]
    return np.array(found).reshape(counts)


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ([[12, 4], [1, 12]], 0),
        ([[12, 4], [2, 6]], 1),
        ([(12, 2), (0, 3), (4, 3)], 2),
        ([[12, 4], [3, 4], [1, 3]], 0),
        ([[12, 4], [-1, 12]], 11),
        ([[5, 1], [1, 2]], 24),
    ],
)
def test_a_pattern_on_chip_is_its_definition(t, pattern, offset):
    view = t.ap(pattern, offset)

    np.testing.assert_array_equal(view.array, by_hand(np.arange(48), pattern, offset))
    assert view.spec.start == offset // 12


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [([[1, 48]], 0), ([[1, 12], [12, 4]], 0), ([[5, 9], [1, 3]], 1), ([[-1, 48]], 47)],
)
def test_hbm_takes_any_pattern_inside_the_tensor(far, pattern, offset):
    np.testing.assert_array_equal(
        far.ap(pattern, offset).array, by_hand(np.arange(48), pattern, offset)
    )


@pytest.mark.parametrize(
    ("pattern", "offset", "message"),
    [
        ([[12, 5], [1, 12]], 0, "leaves the tensor"),
        ([[12, 4], [1, 12]], 1, "leaves the tensor"),
        ([[12, 4], [1, 12]], -1, "leaves the tensor"),
        ([[6, 4], [1, 6]], 0, "the first pair of an on-chip pattern is the partition access"),
        ([[24, 2], [1, 12]], 0, "the first pair of an on-chip pattern is the partition access"),
        ([[12, 3], [1, 12]], 1, "runs into the next partition"),
        ([[12, 3], [-1, 12]], 12, "runs into the previous partition"),
        ([[12, 4], [1, 0]], 0, "a list of [step, count] pairs"),
        ([], 0, "a list of [step, count] pairs"),
        ([[12, 4], [1 << 70, 1]], 0, "leads out of every memory"),
        ([12, 4], 0, "a list of [step, count] pairs"),
        (None, 0, "a list of [step, count] pairs"),
    ],
)
def test_patterns_that_do_not_fit_are_named(t, pattern, offset, message):
    with pytest.raises(AccessError) as raised:
        t.ap(pattern, offset)

    assert message in raised.value.what


@pytest.mark.parametrize(
    ("mode", "given", "offset"),
    [("compose", None, 14), ("compose", 3, 17), ("replace", None, 0), ("replace", 3, 3)],
)
def test_the_offset_of_an_indexed_view_composes_or_is_replaced(make_world, mode, given, offset):
    world = make_world(rules=IndexRules(ap_on_view=mode))
    view = world.tile(np.arange(48).reshape(4, 12), space="hbm")[1:3, 2:6]

    assert view.ap([[1, 1]], given).offset == offset


def test_up_to_04_an_indexed_view_has_no_ap(make_world):
    world = make_world(rules=IndexRules(ap_on_view="reject"))
    t = world.tile(np.arange(48).reshape(4, 12))

    assert t.ap([[12, 4], [1, 2]]).shape == (4, 2)
    with pytest.raises(AccessError, match=r"ap\(\) on a view that has been indexed already"):
        t[:, 0:6].ap([[12, 4], [1, 2]])


def test_another_dtype_counts_its_own_elements(t):
    view = t.ap([[24, 4], [1, 24]], dtype="uint16")

    assert view.array.tobytes() == t.array.tobytes()
    with pytest.raises(AccessError, match="is the partition access"):
        t.ap([[12, 4], [1, 12]], dtype="uint16")


def test_another_dtype_must_divide_a_partition(world):
    odd = world.tile(np.zeros((4, 3)), "uint8")

    with pytest.raises(KernelError, match="float32"):
        odd.ap([[1, 1], [1, 1]], dtype="float32")
    with pytest.raises(DTypeError):
        odd.ap([[3, 1], [1, 1]], dtype="float64")


def test_a_tensor_that_was_placed_keeps_its_first_partition(world):
    placed = world.core.allocate((32, 8), "float32", MemorySpace.sbuf, address=(64, 0))

    assert placed.spec.start == 64
    assert placed.ap([[8, 32], [1, 4]]).spec.start == 64
    assert placed[0:16].ap([[8, 16], [1, 4]]).spec.start == 64


# -- dynamic offsets ------------------------------------------------------------------------------


def test_the_index_of_a_dynamic_access_is_checked(world, t, far):
    one, floats = world.tile([[1]], "int32"), world.tile([[1.0]])
    many, in_psum = world.tile([[1], [2]], "int32"), world.tile([[1]], "int32", "psum")
    wrong = [
        (far, {"scalar_offset": one, "vector_offset": one}, "exclude each other"),
        (far, {"scalar_offset": 1}, "a dynamic offset is a tensor in SBUF, not a int"),
        (far, {"scalar_offset": floats}, "the index of a dynamic access does not fit"),
        (far, {"scalar_offset": many}, "the index of a dynamic access does not fit"),
        (far, {"vector_offset": one}, "the index of a dynamic access does not fit"),
        (far, {"scalar_offset": in_psum}, "the index of a dynamic access does not fit"),
        (t, {"vector_offset": many}, "vector_offset indexes dimension 0 of an HBM tensor"),
        (far, {"vector_offset": many, "indirect_dim": 1}, "vector_offset indexes dimension 0"),
        (far, {"scalar_offset": one, "indirect_dim": 2}, "indirect_dim 2 is not a dimension"),
    ]

    for tensor, given, message in wrong:
        with pytest.raises(AccessError) as raised:
            tensor.ap([[12, 2], [1, 12]], **given)
        assert message in raised.value.what


@pytest.mark.parametrize(
    ("shape", "dim", "at"), [((2, 2, 12), 1, 12), ((4, 3, 4), 0, 12), ((4, 3, 4), 1, 4)]
)
def test_a_dynamic_offset_counts_in_the_shape_that_was_asked_for(world, far, shape, dim, at):
    """One step of a dimension is what follows it in the reshaped tensor, not in the first."""
    index = world.tile([[1]], "int32")
    view = far.reshape(shape).ap([[1, 4]], scalar_offset=index, indirect_dim=dim)

    assert (found := resolve_scalar(view)) is not None
    assert found.array.tolist() == list(range(at, at + 4))
    assert view.dynamic.limit == shape[dim]


@pytest.mark.parametrize(
    "part",
    [lambda t: t.reshape((2, 2, 12))[0:1], lambda t: t[0:2].reshape((3, 8)), lambda t: t[1]],
)
def test_a_part_that_was_reshaped_has_no_dynamic_offset_where_views_compose(make_world, part):
    world = make_world(rules=IndexRules(ap_on_view="compose"))
    view = part(world.tile(np.arange(48).reshape(4, 12), space="hbm"))

    with pytest.raises(UnsupportedError, match="a part of a tensor that has been reshaped"):
        view.ap([[1, 4]], 0, scalar_offset=world.tile([[1]], "int32"))


def test_a_part_in_the_tensors_own_dimensions_has_one(make_world):
    world = make_world(rules=IndexRules(ap_on_view="compose"))
    view = world.tile(np.arange(48).reshape(4, 12), space="hbm")[1:3, 2:6]
    moved = resolve_scalar(view.ap([[1, 4]], 0, scalar_offset=world.tile([[1]], "int32")))

    assert moved is not None
    assert moved.array.tolist() == [26, 27, 28, 29]


def test_a_dynamic_view_cannot_be_indexed_further(world, far):
    view = far.ap([[12, 1], [1, 12]], scalar_offset=world.tile([[1]], "int32"))

    with pytest.raises(
        AccessError, match="no further view can be taken of a view with a dynamic offset"
    ):
        view[0:1, 0:2]


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.reshape((12,)),
        lambda v: v.view("uint8"),
        lambda v: v.permute((1, 0)),
        lambda v: v.expand_dim(0),
        lambda v: v.squeeze_dim(0),
        lambda v: v.broadcast(0, 3),
        lambda v: v.ap([[1, 1]]),
    ],
)
def test_nor_changed_in_another_way_that_would_forget_the_index(world, far, change):
    view = far.ap([[12, 1], [1, 12]], scalar_offset=world.tile([[1]], "int32"))

    with pytest.raises(AccessError, match="dynamic offset"):
        change(view)
