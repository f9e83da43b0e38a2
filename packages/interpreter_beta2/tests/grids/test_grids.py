"""Grids of NKI 0.7: tiles and blocks of tensors against NumPy slices of the same elements."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from neuroncore.checks import watching as checked
from neuroncore.errors import (
    AbsentNameError,
    AccessError,
    PartitionError,
    SignatureError,
    UnsupportedError,
)
from neuroncore.machine.observe import Watcher, watched_by
from neuroncore.program import capture, execute_program

SEEDS = range(25)


@pytest.fixture
def lang(speak):
    return speak("0.7", grid_steps="allow")


def numbered(*shape: int) -> np.ndarray:
    """0, 1, 2, … exact in float32."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def copied(lang: Any, view: Any) -> Any:
    """A kernel output with the elements of a view."""
    out = lang.nl.ndarray(view.shape, dtype=view.dtype, buffer=lang.nl.shared_hbm)
    lang.nisa.dma_copy(dst=out, src=view)
    return out


def elements(extent: int, tile: int, tiles: Any) -> list[int]:
    """The elements of a dimension that some of its tiles contain, one by one."""
    return [e for e in range(extent) if e // tile in tiles]


Sizes = tuple[int, ...]


def random_case(seed: int) -> tuple[Sizes, Sizes]:
    """A shape of two to four dimensions and a tile of as many, ragged more often than not."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 12, int(rng.integers(2, 5))))
    return shape, tuple(int(rng.integers(1, n + 2)) for n in shape)


def random_case_on_chip(seed: int) -> tuple[Sizes, Sizes]:
    """The same with up to 150 rows in up to four tiles, small enough for PSUM."""
    shape, tile = random_case(seed)
    rows = int(np.random.default_rng(seed).integers(1, 150))
    free = [min(n, 4) for n in shape[1:]]
    return (rows, *free), (min(rows // 3 + 1, 128), *(min(t, 4) for t in tile[1:]))


def random_key(rng: np.random.Generator, counts: tuple[int, ...]) -> tuple[Any, ...]:
    """An int or a slice per dimension, sometimes fewer than there are."""
    key: list[Any] = []
    for count in counts[: int(rng.integers(1, len(counts) + 1))]:
        start = int(rng.integers(0, count))
        stop = int(rng.integers(start + 1, count + 1))
        key.append(start if rng.random() < 0.4 else slice(start, stop, int(rng.integers(1, 4))))
    return tuple(key)


def chosen(key: tuple[Any, ...], counts: tuple[int, ...]) -> list[list[int]]:
    """The numbers that a key selects in each dimension, by NumPy."""
    padded = (*key, *[slice(None)] * (len(counts) - len(key)))
    return [list(np.atleast_1d(np.arange(n)[k])) for n, k in zip(counts, padded, strict=True)]


def is_affine(offsets: np.ndarray) -> bool:
    """Whether offsets grow by one step per dimension."""
    steps = [np.diff(offsets, axis=d) for d in range(offsets.ndim)]
    return all(step.size == 0 or (step == step.flat[0]).all() for step in steps)


# -- views of a tensor in HBM


@pytest.mark.parametrize("seed", SEEDS)
def test_a_selection_of_tiles_is_the_numpy_slice_of_its_elements(lang, seed):
    shape, tile = random_case(seed)
    rng = np.random.default_rng(seed + 1000)
    counts = tuple(-(-n // t) for n, t in zip(shape, tile, strict=True))
    key, x = random_key(rng, counts), numbered(*shape)
    parts = [elements(*each) for each in zip(shape, tile, chosen(key, counts), strict=True)]
    expected = x[np.ix_(*parts)]
    offsets = np.arange(x.size).reshape(shape)[np.ix_(*parts)]
    seen: dict[str, Any] = {}

    def kernel(x):
        grid = lang.nl.tiles(x, tile_shape=tile)[key]
        seen.update(elements=grid.element_shape, exists=grid.is_data_representable)
        return copied(lang, grid.data) if grid.is_data_representable else None

    result = lang.run(kernel, x)

    assert seen == {"elements": expected.shape, "exists": is_affine(offsets)}
    if seen["exists"]:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_and_the_tiles_in_them_cover_every_element_once(lang, seed):
    shape, tile = random_case(seed)
    rng = np.random.default_rng(seed + 2000)
    block = tuple(int(rng.integers(1, 4)) for _ in shape)
    x = numbered(*shape)

    def kernel(x):
        nl = lang.nl
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        src, dst = (nl.blocks(t, tile_shape=tile, block_shape=block) for t in (x, out))
        assert src.block_shape == block
        for at in product(*map(range, src.shape)):
            inside, target = nl.tiles(src[at]), nl.tiles(dst[at])
            for each in product(*map(range, inside.shape)):
                lang.nisa.dma_copy(dst=target[each].data, src=inside[each].data)
        return out

    np.testing.assert_array_equal(lang.run(kernel, x), x)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_block_is_the_numpy_slice_of_its_elements(lang, seed):
    shape, tile = random_case(seed)
    rng = np.random.default_rng(seed + 3000)
    block = tuple(int(rng.integers(1, 4)) for _ in shape)
    sizes = [t * b for t, b in zip(tile, block, strict=True)]
    at = tuple(int(rng.integers(0, -(-n // s))) for n, s in zip(shape, sizes, strict=True))
    x = numbered(*shape)
    expected = x[tuple(slice(i * s, (i + 1) * s) for i, s in zip(at, sizes, strict=True))]

    def kernel(x):
        return copied(lang, lang.nl.blocks(x, tile_shape=tile, block_shape=block)[at].data)

    np.testing.assert_array_equal(lang.run(kernel, x), expected)


def test_dimensions_before_the_tiled_ones_are_indexed_one_slab_at_a_time(lang):
    x, seen = numbered(3, 2, 10, 12), []

    def kernel(x):
        grid = lang.nl.tiles(x, tile_shape=(4, 5))
        seen.append((grid.shape, grid.element_shape, grid.index_step_elements))
        seen.append((grid[1].shape, grid[1, 0].shape, grid[1, 0, 2].shape))
        return copied(lang, grid[1, 0, 2, 1].data)

    np.testing.assert_array_equal(lang.run(kernel, x), x[1, 0, 8:10, 5:10])
    assert seen == [
        ((3, 2, 3, 3), (3, 2, 10, 12), (1, 1, 4, 5)),
        ((2, 3, 3), (3, 3), (3,)),
    ]


def test_a_slice_of_untiled_dimensions_is_an_error(lang):
    def kernel(x):
        return lang.nl.tiles(x, tile_shape=(4, 5))[0:2]

    with pytest.raises(AccessError, match=r"dimension 0 is not tiled, and a slice cuts it"):
        lang.run(kernel, numbered(3, 10, 12))


def test_making_and_indexing_grids_emits_no_instruction(lang):
    class Counting(Watcher):
        count = 0

        def will(self, *args, **kwargs):
            self.count += 1

    watcher = Counting()

    def kernel(x):
        nl = lang.nl
        grid = nl.blocks(x, tile_shape=(4, 4), block_shape=(2, 1))
        return [nl.tiles(grid[i, j])[0, 0].data for i in range(2) for j in range(3)] and None

    with watched_by(watcher):
        lang.run(kernel, numbered(16, 12))

    assert watcher.count == 0


def test_what_a_grid_reports_of_itself(lang):
    nl, seen = lang.nl, []

    def kernel(x):
        grid = nl.blocks(x, tile_shape=(4, 5), block_shape=(2, 2))
        seen.append((grid.shape, grid.tile_shape, grid.block_shape, grid.index_step_elements))
        seen.append((grid.dtype, grid.buffer, grid.is_remainder, grid[0, 0].is_remainder))
        seen.append((grid[1, 1].element_shape, grid[0, 0].element_shape, grid[0, 0].shape))
        seen.append(isinstance(grid[0], nl.NkiBlockGrid) and isinstance(grid, nl.NkiGrid))

    lang.run(kernel, numbered(10, 12))

    assert seen == [
        ((2, 2), (4, 5), (2, 2), (8, 10)),
        (nl.float32, nl.hbm, True, False),
        ((2, 2), (8, 10), ()),
        True,
    ]


def test_tiles_of_a_grid_are_made_anew_with_another_shape(lang):
    x = numbered(12, 12)

    def kernel(x):
        half = lang.nl.tiles(x, tile_shape=(6, 4))[1, 0:2]
        return copied(lang, lang.nl.tiles(half, tile_shape=(3, 8))[1, 0].data)

    np.testing.assert_array_equal(lang.run(kernel, x), x[9:12, 0:8])


def test_tiles_in_steps_are_grouped_into_blocks(lang):
    x = numbered(4, 12)

    def kernel(x):
        nl = lang.nl
        grid = nl.blocks(nl.tiles(x, tile_shape=(4, 2))[:, 0:6:2], block_shape=(1, 2))
        assert grid.shape == (1, 2)
        return copied(lang, nl.tiles(grid[0, 0])[0, 1].data)

    np.testing.assert_array_equal(lang.run(kernel, x), x[:, 4:6])


def test_blocks_in_steps_are_opened_one_at_a_time(lang):
    def kernel(x):
        nl = lang.nl
        nl.tiles(nl.blocks(x, tile_shape=(4, 1), block_shape=(1, 2))[:, 0:6:2])

    with pytest.raises(ValueError, match="the selected blocks are not next to each other"):
        lang.run(kernel, numbered(4, 12))


def test_steps_need_an_option(speak):
    lang = speak("0.7")

    def kernel(x):
        lang.nl.tiles(x, tile_shape=(4, 2))[::2, 0]

    with pytest.raises(AccessError, match="a slice of a grid with a step of 2") as raised:
        lang.run(kernel, numbered(12, 12))
    assert "Options.grid_steps='allow'" in str(raised.value)


# -- storage of their own


@pytest.mark.parametrize("buffer", ["sbuf", "psum", "shared_hbm"])
@pytest.mark.parametrize("seed", SEEDS)
def test_new_tiles_store_what_is_written_into_each(lang, seed, buffer):
    shape, tile = random_case_on_chip(seed)
    rng = np.random.default_rng(seed + 4000)
    counts = tuple(-(-n // t) for n, t in zip(shape, tile, strict=True))
    key, x = random_key(rng, counts), numbered(*shape)
    picked = chosen(key, counts)
    parts = [elements(*each) for each in zip(shape, tile, picked, strict=True)]

    def kernel(x):
        nl = lang.nl
        stored = nl.alloc_tiles(
            tile_shape=tile, element_shape=shape, buffer=getattr(nl, buffer), dtype=x.dtype
        )
        assert stored.shape == counts and stored.element_shape == shape
        source = nl.tiles(x, tile_shape=tile)
        for at in product(*map(range, counts)):
            staged = lang.tile(source[at].data)
            if buffer == "shared_hbm":
                lang.nisa.dma_copy(dst=stored[at].data, src=staged)
            else:
                lang.nisa.tensor_copy(dst=stored[at].data, src=staged)
        grid = stored[key]
        assert grid.is_data_representable == represents(buffer, shape, tile, parts, counts)
        if not grid.is_data_representable:
            return None
        if buffer != "psum":
            return copied(lang, grid.data)
        sbuf = nl.ndarray(grid.element_shape, x.dtype, buffer=nl.sbuf)
        lang.nisa.tensor_copy(dst=sbuf, src=grid.data)
        return lang.out(sbuf)

    result = lang.run(kernel, x)

    if result is not None:
        np.testing.assert_array_equal(result, x[np.ix_(*parts)])


def represents(buffer, shape, tile, parts, counts) -> bool:
    """Whether one stride per dimension reaches the elements, by the place of each."""
    places = np.array([place(buffer, shape, tile, counts, e) for e in product(*parts)])
    sizes = [len(part) for part in parts]
    if buffer == "shared_hbm":
        return is_affine(places[:, 1].reshape(sizes))
    rows, columns = (places[:, k].reshape(sizes) for k in (0, 1))
    along = [np.diff(rows, axis=d) for d in range(rows.ndim)]
    in_rows = (along[0] == 1).all() and all((a == 0).all() for a in along[1:])
    return bool(in_rows) and is_affine(columns) and (np.diff(columns, axis=0) == 0).all()


def place(buffer, shape, tile, counts, element) -> tuple[int, int]:
    """The partition and the column of an element; in HBM its row-major number."""
    if buffer == "shared_hbm":
        return 0, int(np.ravel_multi_index(element, shape))
    at = tuple(e // t for e, t in zip(element, tile, strict=True))
    inner = tuple(e % t for e, t in zip(element, tile, strict=True))
    free = tile[1:]
    first = int(np.ravel_multi_index(at, counts)) * int(np.prod(free))
    return inner[0], first + int(np.ravel_multi_index(inner[1:], free))


def test_new_tiles_on_chip_take_whole_tiles_of_one_tensor(lang):
    def capacity(**more):
        nl = lang.nl
        grid = nl.alloc_tiles(
            tile_shape=(100, 16), element_shape=(250, 40), buffer=nl.sbuf, dtype=nl.float32, **more
        )
        return grid.layout.tensor.shape

    assert lang.inside(capacity) == (100, 3 * 3 * 16)


def test_blocks_add_a_level_and_no_storage(lang):
    def storage():
        nl = lang.nl
        grid = nl.alloc_blocks(
            tile_shape=(128, 64), block_shape=(1, 2), element_shape=(256, 256), buffer=nl.sbuf,
            dtype=nl.bfloat16,
        )  # fmt: skip
        first, second = (grid[1, j].data for j in (0, 1))
        return (
            grid.shape,
            first.shape,
            second.offset - first.offset,
            first.storage is second.storage,
        )

    assert lang.inside(storage) == ((2, 2), (128, 128), 128, True)


def test_new_storage_like_a_stepped_selection_is_dense(lang):
    x = numbered(8, 24)

    def kernel(x):
        nl = lang.nl
        source = nl.blocks(x, tile_shape=(4, 3), block_shape=(1, 2))[1, 0:4:2]
        new = nl.empty_like(source, buffer=nl.sbuf)
        assert isinstance(new, nl.NkiBlockGrid)
        assert (new.shape, new.tile_shape, new.block_shape) == ((2,), (4, 3), (1, 2))
        for j in range(2):
            lang.nisa.dma_copy(dst=new[j].data, src=source[j].data)
        return copied(lang, new.data)

    expected = np.concatenate([x[4:, 0:6], x[4:, 12:18]], axis=1)
    np.testing.assert_array_equal(lang.run(kernel, x), expected)


def test_new_storage_for_a_transpose_has_the_dimensions_in_its_order(lang):
    x = numbered(8, 24)

    def kernel(x):
        nl = lang.nl
        tensor = nl.empty_like(x, buffer=nl.sbuf, transpose_axes=(1, 0))
        grid = nl.tiles(x, tile_shape=(4, 6))
        new = nl.empty_like(grid, buffer=nl.sbuf, transpose_axes=(1, 0))
        assert tensor.shape == (24, 8)
        assert (new.tile_shape, new.shape, new.element_shape) == ((6, 4), (4, 2), (24, 8))

    lang.run(kernel, x)


def test_a_tensor_is_its_own_data(lang):
    def is_same():
        t = lang.nl.ndarray((4, 4), lang.nl.float32)
        return t.data is t

    assert lang.inside(is_same)


def test_data_of_a_tensor_came_with_0_7(now):
    with pytest.raises(AbsentNameError, match="NkiTensor has no data"):
        now.inside(lambda: now.nl.ndarray((4, 4), now.nl.float32).data)


# -- errors


def make(lang, function="alloc_tiles", **changes):
    """What a function of nl gives or raises, with some of its arguments changed."""
    nl = lang.nl
    given = {"tile_shape": (4, 8), "element_shape": (8, 16), "buffer": nl.sbuf} | changes
    return lang.inside(lambda: getattr(nl, function)(dtype=nl.float32, **given))


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"tile_shape": [4, 8]}, TypeError, "tile_shape is not a tuple of ints"),
        ({"tile_shape": (4, True)}, TypeError, "tile_shape is not a tuple of ints"),
        ({"tile_shape": (4, np.int64(8))}, TypeError, "tile_shape is not a tuple of ints"),
        ({"element_shape": (8.0, 16)}, TypeError, "element_shape is not a tuple of ints"),
        ({"buffer": "sbuf"}, TypeError, "buffer is a str"),
        ({"tile_shape": (4, 0)}, ValueError, "tile_shape has sizes below 1"),
        ({"element_shape": (8, -1)}, ValueError, "element_shape has sizes below 1"),
        ({"tile_shape": (8,)}, ValueError, "tile_shape has 1 dimensions"),
        ({"tile_shape": (1, 4, 8)}, ValueError, "tile_shape has 3 dimensions"),
        ({"element_shape": (2, 8, 16)}, ValueError, "1 untiled dimensions on chip"),
        ({"tile_shape": (129, 8), "element_shape": (256, 8)}, PartitionError, "129 partitions"),
    ],
)
def test_new_tiles_reject_other_arguments(lang, changes, kind, message):
    with pytest.raises(kind, match=message):
        make(lang, **changes)


@pytest.mark.parametrize(
    ("shape", "kind", "message"),
    [((2,), ValueError, "has 1 dimensions"), ((1, 0), ValueError, "below 1"), (2, TypeError, "")],
)
def test_blocks_reject_other_shapes(lang, shape, kind, message):
    with pytest.raises(kind, match=f"block_shape .*{message}"):
        make(lang, "alloc_blocks", block_shape=shape)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (lambda nl: np.ones((4, 4)), TypeError, "source cannot be a ndarray"),
        (lambda nl: nl.ndarray((4, 4), nl.float32), ValueError, "the shape of its tiles is not"),
    ],
)
def test_tiles_reject_other_sources(lang, source, error, message):
    with pytest.raises(error, match=message):
        lang.inside(lambda: lang.nl.tiles(source(lang.nl)))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (-1, "cell -1 is outside the grid"),
        (2, "cell 2 is outside the grid"),
        (slice(0, 3), "a slice of cells is outside"),
        (slice(1, 1), "a slice of cells is outside"),
        (slice(None, None, -1), "a slice of cells is outside"),
        (Ellipsis, "indexed with a ellipsis"),
        (True, "indexed with a bool"),
        ((0, 0, 0), "3 indices of a grid with 2 dimensions"),
    ],
)
def test_grids_reject_other_indices(lang, key, message):
    with pytest.raises(AccessError, match=message):
        make(lang)[key]


def test_a_selection_without_one_access_pattern_has_no_data(lang):
    grid = make(lang)

    assert not grid.is_data_representable
    with pytest.raises(AccessError, match="2×2 cells has no data") as caught:
        _ = grid.data
    assert "select fewer cells" in str(caught.value)


def test_grids_are_of_the_tracing_frontend(speak):
    with pytest.raises(UnsupportedError, match=r"nl\.alloc_tiles under the former frontend"):
        make(speak("0.7", frontend="parser"))


def test_checks_and_programs_follow_grids(lang):
    nl, nisa = lang.nl, lang.nisa

    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        source, target = (nl.blocks(t, tile_shape=(4, 3), block_shape=(1, 2)) for t in (x, out))
        for at in product(*map(range, source.shape)):
            block = nl.empty_like(source[at], buffer=nl.sbuf)
            nisa.dma_copy(dst=block.data, src=source[at].data)
            for tile in range(nl.tiles(block).shape[1]):
                data = nl.tiles(block)[0, tile].data
                nisa.tensor_scalar(dst=data, data=data, op0=nl.add, operand0=1.0)
            nisa.dma_copy(dst=target[at].data, src=block.data)
        return out

    x = numbered(10, 13)
    with checked("memory", "capacity", "overlap", "race", "device") as report:
        result = lang.run(kernel, x)

    assert np.array_equal(result, x + 1)
    assert str(report) == "nothing found"
    (again,) = execute_program(capture(lang.nki.jit(kernel), x), [x])
    assert np.array_equal(again, x + 1)


def test_grids_are_neither_called_nor_iterated(lang):
    with pytest.raises(UnsupportedError, match=r"NkiTileGrid\(…\) is not called by kernels"):
        lang.nl.NkiTileGrid(source=1)
    with pytest.raises(UnsupportedError, match="iteration over a grid"):
        list(make(lang))
    with pytest.raises(AbsentNameError, match="NkiTileGrid has no ap"):
        _ = make(lang).ap


def test_an_instruction_takes_the_data_and_not_the_grid(lang):
    def kernel():
        grid = make_inside(lang)
        lang.nisa.memset(grid[0, 0], 0.0)

    with pytest.raises(SignatureError, match=r"NkiTileGrid[\s\S]*give its data"):
        lang.run(kernel)


def make_inside(lang):
    nl = lang.nl
    return nl.alloc_tiles(
        tile_shape=(4, 8), element_shape=(8, 16), buffer=nl.sbuf, dtype=nl.float32
    )


@pytest.mark.parametrize("name", ["tiles", "blocks", "alloc_tiles", "alloc_blocks", "NkiGrid"])
def test_grids_came_with_0_7(now, name):
    with pytest.raises(AbsentNameError, match=r"part of NKI 0\.7"):
        getattr(now.nl, name)
