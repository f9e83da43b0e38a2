"""Findings about tile programs, with their places."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from neuroncore.errors import KernelError, ProgramTextError


class Finding(NamedTuple):
    """`line` is the statement's place in the program; None for the whole program."""

    line: int | None
    what: str

    def __str__(self) -> str:
        return self.what if self.line is None else f"statement {self.line}: {self.what}"


class NotAllowedError(ValueError):
    """A statement that no program may have; caught where its place is known."""


class CertificateFileError(KernelError):
    """A certificate that cannot be read."""


@contextmanager
def certified_program() -> Iterator[None]:
    """Raise CertificateFileError, with the line, where a certificate has a malformed program."""
    try:
        yield
    except ProgramTextError as wrong:
        raise CertificateFileError(f"the program of the certificate: {wrong}") from None
