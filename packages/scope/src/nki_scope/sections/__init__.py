"""What a page shows of the records of other packages, as JSON and columns."""

from nki_scope.sections.kernel import instances_of, kernel_section
from nki_scope.sections.memory import memory_section

__all__ = ["instances_of", "kernel_section", "memory_section"]
