"""nl.tile_size and nisa.get_nc_version: what the generation that runs offers."""

from __future__ import annotations

import pytest

from neuroncore.errors import AbsentNameError, LaunchError, UnsupportedError

KIB = 1024


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("pmax", 128),
        ("psum_fmax", 512),
        ("psum_bank_fmax", 512),
        ("psum_bank_fmax_bytes", 2 * KIB),
        ("psum_num_banks", 8),
        ("gemm_stationary_fmax", 128),
        ("gemm_moving_fmax", 512),
        ("bn_stats_fmax", 512),
    ],
)
def test_sizes_that_all_generations_share(speak, target, name, size):
    assert getattr(speak("0.6", target).nl.tile_size, name) == size


@pytest.mark.parametrize(("target", "kib"), [("trn1", 192), ("trn2", 224), ("trn3", 256)])
def test_sbuf_grows_with_the_generation(speak, target, kib):
    sizes = speak("0.6", target).nl.tile_size

    assert sizes.sbuf_size_bytes == 128 * kib * KIB
    assert kib * KIB * 0.9 < sizes.sbuf_fmax_bytes < kib * KIB  # documents say "smaller"
    assert sizes.sbuf_fmax == sizes.sbuf_fmax_bytes // 4


def test_the_older_name_of_the_usable_size(speak):
    old, sizes = speak("0.3").nl.tile_size, speak("0.4").nl.tile_size

    assert old.total_available_sbuf_size == sizes.sbuf_fmax_bytes
    assert sizes.psum_fmax_bytes == 4 * sizes.psum_fmax == 2 * KIB


@pytest.mark.parametrize(
    ("version", "name", "text"),
    [
        ("0.3", "sbuf_fmax_bytes", "NKI 0.4 to 0.7, and this is 0.3"),
        ("0.2", "psum_bank_fmax", "NKI 0.5 to 0.7, and this is 0.2"),
        ("0.6", "psum_fmax_bytes", "NKI 0.4, and this is 0.6"),
    ],
)
def test_a_size_of_another_version_is_rejected(speak, version, name, text):
    sizes = speak(version).nl.tile_size

    with pytest.raises(AbsentNameError, match=f"(?s)nl.tile_size has no {name}\n.*part of {text}"):
        getattr(sizes, name)
    assert not hasattr(sizes, name)
    assert name not in dir(sizes)


def test_an_option_sets_the_usable_size(speak):
    small = speak("0.6", usable_sbuf_bytes=1000)

    assert small.inside(lambda: small.nl.tile_size.sbuf_fmax_bytes) == 1000


@pytest.mark.parametrize(("target", "banks"), [("trn1", 8), ("trn2", 7), ("trn3", 7)])
def test_transposes_by_the_tensor_engine_cost_a_bank(speak, target, banks, monkeypatch):
    on = speak("0.6", target)
    monkeypatch.setenv("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE", "true")

    assert on.inside(lambda: on.nl.tile_size.psum_num_banks) == banks


def test_a_size_that_no_document_prints_is_rejected(now):
    with pytest.raises(UnsupportedError, match="sbuf_min_align"):
        now.nl.tile_size.sbuf_min_align  # noqa: B018


@pytest.mark.parametrize(
    ("target", "generation"),
    [("trn1", "gen2"), ("inf2", "gen2"), ("trn2", "gen3"), ("gen3", "gen3"), ("trn3", "gen4")],
)
def test_a_kernel_can_ask_for_the_generation(speak, target, generation):
    on = speak("0.6", target)

    assert on.nisa.get_nc_version() is on.nisa.nc_version[generation]
    assert on.inside(on.nisa.get_nc_version) is on.nisa.nc_version[generation]


def test_an_unknown_target_is_rejected(speak):
    with pytest.raises(LaunchError, match="unknown target 'trn9'"):
        speak("0.6", "trn9").inside(lambda: None)
