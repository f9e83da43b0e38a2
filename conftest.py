"""Tests begin with Python's own handler of Ctrl-C, which a shell's background jobs ignore."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
