"""Reading a source file so that what is not edited can be written back byte for byte."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from neuroncore.python_source import UnreadableSourceError as UnreadableSourceError
from neuroncore.python_source import decode_python

_MENTIONS = (b"neuronxcc", b"nki")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text with everything needed to write it back: encoding and byte order mark.

    Line endings stay in `text` as they are in the file.
    """

    raw: bytes
    text: str
    encoding: str
    bom: bool

    def encode(self, text: str) -> bytes:
        """The bytes of a new text in the file's own encoding."""
        mark = codecs.BOM_UTF8 if self.bom else b""
        return mark + text.encode(self.encoding)


def mentions_nki(raw: bytes) -> bool:
    """Whether a file can hold a kernel at all; one that cannot is not parsed.

    UTF-16 and UTF-32 are looked through too, so that such a file is reported and not passed over.
    """
    text = raw.replace(b"\0", b"") if b"\0" in raw else raw
    return any(name in text for name in _MENTIONS)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file.

    Raises UnreadableSourceError when the file has vanished or may not be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UnreadableSourceError("no such file") from None
    except OSError as error:
        raise UnreadableSourceError(f"cannot be read: {error.strerror or error}") from None


def decode(raw: bytes) -> SourceText:
    """The text of a Python file. Raises UnreadableSourceError as `decode_python` does."""
    text, encoding = decode_python(raw)
    return SourceText(raw, text, encoding, raw.startswith(codecs.BOM_UTF8))
