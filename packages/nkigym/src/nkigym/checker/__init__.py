"""Whether a tile program is what it should be: by value numbers, and by running it.

Shares no code with what finds and certifies programs.
"""

from nkigym.checker.certificate import Certificate, read_certificate
from nkigym.checker.checking import check_tiles, run_tiles
from nkigym.checker.findings import CertificateFileError, Finding

__all__ = [
    "Certificate",
    "CertificateFileError",
    "Finding",
    "check_tiles",
    "read_certificate",
    "run_tiles",
]
