"""Checks of tile programs and of certificates: by value numbers, and by execution.

Shares no code with what finds and certifies programs.
"""

from nkigym.checker.certificate import Certificate, read_certificate
from nkigym.checker.findings import CertificateFileError, Finding
from nkigym.checker.kernel_value_numbering import check_kernels
from nkigym.checker.step_certificates import check_step
from nkigym.checker.tile_programs import check_root, check_same, check_tiles, run_tiles

__all__ = [
    "Certificate",
    "CertificateFileError",
    "Finding",
    "check_kernels",
    "check_root",
    "check_same",
    "check_step",
    "check_tiles",
    "read_certificate",
    "run_tiles",
]
