"""The option traced_once: what 0.1, which ran a loop's body once, did not run as it stands."""

import functools
import sys

import numpy as np
import pytest

from neuroncore.errors import AccessError, UnsupportedError
from neuroncore.machine.backend import Choice
from neuroncore.options import Options
from nki_beta1 import BACKEND, nki, nl

X = np.arange(32, dtype=np.float32).reshape(4, 8)
STRICT = Choice("beta1", "0.1", options=Options(traced_once="error"))


def strictly(kernel, *arguments):
    return BACKEND.simulate(kernel, STRICT)(*arguments)


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


@nki.jit
def branching(x):
    tile = nl.zeros((4, 8), dtype=x.dtype)
    for i in nl.affine_range(4):
        if i > 1:
            tile[...] = nl.load(x)
    return stored(tile)


@nki.jit
def choosing(x):
    tile = nl.load(x)
    for i in nl.sequential_range(4):
        tile[...] = nl.load(x) if i == 3 else nl.load(x) * 2.0
    return stored(tile)


@nki.jit
def used_after_its_block(x):
    for _ in nl.affine_range(4):
        tile = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
        tile[...] = nl.load(x)
    return stored(tile)  # pyrefly: ignore


@nki.jit
def counting(x):
    n = 0
    for _ in nl.affine_range(4):
        n += 1
    return stored(nl.load(x) * float(n))


@nki.jit
def collecting(x):
    tiles = []
    for _ in nl.sequential_range(2):
        tiles.append(nl.load(x))
    return stored(tiles[0] + tiles[-1])


REJECTED = {
    "control flow on an index": (branching, X, "if depends on an index, which is a symbol"),
    "a choice by an index": (choosing, X, "the conditional expression depends on the index of"),
    "a tensor outside its block": (
        used_after_its_block,
        X,
        "tile was made in a loop that has ended",
    ),
    "a number that counts": (counting, 4 * X, "n is 0 before a turn of the loop and 1 after"),
    "a list that grows": (collecting, 2 * X, "the length of tiles is 0 before a turn of the loop"),
}


@pytest.mark.parametrize(("kernel", "result", "says"), REJECTED.values(), ids=REJECTED)
def test_the_body_runs_for_every_number_unless_that_is_rejected(kernel, result, says):
    np.testing.assert_array_equal(kernel(X), result)

    with pytest.raises(AccessError, match=says) as caught:
        strictly(kernel, X)
    place = caught.value.place
    assert place is not None and place.file == __file__
    assert place.line > kernel.function.__code__.co_firstlineno


