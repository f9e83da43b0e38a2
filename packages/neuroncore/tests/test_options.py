"""Options and targets: what may be chosen, and what is said otherwise."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import get_args, get_origin, get_type_hints

import pytest

from neuroncore.errors import LaunchError
from neuroncore.options import Options, make_options
from neuroncore.targets import TARGETS, resolve_target

CHOICES = [
    (name, value)
    for name, hint in get_type_hints(Options).items()
    if get_origin(hint) is not None
    for value in get_args(hint)
    if isinstance(value, str)
]


def test_the_defaults_hide_least():
    assert Options().precise
    assert Options().uninitialized == "nan"
    assert Options().accumulate_on_unwritten == "error"


@pytest.mark.parametrize(("name", "value"), CHOICES)
def test_every_listed_choice_is_taken(name, value):
    assert getattr(make_options(Options(), {name: value}), name) == value


def test_changes_leave_the_base_alone():
    base = Options(uninitialized="zero")

    changed = make_options(base, {"precise": False})

    assert (changed.uninitialized, changed.precise, base.precise) == ("zero", False, True)
    with pytest.raises(FrozenInstanceError):
        setattr(base, "precise", False)  # noqa: B010


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(LaunchError, match="unknown option 'precision'") as raised:
        make_options(Options(), {"precision": True})

    assert all(f.name in str(raised.value) for f in fields(Options))


@pytest.mark.parametrize("name", sorted({name for name, _ in CHOICES}))
def test_a_value_that_an_option_does_not_take_lists_those_it_does(name):
    with pytest.raises(LaunchError, match=f"option {name} does not take 'maybe'") as raised:
        make_options(Options(), {name: "maybe"})

    assert repr(getattr(Options(), name)) in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("precise", 1), ("precise", "yes"), ("usable_sbuf_bytes", -1), ("usable_sbuf_bytes", "1 MiB")],
)
def test_flags_and_sizes_are_checked_too(name, value):
    with pytest.raises(LaunchError, match=f"option {name} does not take"):
        make_options(Options(), {name: value})


@pytest.mark.parametrize(
    ("alias", "name"),
    [("inf2", "trn1"), ("gen2", "trn1"), ("gen3", "trn2"), ("gen4", "trn3"), ("trn2", "trn2")],
)
def test_targets_by_every_name(alias, name):
    assert resolve_target(alias) is TARGETS[name]


def test_an_unknown_target_lists_the_known_ones():
    with pytest.raises(LaunchError, match="unknown target 'trn9'") as raised:
        resolve_target("trn9")

    assert all(name in str(raised.value) for name in (*TARGETS, "inf2"))


def test_sizes_of_the_generations():
    """NKI architecture guides: 24, 28 and 32 MiB of SBUF, 2 MiB of PSUM, on 128 partitions."""
    mib = 2**20

    assert [t.sbuf_bytes * t.partitions // mib for t in TARGETS.values()] == [24, 28, 32]
    assert all(t.psum_bytes * t.partitions == 2 * mib for t in TARGETS.values())
    assert all(t.psum_banks * t.psum_bank_bytes == t.psum_bytes for t in TARGETS.values())
    assert all(t.usable_sbuf_bytes < t.sbuf_bytes for t in TARGETS.values())
