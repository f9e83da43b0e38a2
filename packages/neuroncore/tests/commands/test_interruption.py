"""Ctrl-C and SIGTERM: one message and one exit code, also during imports."""

import contextlib
import os
import signal

import pytest

from neuroncore.commands.interruption import (
    ENDING,
    TERMINATIONS,
    delayed_signals,
    entry_point,
    termination_interrupts,
    uninterrupted,
)


@pytest.fixture(autouse=True)
def _as_a_shell_starts_a_process():
    """Signals that this process was started to ignore, as by nohup, are not."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in TERMINATIONS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_an_interruption_of_the_imports_of_a_command_is_one_of_the_command(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "interrupted_imports.py").write_text("raise KeyboardInterrupt")
    monkeypatch.syspath_prepend(tmp_path)

    assert entry_point("tool", "interrupted_imports")([]) == 130
    assert capsys.readouterr().err == "tool: interrupted; nothing was reported\n"


def test_signals_of_a_program_that_a_command_executes_are_its_own(tmp_path, monkeypatch):
    (tmp_path / "executes_programs.py").write_text(
        "import signal\n\n\ndef main(argv):\n    return signal.getsignal(signal.SIGTERM)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    assert entry_point("tool", "executes_programs", has_signals=True)([]) is signal.SIG_DFL
    assert entry_point("tool", "executes_programs")([]) is not signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_a_termination_is_an_interruption(number, handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt), termination_interrupts():
            os.kill(os.getpid(), number)
    finally:
        signal.signal(signal.SIGINT, before)
    assert signal.getsignal(number) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with termination_interrupts():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", ENDING, ids=lambda n: n.name)
@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.default_int_handler])
def test_a_call_ends_before_a_signal_interrupts_unless_that_is_ignored(number, handler):
    before, seen = signal.signal(number, handler), []
    try:
        with contextlib.suppress(KeyboardInterrupt):
            with uninterrupted():
                os.kill(os.getpid(), number)
                seen.append("end of the call")
            seen.append("not interrupted")
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)

    assert seen == ["end of the call", "not interrupted"][: 2 if handler is signal.SIG_IGN else 1]


def test_a_second_signal_interrupts_at_once():
    with pytest.raises(KeyboardInterrupt), uninterrupted() as seen:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("not interrupted")
    assert seen == [signal.SIGINT] * 2


@pytest.mark.parametrize("number", ENDING, ids=lambda n: n.name)
def test_a_delayed_signal_interrupts_at_the_end(number):
    seen = []
    with pytest.raises(KeyboardInterrupt), termination_interrupts():
        with delayed_signals():
            signal.raise_signal(number)
            seen.append(signal.sigpending())
        pytest.fail("not interrupted")
    assert seen == [{number}]
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []).intersection(ENDING)
