"""The module nki.isa of a version."""

from nki_beta2.isa.instructions import ENUMS, fill, isa_contents

__all__ = ["ENUMS", "fill", "isa_contents"]