@nki.jit
def traceable(x):
    tile, unrolled, tiles = nl.zeros((4, 8), dtype=x.dtype, buffer=nl.sbuf), 0, []
    total = nl.zeros((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(4):
        start = i * 2
        tile[:, start : start + 2] = nl.load(x[:, start : start + 2])
        total += tile
    for k in nl.static_range(3):
        if k > 0:
            unrolled += k
        tiles.append(nl.load(x))
    return stored(tile * float(unrolled) + tiles[2])


def test_what_tracing_once_can_do_runs_under_the_option_too():
    np.testing.assert_array_equal(traceable(X), 4 * X)
    np.testing.assert_array_equal(strictly(traceable, X), 4 * X)


def test_a_kernel_without_source_is_rejected_under_the_option():
    space = {"nl": nl, "stored": stored}
    exec("def kernel(x):\n    return stored(nl.load(x))\n", space)

    np.testing.assert_array_equal(nki.jit(space["kernel"])(X), X)
    with pytest.raises(UnsupportedError, match="the source of kernel kernel cannot be read"):
        strictly(nki.jit(space["kernel"]), X)


def test_a_kernel_in_a_document_is_rejected_under_the_option(tmp_path):
    document = tmp_path / "document.md"
    document.write_text("Not Python at all:\ndef kernel(x):\n    return stored(nl.load(x))\n")
    space = {"nl": nl, "stored": stored}
    exec(compile("\ndef kernel(x):\n    return stored(nl.load(x))\n", document, "exec"), space)

    with pytest.raises(UnsupportedError, match="the source of kernel kernel cannot be read"):
        strictly(nki.jit(space["kernel"]), X)


# -- what nl is, independent of the imports --------------------------------------------------------

BRANCHING = """
@nki.jit
def kernel(x):
    for i in {loop}(4):
        if i > 1:
            break
    out = language.ndarray(x.shape, dtype=x.dtype, buffer=language.shared_hbm)
    language.store(out, value=language.load(x))
    return out
"""

HEADS = {
    "an attribute": ("import neuronxcc.nki as nki\nnl = nki.language", "nl.affine_range"),
    "a star": ("from neuronxcc.nki.language import *", "affine_range"),
    "another file": ("from common_names import nl", "nl.affine_range"),
    "a module of another file": ("import common_names", "common_names.nl.affine_range"),
    "a name of one's own": ("import neuronxcc.nki as n\nturns = n.language.affine_range", "turns"),
}


def kernel_of(folder, monkeypatch, text):
    """The kernel of a file with this text."""
    head = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as language\n"
    (folder / "common_names.py").write_text("import neuronxcc.nki as nki\nnl = nki.language\n")
    (folder / "given.py").write_text(head + text)
    monkeypatch.syspath_prepend(folder)
    for name, module in BACKEND.modules(Choice("beta1", "0.1")).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "common_names", raising=False)
    names: dict = {"__name__": "given"}
    exec(compile(head + text, folder / "given.py", "exec"), names)
    monkeypatch.delitem(sys.modules, "common_names", raising=False)
    return names["kernel"]


@pytest.mark.parametrize(("head", "loop"), HEADS.values(), ids=HEADS)
def test_the_loop_is_known_by_what_it_is(tmp_path, monkeypatch, head, loop):
    kernel = kernel_of(tmp_path, monkeypatch, head + BRANCHING.format(loop=loop))

    np.testing.assert_array_equal(kernel(X), X)
    with pytest.raises(AccessError, match="if depends on an index, which is a symbol"):
        strictly(kernel, X)


def test_a_loop_that_the_text_does_not_show_is_rejected():
    def loop(over):
        return [i for i in over(4) if i > 1]

    @nki.jit
    def kernel(x):
        assert loop(nl.affine_range) == [2, 3]
        return stored(nl.load(x))

    np.testing.assert_array_equal(kernel(X), X)
    with pytest.raises(UnsupportedError, match="cannot tell from the kernel's text") as caught:
        strictly(kernel, X)
    assert caught.value.place is not None and caught.value.place.file == __file__


def by_a_map(x):
    list(map(lambda i: i > 1, nl.affine_range(4)))  # noqa: C417
    return stored(nl.load(x))


def by_a_sum(x):
    return stored(nl.load(x) * (sum(nl.affine_range(4)) / 6.0))


def by_a_reduction(x):
    count = functools.reduce(lambda count, i: count + 1, nl.affine_range(4), 0)
    return stored(nl.load(x) * (count / 4.0))


def by_a_name(x):
    numbers = nl.affine_range(4)
    for i in numbers:
        nl.load(x[i : i + 1])
    return stored(nl.load(x))


def by_a_generator(x):
    for i in (2 * n for n in nl.affine_range(2)):
        nl.load(x[i : i + 1])
    return stored(nl.load(x))


@pytest.mark.parametrize(
    "function", [by_a_map, by_a_sum, by_a_reduction, by_a_name, by_a_generator]
)
def test_a_range_without_its_for_is_rejected(function):
    kernel = nki.jit(function)

    np.testing.assert_array_equal(kernel(X), X)
    with pytest.raises(UnsupportedError, match="cannot tell from the kernel's text") as caught:
        strictly(kernel, X)
    assert caught.value.place is not None and caught.value.place.file == __file__


@nki.jit
def over_several_lines(x):
    tile = nl.zeros((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(
        4,
    ):
        tile[:, i : i + 1] = nl.load(x[:, i : i + 1])
        for j in nl.sequential_range(4, 8):
            tile[:, j : j + 1] = nl.load(x[:, j : j + 1])
    return stored(tile)  # fmt: skip


def test_loops_over_the_range_itself_run():
    np.testing.assert_array_equal(strictly(over_several_lines, X), X)


def enumerated(x):
    tile = nl.zeros((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    for n, i in enumerate(nl.affine_range(8)):
        tile[:, n : n + 1] = nl.load(x[:, i : i + 1])
    return stored(tile)


def zipped(x):
    tile = nl.zeros((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    for i, n in zip(nl.affine_range(8), range(8), strict=True):
        tile[:, n : n + 1] = nl.load(x[:, i : i + 1])
    return stored(tile)


def a_list(x):
    parts = [nl.load(x) for _ in nl.affine_range(2)]
    return stored((parts[0] + parts[-1]) * 0.5)


def a_set(x):
    return stored(nl.load(x) * float(len({i for i in nl.affine_range(2)}) - 1))  # noqa: C416


def a_dict(x):
    return stored(nl.load(x) * float(len({i: i for i in nl.affine_range(2)}) - 1))


def counting_in_a_list(x):
    n = 0
    [n := n + 1 for _ in nl.affine_range(4)]
    return stored(nl.load(x) * (n / 4.0))


def counting_on_one_line(x):
    for _ in nl.affine_range(1):
        assert [i for i in nl.affine_range(3)][-1] == 2  # noqa: C416
    return stored(nl.load(x))  # fmt: skip


GATHERING = [enumerated, zipped, a_list, a_set, a_dict, counting_in_a_list, counting_on_one_line]


@pytest.mark.parametrize("function", GATHERING)
def test_what_python_gathers_from_turn_to_turn_is_rejected(function):
    kernel = nki.jit(function)

    np.testing.assert_array_equal(kernel(X), X)
    with pytest.raises(UnsupportedError, match="cannot tell from the kernel's text") as caught:
        strictly(kernel, X)
    assert caught.value.place is not None and caught.value.place.file == __file__


def numbers():
    for i in nl.affine_range(4):  # noqa: UP028
        yield i


def added_up_without_in_place(x):
    n = 0
    for _ in nl.affine_range(4):
        n = n + 1
    return stored(nl.load(x) * (n / 4.0))


def the_one_before(x):
    before, current = 0, 0
    for i in nl.affine_range(4):
        before = current
        current = i
    return stored(nl.load(x) * (before / 2.0))


def counted_by_a_function(x):
    n = 0

    def count():
        nonlocal n
        n += 1

    for _ in nl.affine_range(4):
        count()
    return stored(nl.load(x) * (n / 4.0))


def counted_around_a_generator(x):
    n = 0
    for _ in numbers():
        n += 1
    return stored(nl.load(x) * (n / 4.0))


COUNTER = 0


def counted_in_the_module(x):
    global COUNTER
    COUNTER = 0
    for _ in nl.affine_range(4):
        _count()
    return stored(nl.load(x) * (COUNTER / 4.0))


def _count():
    global COUNTER
    COUNTER += 1


CARRYING = [added_up_without_in_place, the_one_before, counted_by_a_function,
            counted_around_a_generator, counted_in_the_module]  # fmt: skip


@pytest.mark.parametrize("function", CARRYING)
def test_numbers_that_go_from_turn_to_turn_are_rejected(function):
    kernel = nki.jit(function)

    np.testing.assert_array_equal(kernel(X), X)
    with pytest.raises(AccessError, match="before a turn of the loop and"):
        strictly(kernel, X)


@nki.jit
def set_in_every_turn(x):
    tile = nl.zeros((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(4):
        start = i * 2
        stop = start + 2
        tile[:, start:stop] = nl.load(x[:, start:stop])
    return stored(tile)


@nki.jit
def set_and_changed_in_every_turn(x):
    tile = nl.zeros((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(2):
        for j in nl.affine_range(2):
            start = i * 4
            start += j * 2
            tile[:, start : start + 2] = nl.load(x[:, start : start + 2])
    return stored(tile)


@nki.jit
def set_in_some_turns(x):
    n = 0.0
    for _ in nl.affine_range(4):
        for k in nl.static_range(2):
            if k > 1:
                n = 0.0
        n += 0.25
    return stored(nl.load(x) * n)


@pytest.mark.parametrize("kernel", [set_in_every_turn, set_and_changed_in_every_turn])
def test_numbers_that_each_turn_sets_run(kernel):
    np.testing.assert_array_equal(strictly(kernel, X), X)


def test_numbers_that_a_turn_need_not_set_are_rejected():
    np.testing.assert_array_equal(set_in_some_turns(X), X)
    with pytest.raises(AccessError, match=r"n is 0\.0 before a turn of the loop and 0\.25 after"):
        strictly(set_in_some_turns, X)


@nki.jit
def naming_the_condition(x):
    tile = nl.load(x)
    for i in nl.affine_range(4):
        last = i == 3
        if last:
            tile[...] = nl.load(x) * 2.0
    return stored(tile)


@nki.jit
def counting_to_an_index(x):
    tile = nl.zeros((4, 8), dtype=x.dtype)
    for i in nl.affine_range(3):
        for _ in range(i):
            tile += nl.load(x)
    return stored(tile)


@nki.jit
def choosing_the_least(x):
    tile = nl.zeros((4, 8), dtype=x.dtype)
    for i in nl.affine_range(4):
        tile += nl.load(x) * float(min(i, 2))
    return stored(tile)


@pytest.mark.parametrize(
    ("kernel", "factor", "what"),
    [
        (naming_the_condition, 2, "if depends on an index"),
        (counting_to_an_index, 3, "range depends on an index"),
        (choosing_the_least, 5, "min depends on an index"),
    ],
)
def test_a_number_made_of_an_index_is_rejected(kernel, factor, what):
    np.testing.assert_array_equal(kernel(X), factor * X)
    with pytest.raises(AccessError, match=what):
        strictly(kernel, X)


@nki.jit
def last_of_the_unrolled(x):
    for i in nl.affine_range(2):
        nl.load(x[i : i + 1])
    for i in nl.static_range(4):
        value = nl.load(x) * float(max(i, 2))
        if i == 3:
            break
    return stored(value)


def test_an_unrolled_loop_may_do_what_python_does():
    np.testing.assert_array_equal(last_of_the_unrolled(X), 3 * X)
    np.testing.assert_array_equal(strictly(last_of_the_unrolled, X), 3 * X)
