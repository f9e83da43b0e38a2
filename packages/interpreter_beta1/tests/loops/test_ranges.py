"""Ranges of loops without a `for` in the text: map, zip, generators, ranges with a name."""

import functools
import logging

import numpy as np
import pytest

from neuroncore.errors import KernelError, MemorySpaceError, UnsupportedError
from nki_beta1 import nki, nl

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def output_like(x):
    return nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)


def outputs_of(x, loop):
    return [output_like(x) for i in loop]


def of_a_map(x):
    return list(map(lambda i: output_like(x), nl.affine_range(2)))  # noqa: C417


def of_a_zip(x):
    return [output_like(x) for i, _ in zip(nl.affine_range(2), "ab", strict=True)]


def of_a_map_in_a_for(x):
    out = []
    for o in map(lambda i: output_like(x), nl.sequential_range(2)):  # noqa: C417
        out += [o]
    return out


def of_a_loop_over_a_map(x):
    out, doubled = [], map(lambda i: 2 * i, nl.affine_range(2))  # noqa: C417
    for i in doubled:
        out += [i, output_like(x)]
    return out


def of_a_range_with_a_name(x):
    out, numbers = [], nl.affine_range(2)
    for i in numbers:
        out += [i, output_like(x)]
    return out


def of_a_range_given(x):
    return outputs_of(x, nl.affine_range(2))


def of_a_generator_with_a_name(x):
    doubled = (2 * i for i in nl.affine_range(2))
    out = []
    for i in doubled:
        out += [i, output_like(x)]
    return out


def of_a_filter(x):
    return list(filter(lambda i: output_like(x) is not None, nl.affine_range(2)))


def of_a_reduction(x):
    return functools.reduce(lambda out, i: output_like(x), nl.affine_range(2), None)


def of_a_reversed_range(x):
    out, numbers = [], reversed(nl.affine_range(2))
    for i in numbers:
        out += [i, output_like(x)]
    return out


def of_a_generator_function(x):
    def tiles():
        for i in nl.affine_range(2):
            yield nl.load(x[i : i + 1, :])

    out = []
    for tile in tiles():
        out += [tile, output_like(x)]
    return out


def of_a_while(x):
    out, numbers = [], iter(nl.affine_range(2))
    while (i := next(numbers, None)) is not None:
        out += [i, output_like(x)]
    return out


def of_a_while_that_breaks(x):
    out, numbers = [], iter(nl.affine_range(2))
    while True:
        i = next(numbers, None)
        if i is None:
            break
        out += [i, output_like(x)]
    return out


BY_THE_RANGE = [of_a_while, of_a_while_that_breaks,
                of_a_map, of_a_zip, of_a_map_in_a_for, of_a_loop_over_a_map,
                of_a_range_with_a_name, of_a_range_given, of_a_generator_with_a_name, of_a_filter,
                of_a_reduction, of_a_reversed_range, of_a_generator_function]  # fmt: skip


@pytest.mark.parametrize("function", BY_THE_RANGE)
def test_a_range_knows_that_it_is_iterated(function):
    with pytest.raises(MemorySpaceError, match="made inside the loop over") as caught:
        nki.jit(function)(X)
    assert "^^^" in str(caught.value)


def after_a_map(x):
    tiles = list(map(lambda i: nl.load(x[i : i + 1, :]), nl.affine_range(2)))  # noqa: C417
    return [output_like(t) for t in tiles]


def after_a_loop_that_breaks(x):
    for i in nl.affine_range(4):
        if i == 2:
            break
    return [output_like(x), output_like(x)]


def after_a_loop_that_fails(x):
    try:
        for i in nl.affine_range(4):
            raise ValueError(i)
    except ValueError:
        return [output_like(x), output_like(x)]


def beside_an_iterator(x):
    numbers = iter(nl.affine_range(4))
    first = next(numbers)
    return [output_like(x), output_like(x[first : first + 1, :]), *(() for _ in ())]


def after_a_zip_that_stops_early(x):
    pairs = list(zip(nl.affine_range(4), "ab", strict=False))
    return [output_like(x) for _ in pairs]


def in_a_map_over_python(x):
    return list(map(lambda i: output_like(x), (0, 1)))  # noqa: C417


def in_an_unrolled_map(x):
    return list(map(lambda i: output_like(x), nl.static_range(2)))  # noqa: C417


