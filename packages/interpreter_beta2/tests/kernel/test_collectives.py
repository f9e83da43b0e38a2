"""nki.collectives where one rank runs: groups and ranks are values, exchanges are rejected."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import UnsupportedError
from nki_beta2 import BACKEND

SINCE = {"all_reduce": "0.2", "all_to_all_v": "0.3", "all_gather_v": "0.6"}


def collectives(speak, version):
    return BACKEND.modules(speak(version).nki.jit(lambda: None).choice)["nki.collectives"]


@pytest.mark.parametrize("version", BACKEND.versions)
@pytest.mark.parametrize("name", SINCE)
def test_calling_what_needs_others_says_why_it_cannot_be(speak, version, name):
    module = collectives(speak, version)
    if version < SINCE[name]:
        with pytest.raises(AttributeError, match=f"{name} is not part of NKI {version}"):
            getattr(module, name)
        return

    function = getattr(module, name)

    with pytest.raises(UnsupportedError, match=f"{name} is not supported: one rank runs here"):
        function()
    assert "one rank runs here" in function.__doc__


@pytest.mark.parametrize("version", BACKEND.versions)
def test_groups_of_ranks_are_values(speak, version):
    group = collectives(speak, version).ReplicaGroup

    assert group([[0, 1]]) == group([[0, 1]]) != group([[0], [1]])


@pytest.mark.parametrize("version", BACKEND.versions)
def test_the_only_rank_is_number_0(speak, version):
    lang, x = speak(version), np.arange(32, dtype=np.float32).reshape(4, 8)
    rank_id = collectives(speak, version).rank_id

    def kernel(x):
        nl, nisa = lang.nl, lang.nisa
        tile = nl.ndarray((1, 8), x.dtype, buffer=nl.sbuf)
        row = x.ap([[8, 1], [1, 8]], offset=0, scalar_offset=rank_id(), indirect_dim=0)
        nisa.dma_copy(tile, row)
        return lang.out(tile)

    assert np.array_equal(lang.run(kernel, x), x[:1])
