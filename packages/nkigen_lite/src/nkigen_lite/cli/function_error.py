"""What the code that the user names raises, whatever it is: never ours."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from neuroncore.errors import KernelError


class FunctionError(Exception):
    """The user's module or function raised something; that is `raised`."""

    def __init__(self, what: str, raised: Exception) -> None:
        super().__init__(f"{what} raised {type(raised).__name__}")
        self.raised = raised

    def lines(self) -> str:
        """The traceback below the lines that are ours."""
        trace_of = self.raised.__traceback__
        while trace_of is not None and _is_ours(trace_of.tb_frame.f_globals.get("__name__", "")):
            trace_of = trace_of.tb_next
        return "".join(traceback.format_exception(type(self.raised), self.raised, trace_of))


@contextmanager
def users_code(what: str) -> Iterator[None]:
    """Only around calls of what the user names: anything may come from there.

    Raises FunctionError; a KernelError, which says where it belongs, as it is.
    """
    try:
        yield
    except KernelError:
        raise
    except Exception as raised:
        raise FunctionError(what, raised) from raised


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("nkigen_lite", "importlib", "contextlib")
