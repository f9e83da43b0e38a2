"""Names that are there and cannot be carried out here, and small names of nki.isa."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import KernelError, LaunchError, UnsupportedError
from nki_beta2 import BACKEND

SINCE = {
    "nki.isa": {"core_barrier": "0.2"},
    "nki.collectives": {"all_reduce": "0.2", "ReplicaGroup": "0.2", "all_to_all_v": "0.3",
                        "all_gather_v": "0.6", "rank_id": "0.2"},
}  # fmt: skip


@pytest.mark.parametrize("version", BACKEND.versions)
@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in SINCE.items() for name in names]
)
def test_calling_what_needs_others_says_why_it_cannot_be(speak, version, module, name):
    modules = BACKEND.modules(speak(version).nki.jit(lambda: None).choice)
    if version < SINCE[module][name]:
        with pytest.raises(AttributeError, match=f"{name} is not part of NKI {version}"):
            getattr(modules[module], name)
        return

    function = getattr(modules[module], name)

    why = "one after the other" if module == "nki.isa" else "one rank runs here"
    with pytest.raises(UnsupportedError, match=f"{name} is not supported: .*{why}"):
        function()
    assert why in function.__doc__


def test_a_barrier_is_rejected_at_the_kernels_line(complaint):
    source = """\
@nki.jit
def kernel(x):
    nisa.core_barrier(x, (0, 1))

kernel(x)
"""
    text = complaint(source, x=np.zeros((4, 4), np.float32))

    assert text.startswith("kernel.py:3:5: nki.isa.core_barrier is not supported")


@pytest.mark.parametrize("version", BACKEND.versions[3:])
@pytest.mark.parametrize("revision", [0, 1])
def test_the_silicon_revision_is_an_option(speak, version, revision):
    lang = speak(version, nc_sub_version=revision)

    assert lang.inside(lang.nisa.get_nc_sub_version) == revision
    assert lang.nisa.get_nc_sub_version() == revision


def test_there_are_two_silicon_revisions(speak):
    assert speak("0.5").nisa.get_nc_sub_version() == 0
    with pytest.raises(LaunchError, match="nc_sub_version does not take 2"):
        speak("0.5", nc_sub_version=2)


@pytest.mark.parametrize("version", BACKEND.versions[1:])
def test_what_hardware_does_not_do_is_a_validation_error(speak, version):
    lang = speak(version)

    def kernel():
        wrong = lang.nisa.NkiValidationError
        tile = lang.nl.ndarray((4, 4), lang.nl.float32)
        with pytest.raises(wrong):
            lang.nisa.tensor_copy(tile, lang.nl.zeros((4, 5), lang.nl.float32))

    lang.run(kernel)
    assert lang.nisa.NkiValidationError is KernelError
