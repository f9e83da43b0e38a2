"""How each NKI version writes an instruction: parameter order, defaults, renames. Data only.

Languages read it forward (arguments → record fields), an emitter backward, the codemod as a diff.
"""

from neuroncore.surface._read import (
    DEFAULT_VERSION,
    REQUIRED,
    VERSIONS,
    Param,
    Signature,
    instruction_names,
    signature,
    span,
    version_tuple,
)

__all__ = [
    "DEFAULT_VERSION",
    "REQUIRED",
    "VERSIONS",
    "Param",
    "Signature",
    "instruction_names",
    "signature",
    "span",
    "version_tuple",
]
