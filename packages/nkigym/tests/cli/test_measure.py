"""`nkigym measure`: the fastest schedules of a store by each runner."""

import json

import pytest
from packages.nkigym.tests import tuning_kernels

from nkigym import tune
from nkigym.cli import main


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "found.db"
    tune(tuning_kernels.softmax, "f32[256,128]", budget=20, store=path)
    return str(path)


def test_the_model_measures_what_it_has_predicted(store, capsys):
    assert main(["measure", store, "--number", "3", "--output-format", "json"]) == 0

    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 3
    assert all(row["p50_ns"] == row["predicted_ns"] for row in rows)


def test_values_are_compared_here(store, capsys):
    assert main(["measure", store, "--runner", "interpreter"]) == 0
    assert capsys.readouterr().out.count("  ok\n") == 4

    assert main(["show", store]) == 0
    assert "interpreter: 4 measured" in capsys.readouterr().out


def test_an_absent_device_names_what_is_missing(store, capsys):
    assert main(["measure", store, "--runner", "neuron"]) == 1
    assert "the package nki is not installed" in capsys.readouterr().err
