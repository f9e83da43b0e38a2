"""The random generators of VectorE and GpSimdE: a stream of our own, of the documented kind.

Documents name the algorithm (XORWOW; VectorE before gen4 has an LFSR) and count its words (6 per
state, four states per VectorE lane), but publish neither their order nor how a seed becomes a
state. Here, for every lane:

    words x, y, z, w, v, d;   t = x ^ (x >> 2);   x, y, z, w = y, z, w, v
    v = v ^ (v << 4) ^ t ^ (t << 1);   d = d + 362437;   the number is v + d   (mod 2**32)

The states of a lane give numbers in turn. A seed fills all words by the MurmurHash3 finalizer of
(seed, engine, lane, state, word). So streams are reproducible here, and are not hardware's.
Sources: Marsaglia, Xorshift RNGs (2003); NKI reference, rand_set_state; Trainium3 architecture
guide, XORWOW-based PRNG.
"""

from __future__ import annotations

import numpy as np

from neuroncore.enums import Engine
from neuroncore.memory import Core
from neuroncore.targets import PARTITIONS

WORDS = 6
STATES = {Engine.vector: 4, Engine.gpsimd: 1}
"""XORWOW states per lane."""

_WEYL = np.uint32(362437)


def generator_name(engine: Engine) -> str:
    """The generator as a register in effects: every draw changes it."""
    return f"{engine.name}.random"


def state(core: Core, engine: Engine) -> np.ndarray:
    """The engine's words, uint32 (6, 128, states); seeded from Options.random_seed at first."""
    found = core.generators.get(engine.name)
    if found is None:
        found = core.generators[engine.name] = seeded(core.options.random_seed, engine)
    return found


def seeded(seed: int, engine: Engine) -> np.ndarray:
    """The words, uint32 (6, 128, states), that a seed fills."""
    shape = (WORDS, PARTITIONS, STATES[engine])
    counter = np.arange(np.prod(shape), dtype=np.uint32).reshape(shape)
    start = _mixed(np.array([(seed ^ (seed >> 32)) & 0xFFFFFFFF, engine.value], np.uint32))
    words = _mixed(counter * np.uint32(0x9E3779B9) + _mixed(start[:1] + start[1:] * np.uint32(3)))
    words[0] |= 1  # an all-zero xorshift state would stay zero
    return words


def _mixed(words: np.ndarray) -> np.ndarray:
    """The MurmurHash3 finalizer: every input bit changes every output bit half the time."""
    words = (words ^ (words >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    words = (words ^ (words >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return words ^ (words >> np.uint32(16))


def draw(core: Core, engine: Engine, lanes: int, count: int) -> np.ndarray:
    """(lanes, count) random 32-bit words; the generators of the first `lanes` lanes move on."""
    words = state(core, engine)[:, :lanes]
    x, y, z, w, v, d = (word.copy() for word in words)
    states = words.shape[2]
    steps = -(-count // states)
    numbers = np.empty((steps, lanes, states), np.uint32)
    for number in numbers:
        x ^= x >> np.uint32(2)
        x ^= (x << np.uint32(1)) ^ v ^ (v << np.uint32(4))
        x, y, z, w, v = y, z, w, v, x
        d += _WEYL
        np.add(v, d, out=number)
    words[...] = x, y, z, w, v, d
    return numbers.transpose(1, 0, 2).reshape(lanes, -1)[:, :count]


def uniform(words: np.ndarray) -> np.ndarray:
    """float32 in [0, 1) from the upper 24 bits."""
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def restart(core: Core, engine: Engine, seed: int) -> None:
    """All lanes of the engine start anew from a seed."""
    state(core, engine)[...] = seeded(seed, engine)
