"""Which orderings a kernel needs: proved, explained, scheduled, checked."""

from tokenplan.model import Access, Buffer, Kernel, Loop, Mode, Op
from tokenplan.read import read

__all__ = ["Access", "Buffer", "Kernel", "Loop", "Mode", "Op", "read"]
