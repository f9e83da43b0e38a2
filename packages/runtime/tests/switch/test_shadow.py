"""An installed package `nki` is not replaced unless the caller requests it with `shadow=True`."""

from __future__ import annotations

import importlib
import sys

import pytest

from nki_runtime import ShadowError, VendorPackageError, current, simulate, use


@pytest.mark.parametrize(("backend", "root"), [("beta2", "nki"), ("beta1", "neuronxcc")])
def test_an_installed_package_is_not_hidden_unasked(backend, root, vendor, modules):
    with pytest.raises(ShadowError) as error:
        use(backend)

    assert f"a package {root!r} that is not ours is installed" in str(error.value)
    assert str(vendor / root / "__init__.py") in str(error.value)
    assert "shadow=True" in str(error.value)
    assert modules() == {}
    assert current() is None


@pytest.mark.parametrize(("backend", "top"), [("beta2", "nki"), ("beta1", "neuronxcc.nki")])
def test_asked_to_hide_it_gives_back_the_same_objects(backend, top, vendor, modules):
    real = importlib.import_module(f"{top}.language")
    before, parents = modules(), {n: dict(vars(m)) for n, m in sys.modules.items() if "n" in n}

    with use(backend, shadow=True):
        assert importlib.import_module(f"{top}.language").choice.backend == backend
        with use(backend, shadow=True, precise=False):
            assert importlib.import_module(f"{top}.language") is not real

    assert modules() == before
    assert importlib.import_module(f"{top}.language") is real
    for name in before:
        assert dict(vars(sys.modules[name])) == parents[name]


def test_an_imported_parent_stays_and_shows_our_child(vendor):
    import neuronxcc

    with use("beta1", shadow=True):
        assert sys.modules["neuronxcc"] is neuronxcc
        assert neuronxcc.nki.choice.backend == "beta1"

    assert not hasattr(neuronxcc, "nki")


def test_modules_of_the_hidden_package_are_not_reached_through_ours(vendor):
    (vendor / "nki" / "extra.py").write_text("")
    import nki.extra

    real = nki.extra

    with use("beta2", shadow=True), pytest.raises(ModuleNotFoundError):
        importlib.import_module("nki.extra")
    assert importlib.import_module("nki.extra") is real


def test_a_module_put_there_by_hand_counts_as_real(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "nki", type(sys)("nki"))
        with pytest.raises(ShadowError, match=r"sys.modules\['nki'\] \(no file\)"):
            use("beta2")


def test_a_folder_of_that_name_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "nki").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))

    with use("beta2"):
        assert importlib.import_module("nki").choice.backend == "beta2"


def test_inside_a_switch_that_hides_it_no_request_is_needed_again(vendor):
    with use(nki="0.2", shadow=True), use(nki="0.6"):
        assert importlib.import_module("nki").choice.nki == "0.6"


def test_neuron_without_the_vendors_package_says_what_to_do():
    with pytest.raises(VendorPackageError) as error:
        use("neuron")

    text = str(error.value)
    assert "vendor package not installed" in text
    assert "install the SDK's nki package" in text
    assert 'backend="beta2"' in text


def test_neuron_hands_over_and_keeps_what_was_imported(vendor):
    with use("neuron") as switch:
        import nki

        assert nki.made_by == "vendor"
        assert switch.choice.nki == "installed"

    assert sys.modules["nki"] is nki


def test_neuron_inside_a_language_uncovers_the_vendors_package(vendor):
    real = importlib.import_module("nki")

    with use("beta2", shadow=True):
        ours = importlib.import_module("nki")
        with use("neuron"):
            assert importlib.import_module("nki") is real is not ours
            part = importlib.import_module("nki.language")
        assert importlib.import_module("nki") is ours

    assert sys.modules["nki.language"] is part is real.language


@pytest.mark.parametrize(("wanted", "found"), [("0.6", "0.6.1"), ("0.6", "0.6"), (None, "0.5")])
def test_neuron_takes_the_version_that_is_installed(wanted, found, vendor):
    announce(vendor, found)

    with use("neuron", nki=wanted) as switch:
        assert switch.choice.nki == found


def test_neuron_rejects_a_version_that_is_not_installed(vendor):
    announce(vendor, "0.5.0")

    with pytest.raises(VendorPackageError) as error:
        use("neuron", nki="0.6")
    assert "expected: NKI 0.6\n    got:      NKI 0.5.0" in str(error.value)


def test_simulate_hands_a_kernel_to_the_vendors_simulator(vendor):
    (vendor / "nki" / "__init__.py").write_text("def simulate(k):\n    return lambda x: k(x) + 1")

    with use("neuron"):
        assert simulate(lambda x: 10 * x)(4) == 41


def announce(site, version):
    info = site / f"nki-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: nki\nVersion: {version}\n")
    importlib.invalidate_caches()
