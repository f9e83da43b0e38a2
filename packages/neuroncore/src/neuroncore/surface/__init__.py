"""Signatures of instructions in each NKI version: parameter order, defaults, renames; and calls
that mean something else in two versions. Data only.

Languages read it forward (arguments → record fields), an emitter backward, the codemod as a diff.
"""

from neuroncore.surface._read import (
    DEFAULT_VERSION,
    REQUIRED,
    VERSIONS,
    MeaningChange,
    Param,
    Signature,
    instruction_names,
    meaning_changes,
    signature,
    span,
    version_tuple,
)

__all__ = [
    "DEFAULT_VERSION",
    "REQUIRED",
    "VERSIONS",
    "MeaningChange",
    "Param",
    "Signature",
    "instruction_names",
    "meaning_changes",
    "signature",
    "span",
    "version_tuple",
]
