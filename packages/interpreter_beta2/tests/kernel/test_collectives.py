"""nki.collectives where one rank runs: groups and ranks are values, exchanges are rejected."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from neuroncore.checks import watching
from neuroncore.errors import (
    AttributeValueError,
    MemorySpaceError,
    ShapeError,
    SignatureError,
    UnsupportedError,
)
from nki_beta2 import BACKEND

SINCE = {"all_reduce": "0.2", "all_to_all_v": "0.3", "all_gather_v": "0.6"}


def collectives(speak, version):
    return BACKEND.modules(speak(version).nki.jit(lambda: None).choice)["nki.collectives"]


def arguments(function):
    """Placeholders for the parameters that a function requires."""
    parameters = inspect.signature(function).parameters.values()
    return [None for p in parameters if p.default is p.empty]


@pytest.mark.parametrize("version", BACKEND.versions)
@pytest.mark.parametrize("name", SINCE)
def test_calling_what_needs_others_says_why_it_cannot_be(speak, version, name):
    module = collectives(speak, version)
    if version < SINCE[name]:
        with pytest.raises(AttributeError, match=f"{name} is not part of NKI {version}"):
            getattr(module, name)
        return

    function = getattr(module, name)

    assert "one rank runs here" in function.__doc__
    if name == "all_reduce" or version < "0.7":
        with pytest.raises(UnsupportedError, match=f"{name} is not supported: one rank runs here"):
            function(*arguments(function))


def test_a_call_with_other_parameters_than_the_version_has_is_an_error(speak):
    with pytest.raises(SignatureError, match="unexpected keyword argument 'priority'"):
        collectives(speak, "0.3").all_reduce([], [], None, None, priority=1)


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


# -- split collectives of 0.7


def calls(speak, block, target="trn2", ranks=4):
    """What a kernel of 0.7 gives that runs `block(ncc, given)` with legal arguments."""
    lang = speak("0.7", target)
    ncc = BACKEND.modules(lang.nki.jit(lambda: None).choice)["nki.collectives"]

    def kernel():
        nl = lang.nl
        src, dst = (nl.ndarray((n, 8), nl.float32, buffer=nl.shared_hbm) for n in (4, 4 * ranks))
        metadata = nl.ndarray((4, ranks), nl.int32, buffer=nl.shared_hbm)
        group = ncc.ReplicaGroup([list(range(ranks))])
        given = {"srcs": [src], "dsts": [dst], "replica_group": group, "metadata_tensor": metadata}
        return block(ncc, given)

    lang.run(kernel)


SPLIT = ("all_to_all_v", "all_gather_v")


@pytest.mark.parametrize("name", SPLIT)
def test_a_prepare_returns_an_instruction_and_its_trigger_needs_ranks(speak, name):
    seen = []

    def block(ncc, given):
        seen.append(getattr(ncc, f"{name}_prepare")(**given))
        getattr(ncc, f"{name}_trigger")(seen[0])

    with pytest.raises(UnsupportedError, match=f"{name}_trigger is not supported: one rank"):
        calls(speak, block)

    assert isinstance(seen[0], speak("0.7").nisa.NkiInstruction)


@pytest.mark.parametrize("second", SPLIT)
def test_a_prepare_of_any_kind_before_the_trigger_is_an_error(speak, second):
    def block(ncc, given):
        ncc.all_to_all_v_prepare(**given)
        getattr(ncc, f"{second}_prepare")(**given)

    with pytest.raises(AttributeValueError, match="a second prepare before the trigger"):
        calls(speak, block)


def test_each_launch_has_a_slot_of_its_own(speak):
    prepared = []
    for _ in range(2):
        calls(speak, lambda ncc, given: prepared.append(ncc.all_to_all_v_prepare(**given)))

    assert len(prepared) == 2


def test_a_trigger_takes_the_prepare_of_its_own_kind_once(speak):
    def other(ncc, given):
        ncc.all_gather_v_trigger(ncc.all_to_all_v_prepare(**given))

    def again(ncc, given):
        handle = ncc.all_to_all_v_prepare(**given)
        with pytest.raises(UnsupportedError):
            ncc.all_to_all_v_trigger(handle)
        ncc.all_to_all_v_trigger(handle)

    with pytest.raises(SignatureError, match="not what the last all_gather_v_prepare returned"):
        calls(speak, other)
    with pytest.raises(SignatureError, match="not what the last all_gather_v_prepare returned"):
        calls(speak, lambda ncc, given: ncc.all_gather_v_trigger(None))
    with pytest.raises(AttributeValueError, match="a second trigger of one prepare"):
        calls(speak, again)


@pytest.mark.parametrize("function", ["all_to_all_v", "all_to_all_v_prepare"])
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"srcs": []}, AttributeValueError, "srcs holds 0 tensors"),
        ({"dsts": None}, AttributeValueError, "dsts holds no list of tensors"),
        ({"srcs": [np.ones(4)]}, MemorySpaceError, "srcs is not in shared HBM"),
        ({"has_rdispls": True}, UnsupportedError, "ranks of several nodes"),
    ],
)
def test_variable_length_collectives_reject_other_arguments(
    speak, function, changes, error, message
):
    with pytest.raises(error, match=message):
        calls(speak, lambda ncc, given: getattr(ncc, function)(**given | changes))


def test_the_destination_has_a_slot_of_the_size_of_the_source_per_rank(speak):
    def block(ncc, given):
        ncc.all_to_all_v_prepare(**given | {"dsts": given["srcs"]})

    with pytest.raises(ShapeError, match="dst has 32 elements for 4 ranks with 32 each"):
        calls(speak, block)


def test_destinations_of_an_all_gather_have_slots_of_any_size(speak):
    prepared = []

    def smaller(ncc, given):
        prepared.append(ncc.all_gather_v_prepare(**given | {"dsts": given["srcs"]}))

    calls(speak, smaller)
    assert len(prepared) == 1


@pytest.mark.parametrize(("target", "count"), [("trn2", 0), ("trn3", 1)])
def test_a_prepare_on_trn3_may_be_on_instances_that_do_not_split(speak, target, count):
    with watching("device") as report:
        calls(speak, lambda ncc, given: ncc.all_to_all_v_prepare(**given) and None, target)

    assert len(report.findings) == count
