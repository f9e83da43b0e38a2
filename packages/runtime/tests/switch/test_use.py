"""What `import nki` leads to, before, during and after `use`."""

from __future__ import annotations

import contextvars
import importlib
import sys
from types import ModuleType

import pytest

from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.machine.observe import WATCHERS, Watcher, watched_by
from nki_runtime import SwitchError, current, use


def name_of(module):
    choice = importlib.import_module(module).choice
    return f"{choice.backend} {choice.nki}"


def test_use_answers_every_module_of_the_language():
    with use("beta2"):
        import nki.isa as nisa
        import nki.language as nl
        from nki import jit
        from nki.isa.constants import choice

    assert nl.choice == nisa.choice == choice == jit.keywords["choice"]


def test_use_answers_under_neuronxcc_for_beta1():
    with use("beta1"):
        import neuronxcc.nki.language as nl
        from neuronxcc import nki

    assert nl.choice.backend == nki.choice.backend == "beta1"


def test_after_the_block_the_name_is_unknown_again(modules):
    before = modules()

    with use("beta2"):
        assert name_of("nki") == "beta2 0.6"

    assert modules() == before == {}
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("nki")


def test_a_module_whose_name_only_begins_like_the_language_stays(monkeypatch):
    neighbour = ModuleType("nkilib")
    monkeypatch.setitem(sys.modules, "nkilib", neighbour)

    with use("beta2"):
        assert sys.modules.get("nkilib") is neighbour


def test_as_a_function_it_stays_until_closed(modules):
    switch = use("beta2")
    assert name_of("nki") == "beta2 0.6"

    switch.close()
    switch.close()

    assert modules() == {}


def test_a_closed_switch_is_not_entered_again():
    switch = use("beta2")
    switch.close()

    with pytest.raises(SwitchError, match=r"this switch to beta2 0\.6 on trn2 is closed"), switch:
        pass


def test_the_same_choice_nests_with_the_same_modules(modules):
    with use("beta2"):
        outer = modules()
        with use("beta2"):
            assert modules() == outer
        assert modules() == outer

    assert modules() == {}


def test_another_version_inside_is_restored_outside(modules):
    with use("beta2", nki="0.2"):
        outer = modules()
        with use(nki="0.6"):
            assert name_of("nki.language") == "beta2 0.6"
        assert modules() == outer
        assert name_of("nki.language") == "beta2 0.2"


def test_another_language_inside_leaves_the_outer_names_answered():
    with use("beta1"), use("beta2") as inner:
        assert name_of("neuronxcc.nki") == "beta1 0.1"
        assert name_of("nki") == "beta2 0.6"
        assert current() == inner.choice


def test_an_exception_leaves_and_restores(modules):
    with pytest.raises(ZeroDivisionError), use("beta1"), use("beta2"):
        raise ZeroDivisionError

    assert modules() == {}
    assert CURRENT.get() is None


def test_switches_may_be_closed_in_any_order(modules):
    first, second = use("beta1"), use("beta2")

    first.close()
    assert "neuronxcc" not in sys.modules
    assert name_of("nki") == "beta2 0.6"
    assert CURRENT.get() == second.choice

    second.close()
    assert modules() == {}
    assert CURRENT.get() is None


def test_a_repeated_choice_answers_where_it_is_last():
    with use(nki="0.2"), use(nki="0.6"), use(nki="0.2"):
        assert name_of("nki") == "beta2 0.2"


def test_what_the_language_imports_of_itself_is_gone_afterwards(modules):
    with use("beta2"):
        sys.modules["nki.late"] = sys.modules["nki"]

    assert modules() == {}


def test_a_name_keeps_the_language_it_came_from():
    with use("beta2", nki="0.2"):
        import nki.language as nl
    with use("beta2", nki="0.6"):
        assert nl.choice.nki == "0.2"


def test_a_kernel_made_under_one_switch_runs_under_the_same_language_later():
    with use("beta2", target="trn1"):
        import nki

        kernel = nki.jit(lambda: None)

    kernel()
    with use("beta2", target="trn3"):
        kernel()
    with use("beta1"):
        kernel()

    assert [choice.target for choice, _ in kernel.runs] == ["trn1", "trn3", "trn1"]


def test_a_generator_sets_the_switch_of_the_code_that_drives_it(modules):
    def language():
        with use("beta2"):
            yield name_of("nki")

    with use("beta1") as outer:
        running = language()
        assert next(running) == "beta2 0.6"
        assert current() != outer.choice
        running.close()
        assert current() == outer.choice


def test_current_is_none_without_a_switch():
    assert current() is None


def test_current_follows_into_a_context_that_was_made_before():
    elsewhere = contextvars.copy_context()

    with use("beta2") as switch:
        assert elsewhere.run(current) == switch.choice


def test_a_setting_made_in_another_context_may_be_changed():
    # As the cells of a notebook do, each of which may run in a context of its own.
    first = contextvars.copy_context().run(use, "beta1")
    second = contextvars.copy_context().run(use, "beta2")

    assert name_of("nki") == "beta2 0.6"
    second.close()
    first.close()


def test_what_a_language_had_set_by_itself_is_back_afterwards():
    own = Choice("beta2", "0.4")
    token = CURRENT.set(own)

    with use("beta1"):
        assert CURRENT.get() is not own

    assert CURRENT.get() is own
    CURRENT.reset(token)


def test_observers_watch_inside_the_block_only():
    outer, inner = Watcher(), Watcher()

    with use("beta2", observers=[outer]):
        with use("beta2", observers=[inner]):
            assert WATCHERS.get() == (outer, inner)
        assert WATCHERS.get() == (outer,)

    assert WATCHERS.get() == ()


def test_watchers_inside_a_block_see_what_blocks_in_it_run():
    outer, between, inner = Watcher(), Watcher(), Watcher()

    with use("beta2", observers=[outer]):
        with watched_by(between):
            with use("beta2", observers=[inner]):
                assert set(WATCHERS.get()) == {outer, between, inner}
            assert set(WATCHERS.get()) == {outer, between}
        assert WATCHERS.get() == (outer,)

    assert WATCHERS.get() == ()


def test_the_switch_says_what_it_is():
    with use("beta2", target="gen4", precise=False) as switch:
        assert repr(switch) == "<Switch to beta2 0.6 on trn3 with precise=False, open>"
    assert repr(switch) == "<Switch to beta2 0.6 on trn3 with precise=False, closed>"
