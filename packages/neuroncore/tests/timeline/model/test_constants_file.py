"""Constants of one user's device in a file."""

from __future__ import annotations

import json

import pytest

from neuroncore.errors import AttributeValueError, LaunchError
from neuroncore.timeline import constants, constants_text, read_constants


def test_a_file_holds_what_differs_and_is_read_back(tmp_path):
    changed = constants().but("DMA_START", "trn2", 812.5).but("MIN_II", "all", 70)
    (tmp_path / "mine.json").write_text(constants_text(changed, "a trn2 of mine"))

    assert json.loads((tmp_path / "mine.json").read_text())["constants"] == {
        "MIN_II": {"all": 70},
        "DMA_START": {"trn2": 812.5},
    }
    for target in ("trn1", "trn2", "trn3"):
        assert read_constants(tmp_path / "mine.json").at(target) == changed.at(target)


def test_a_generation_goes_before_all_in_any_order(tmp_path):
    (tmp_path / "c.json").write_text('{"constants": {"MIN_II": {"gen3": 70, "all": 60}}}')

    values = read_constants(tmp_path / "c.json")

    assert (values.at("trn1")["MIN_II"], values.at("trn2")["MIN_II"]) == (60, 70)


@pytest.mark.parametrize(
    "text, what",
    [
        ('{"constants": {"DMA_STRAT": {"trn2": 1}}}', "'DMA_STRAT' is not a constant"),
        ('{"constants": {"MIN_II": {"trn2": -1}}}', "MIN_II cannot be -1"),
        ('{"constants": {"MIN_II": {"trn2": NaN}}}', "MIN_II cannot be nan"),
        ('{"constants": {"MIN_II": {"trn9": 1}}}', "trn9"),
        ('{"constants": {"MIN_II": {"trn2": 1, "gen3": 2}}}', "MIN_II on trn2 has two values"),
        ('{"constants": {"MIN_II": {"all": 1}, "MIN_II": {"all": 2}}}', "MIN_II has two values"),
        (
            '{"constants": {"DMA_DESCRIPTOR_MIN": {"trn2": 1e6}}}',
            r"DMA_DESCRIPTOR_MIN on trn2 is 1e\+06 ns; the documented values are 7, and 0.233 to",
        ),
        (
            '{"constants": {"MIN_II": {"all": 20}}}',
            "MIN_II is 20 cycles; the documented values are 64",
        ),
        ('{"constants": {"DMA_BANDWIDTH": {"trn2": 5}}}', "values are 17, 23, 33, and 5.67 to 99"),
        ('{"constants": [1]}', "it does not hold constants"),
        ("DMA_START = 3", "it does not hold constants"),
    ],
)
def test_a_file_that_contradicts_itself_or_the_model_is_rejected(tmp_path, text, what):
    (tmp_path / "c.json").write_text(text)

    with pytest.raises(LaunchError, match=what) as raised:
        read_constants(tmp_path / "c.json")

    assert str(tmp_path / "c.json") in raised.value.what


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(LaunchError, match="No such file"):
        read_constants(tmp_path / "none.json")


def test_every_constant_is_plausible_as_it_is_and_a_million_times_is_not():
    assert not constants().implausible()
    for name, by_target in constants().values.items():
        for target, value in by_target.items():
            changed = constants().but(name, target, (value or 1) * 1e6)
            assert [name for name, _ in changed.implausible()] == [name]


def test_values_between_known_ones_are_plausible(tmp_path):
    (tmp_path / "c.json").write_text(
        '{"constants": {"WARM_UP": {"trn2": 0}, "DMA_DESCRIPTOR_MIN": {"all": 175}}}'
    )

    values = read_constants(tmp_path / "c.json").at("trn2")

    assert (values["WARM_UP"], values["DMA_DESCRIPTOR_MIN"]) == (0, 175)


def test_implausible_constants_are_not_written():
    with pytest.raises(AttributeValueError, match="LAUNCH on trn2 is 1e"):
        constants_text(constants().but("LAUNCH", "trn2", 1e9), "a trn2 of mine")
