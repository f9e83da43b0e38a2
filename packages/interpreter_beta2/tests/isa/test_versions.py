"""Small names of nki.isa: the revision of the device, the error of what it does not do."""

from __future__ import annotations

import pytest

from neuroncore.errors import KernelError, LaunchError
from nki_beta2 import BACKEND


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
