"""HW52: values outside of a kernel that it reads and that change between two launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from neuroncore.checks.report import Report
from neuroncore.checks.traps.detector import Detector
from neuroncore.checks.traps.undefined_results import UndefinedResults
from neuroncore.findings import Region
from neuroncore.machine.launch import RUNNING
from neuroncore.memory import View

MOST = 1000  # elements of a container that is compared
PLAIN = (bool, int, float, str, type(None))


class OutsideState(Detector):
    """Compares what a kernel reads from its module and closure at launches with equal arguments."""

    def __init__(self, report: Report, undefined: UndefinedResults) -> None:
        super().__init__(report, undefined)
        self._seen: dict[object, dict[str, str]] = {}

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        launch = RUNNING.get()
        if launch is None or not isinstance(launch.body, FunctionType):
            return
        kernel = launch.body
        key = kernel, launch.grid, _signature(args), _signature(list(kwargs.items()))
        now = dict(_outside(kernel, kernel.__code__.co_filename, set()))
        before = self._seen.setdefault(key, now)
        for name, value in now.items():
            if before.get(name, value) != value:
                self.found(
                    "HW52", f"{name} has changed since kernel {kernel.__name__} was compiled",
                    Region(kernel.__code__.co_filename, kernel.__code__.co_firstlineno),
                    expected="a parameter of the kernel, which is part of what is cached",
                    got=f"{before[name]}, then {value}",
                )  # fmt: skip


def _signature(values: Sequence[Any]) -> str:
    """The compiler's cache key: dtypes and shapes of tensors, other values as they are."""
    return repr([f"{v.shape} {v.dtype}" if isinstance(v, View) else repr(v) for v in values])


def _outside(function: FunctionType, file: str, seen: set[CodeType]) -> Iterator[tuple[str, str]]:
    """Names of plain values and containers of them that a function of `file` reads, as text."""
    code = function.__code__
    if code in seen or code.co_filename != file:
        return
    seen.add(code)
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    given = {name: cell.cell_contents for name, cell in cells if _has_content(cell)}
    given |= {n: function.__globals__[n] for n in code.co_names if n in function.__globals__}
    for name, value in given.items():
        called = _function_of(value)
        if called is not None:
            yield from _outside(called, file, seen)
        elif _is_plain(value):
            yield name, repr(value)


def _has_content(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _function_of(value: Any) -> FunctionType | None:
    found = value if isinstance(value, FunctionType) else _fields(value).get("function")
    return found if isinstance(found, FunctionType) else None


def _fields(value: Any) -> Mapping[str, Any]:
    """The attributes of an object itself: languages explain at length which ones they lack."""
    return getattr(value, "__dict__", {})


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)) and len(value) > MOST:
        return False
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, (*value, *value.values())))
    return isinstance(value, PLAIN)


DETECTOR = OutsideState
