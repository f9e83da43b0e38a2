"""Errors in a traced NumPy program; most are also NumPy's own exceptions."""

from __future__ import annotations

import numpy as np

from neuroncore.errors import AccessError, KernelError, ShapeError, SignatureError


class TraceError(KernelError):
    """A NumPy program that cannot become a graph."""


class SpecError(TraceError, ValueError):
    """A spec that says nothing, or specs that contradict each other or the function."""


class DataDependentError(TraceError, TypeError):
    """Python asked for a value that only exists when the kernel runs."""


class UnsupportedFunctionError(TraceError, TypeError):
    """A function, method or dtype of NumPy that is not translated."""


class MissingAttributeError(TraceError, AttributeError):
    """An attribute that NumPy's arrays do not have either."""


class UnsupportedKeywordError(TraceError, TypeError):
    """A keyword that is not translated; none is ever ignored."""


class ArgumentError(SignatureError, TypeError):
    """Arguments that NumPy itself rejects with a TypeError."""


class ValueRangeError(TraceError, ValueError):
    """Arguments that NumPy itself rejects with a ValueError."""


class IntegerRangeError(TraceError, OverflowError):
    """A Python integer that does not fit the array's type, as in NumPy."""


class BroadcastError(ShapeError, ValueError):
    """Shapes that do not fit each other."""


class AxisError(ShapeError, np.exceptions.AxisError):
    """An axis that the array does not have."""


class IndexRangeError(AccessError, IndexError):
    """An index outside the array, or of a kind that NumPy does not take."""


class GraphError(KernelError, ValueError):
    """A graph that breaks the rules of its operations."""


class GraphTextError(KernelError, ValueError):
    """Text that is not a graph."""


class RewriteError(RuntimeError):
    """A pass that does not come to rest, or whose result computes something else: ours to mend."""
