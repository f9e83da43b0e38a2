"""Any exception raised by the code that the user names, never by nkigen-lite's."""

from __future__ import annotations

import traceback
from contextlib import AbstractContextManager
from types import TracebackType

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


class users_code(AbstractContextManager[None]):  # noqa: N801
    """Only around calls of what the user names: anything may come from there.

    Raises FunctionError for it. A KernelError, which has a place, and an exception raised in a
    line of nkigen-lite, which is not a mistake of the user's, pass unchanged.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if not isinstance(raised, Exception) or isinstance(raised, KernelError):
            return
        if not _came_from_us(trace):
            raise FunctionError(self.what, raised) from raised


def _came_from_us(trace: TracebackType | None) -> bool:
    """Whether the innermost line is nkigen-lite's; below this file's callers there may be none."""
    frames = [frame for frame, _ in traceback.walk_tb(trace)]
    name = frames[-1].f_globals.get("__name__", "") if frames else ""
    return name.partition(".")[0] == "nkigen_lite"


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("nkigen_lite", "importlib", "contextlib")