def beside_a_helper_that_loops(x):
    def loaded():
        return [nl.load(x[i : i + 1, :]) for i in nl.affine_range(2)]

    out = []
    for _ in (0, 1):
        loaded()
        out.append(output_like(x))
    return out


def after_a_while(x):
    numbers = iter(nl.affine_range(2))
    while next(numbers) < 1:
        pass
    return [output_like(x), output_like(x)]


OUTSIDE = [after_a_while,
           after_a_map, after_a_loop_that_breaks, after_a_loop_that_fails, beside_an_iterator,
           after_a_zip_that_stops_early, in_a_map_over_python, in_an_unrolled_map,
           beside_a_helper_that_loops]  # fmt: skip


@pytest.mark.parametrize("function", OUTSIDE)
def test_an_iteration_that_is_over_or_stands_beside_rejects_nothing(function):
    assert len(nki.jit(function)(X)) == 2


def test_a_loop_over_several_variables_is_named_by_all():
    @nki.jit
    def kernel(x):
        for n, (i, _) in enumerate(zip(nl.affine_range(2), "ab", strict=True)):
            nl.store(output_like(x), nl.load(x) * float(n + i))

    with pytest.raises(MemorySpaceError, match="inside the loop over n, i, _"):
        kernel(X)


def test_a_range_is_a_sequence_of_its_numbers():
    @nki.jit
    def kernel(x):
        numbers = nl.affine_range(1, 7, 2)
        assert list(numbers) == [1, 3, 5] and len(numbers) == 3 and numbers[-1] == 5
        assert numbers == range(1, 7, 2) == nl.sequential_range(1, 7, 2) and numbers != [1, 3, 5]
        assert list(reversed(numbers[1:])) == [5, 3] and 3 in numbers and 2 not in numbers
        assert numbers and not nl.affine_range(0) and numbers.index(5) == 2 and numbers != None  # noqa: E711
        assert repr(numbers) == "nl.affine_range(1, 7, 2)" and len({numbers, range(1, 7, 2)}) == 1
        return nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

    kernel(X)


def test_a_range_has_the_bounds_of_pythons():
    @nki.jit
    def kernel(x):
        numbers = nl.affine_range(2, 8, 3)
        assert (numbers.start, numbers.stop, numbers.step, len(numbers)) == (2, 8, 3, 2)
        out = output_like(x)
        nl.store(out, nl.load(x))
        return out

    assert np.array_equal(kernel(X), X)


def entering(numbers):
    with numbers:
        pass


MISUSES = {
    "with": entering,
    "%d": lambda r: "%d" % r,  # noqa: UP031
    "{:d}": lambda r: f"{r:d}",
    "r + 1": lambda r: r + 1,
    "1 + r": lambda r: 1 + r,
    "-r": lambda r: -r,
    "r * 2": lambda r: r * 2,
    "r < 3": lambda r: r < 3,
    "r.size": lambda r: r.size,
    "r()": lambda r: r(),
    "r[9]": lambda r: r[9],
    "r[0.5]": lambda r: r[0.5],
    "int(r)": int,
    "r == an array": lambda r: r == X,
    "an array != r": lambda r: r != X,
    "r + an array": lambda r: r + X,
    "an array + r": lambda r: X + r,
    "np.asarray": np.asarray,
    "r + a tile": lambda r: r + nl.zeros((4, 4), dtype=nl.float32),
    "t[r]": lambda r: nl.zeros((4, 4), dtype=nl.float32)[r],
}


@pytest.mark.parametrize("use", MISUSES)
def test_what_a_range_is_not_is_rejected_with_a_caret(use):
    @nki.jit
    def kernel(x):
        MISUSES[use](nl.affine_range(3))
        return output_like(x)

    with pytest.raises(KernelError, match=r"\^\^\^|:\d+:\d+: ") as caught:
        kernel(X)
    assert str(caught.value).startswith(__file__)


@pytest.mark.parametrize("loop", [nl.affine_range, nl.sequential_range])
def test_hints_for_the_scheduler_change_nothing_and_bounds_are_given_by_position(loop, caplog):
    with caplog.at_level(logging.INFO, logger="neuroncore.notes"):
        assert list(loop(3, unroll_hint=2)) == [0, 1, 2]
    assert f"nl.{loop.__name__}(unroll_hint=2)" in caplog.text
    with pytest.raises(UnsupportedError, match="takes stop by position"):
        loop(0, stop=3)
