"""Decorated functions: options, sub-kernels, what a kernel remembers, simulate."""

from __future__ import annotations

import contextlib
import inspect

import numpy as np
import pytest

from neuroncore.errors import AccessError, CapacityError, LaunchError, UnsupportedError
from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.options import Options
from nki_beta2 import BACKEND, Kernel


@contextlib.contextmanager
def in_force(nki="0.6", target="trn2", backend="beta2", **options):
    """What a switch would set, without one."""
    token = CURRENT.set(Choice(backend, nki, target, Options(**options)))
    try:
        yield
    finally:
        CURRENT.reset(token)


def copying(lang):
    def copy(x):
        """Copies."""
        return lang.out(x)

    return copy


# -- decorating ------------------------------------------------------------------------------------


def test_jit_is_used_with_and_without_brackets(every, ramp):
    for kernel in (every.nki.jit(copying(every)), every.nki.jit()(copying(every))):
        assert isinstance(kernel, Kernel)
        assert BACKEND.is_kernel(kernel)
        assert np.array_equal(kernel(ramp), ramp)


def test_a_kernel_looks_like_its_function(every):
    kernel = every.nki.jit(copying(every))

    assert (kernel.__name__, kernel.__doc__) == ("copy", "Copies.")
    assert list(inspect.signature(kernel).parameters) == ["x"]
    assert repr(kernel) == f"<kernel copy, NKI {every.version}>"


def test_decorating_twice_changes_nothing(every):
    kernel = every.nki.jit(copying(every))

    assert every.nki.jit(kernel) is kernel


@pytest.mark.parametrize("thing", ["trace", 3, ()], ids=repr)
def test_only_functions_are_decorated(every, thing):
    with pytest.raises(LaunchError, match=r"nki\.jit of a"):
        every.nki.jit(thing)


@pytest.mark.parametrize(
    "options", [{"mode": "jax"}, {"debug_kernel": True}, {"experimental_flags": "--x"}], ids=str
)
def test_options_of_the_compiler_change_nothing(every, ramp, options):
    assert np.array_equal(every.nki.jit(**options)(copying(every))(ramp), ramp)


def test_what_changes_nothing_is_noted(now, ramp, caplog):
    with caplog.at_level("INFO", "neuroncore.notes"):
        now.nki.jit(debug_kernel=True)(copying(now))(ramp)

    assert "nki.jit(debug_kernel=True) changes nothing here" in caplog.text


def test_a_kernel_runs_on_the_target_that_it_names_up_to_0_2(speak):
    lang = speak("0.2")
    seen = []
    kernel = lang.nki.jit(platform_target="trn1")(
        lambda: seen.append(lang.nisa.get_nc_version().name)
    )

    kernel()

    assert seen == ["gen2"]


@pytest.mark.parametrize("version", BACKEND.versions[1:])
def test_a_target_is_an_error_from_0_3_on(speak, version):
    with pytest.raises(UnsupportedError, match="platform_target='trn1'"):
        speak(version).nki.jit(platform_target="trn1")


def test_the_function_of_a_kernel_is_there(every):
    function = copying(every)

    assert every.nki.jit(function).func is function


# -- kernels that call kernels ---------------------------------------------------------------------


def test_a_plain_function_is_part_of_its_kernel(every, ramp):
    assert np.array_equal(every.run(lambda x: copying(every)(x), ramp), ramp)


def test_kernels_call_decorated_functions(every, ramp):
    part = every.nki.jit(copying(every))

    assert np.array_equal(every.run(lambda x: part(x), ramp), ramp)


# -- bound early, called late ----------------------------------------------------------------------


@pytest.mark.parametrize("version", BACKEND.versions)
def test_a_kernel_keeps_the_version_it_was_decorated_in(speak, ramp, version):
    lang = speak(version)
    last = lang.nki.jit(lambda x: lang.out(x[:, -1]))

    with in_force(nki="0.6" if version < "0.6" else "0.2"):
        if version >= "0.6":
            assert np.array_equal(last(ramp), ramp[:, -1])
        else:
            with pytest.raises(AccessError):
                last(ramp)


def needs_200_kb(lang):
    def kernel():
        return lang.nl.ndarray((1, 50_000), lang.nl.float32).size

    return lang.nki.jit(kernel)


def test_the_target_in_force_at_the_call_counts(speak):
    kernel = needs_200_kb(speak("0.6", "trn1"))

    with in_force(target="trn3"):
        assert kernel() == 50_000
    with pytest.raises(CapacityError):
        kernel()


def test_sizes_are_those_of_the_core_that_runs(speak):
    lang = speak("0.6", "trn1")
    kernel = lang.nki.jit(lambda: lang.nl.tile_size.sbuf_size_bytes)

    with in_force(target="trn3"):
        assert kernel() == 32 * 1024 * 1024
        assert lang.nl.tile_size.sbuf_size_bytes == 32 * 1024 * 1024
    assert kernel() == 24 * 1024 * 1024


def test_options_in_force_at_the_call_count(now):
    kernel = now.nki.jit(lambda: now.nl.ndarray((2, 2), now.nl.float32, now.nl.shared_hbm))

    with in_force(uninitialized="zero"):
        assert not kernel().any()
    assert np.isnan(kernel()).all()


def test_another_languages_choice_is_not_this_ones(speak):
    kernel = needs_200_kb(speak("0.6", "trn3"))

    with in_force(backend="beta1", nki="0.1", target="trn1"):
        assert kernel() == 50_000


# -- simulate --------------------------------------------------------------------------------------


def test_nki_simulate_came_with_0_3(every, ramp):
    if every.version == "0.2":
        assert not hasattr(every.nki, "simulate")
    else:
        kernel = every.nki.jit(copying(every))
        assert np.array_equal(every.nki.simulate(kernel)(ramp), ramp)
        assert np.array_equal(every.nki.simulate(copying(every))[2](ramp), ramp)


def test_the_backend_runs_kernels_under_a_choice(speak):
    kernel = needs_200_kb(speak("0.6", "trn1"))

    big = BACKEND.simulate(kernel, Choice("beta2", "0.6", "trn3"))

    with in_force(target="trn1"):
        assert big() == 50_000
    assert big[2]() == 50_000


def test_the_backend_runs_plain_functions(now, ramp):
    assert np.array_equal(BACKEND.simulate(copying(now), Choice("beta2", "0.6"))(ramp), ramp)


def test_a_chosen_version_does_not_change_a_kernels_own(speak, ramp):
    old = speak("0.2")
    last = old.nki.jit(lambda x: old.out(x[:, -1]))

    with pytest.raises(AccessError):
        BACKEND.simulate(last, Choice("beta2", "0.6"))(ramp)


def test_arguments_are_checked_at_every_call_not_only_the_first(now):
    """Plans are remembered per signature; another shape makes another plan."""
    kernel = now.nki.jit(lambda x: now.out(now.tile(x)[:, 0:4]))

    for width in (4, 5, 4):
        assert kernel(np.zeros((2, width), np.float32)).shape == (2, 4)
    with pytest.raises(AccessError):
        kernel(np.zeros((2, 3), np.float32))
