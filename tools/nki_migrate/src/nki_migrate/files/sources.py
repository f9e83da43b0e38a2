"""Reading a source file so that what is not edited can be written back byte for byte."""

from __future__ import annotations

import codecs
import io
import tokenize
from dataclasses import dataclass
from pathlib import Path

_MENTIONS = (b"neuronxcc", b"nki")


class UnreadableSourceError(Exception):
    """A file whose text cannot be had; `str()` is the reason, in the user's words."""


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
    """The text of a Python file, by its encoding cookie or as UTF-8 when it has none.

    Raises UnreadableSourceError with the first bad byte's line when the bytes are not that, and for
    NUL bytes.
    """
    if b"\0" in raw:  # Python reads no such file, in any encoding
        raise UnreadableSourceError(
            "holds NUL bytes, as UTF-16 and UTF-32 do; save the file as UTF-8"
        )
    bom = raw.startswith(codecs.BOM_UTF8)
    body = raw.removeprefix(codecs.BOM_UTF8)
    encoding = _declared_encoding(body)
    try:
        return SourceText(raw, body.decode(encoding), encoding, bom)
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise UnreadableSourceError(
            f"not {encoding.upper()}: byte 0x{body[error.start]:02x} on line {line}; "
            "save the file as UTF-8 or declare its encoding in the first line (PEP 263)"
        ) from None


def _declared_encoding(body: bytes) -> str:
    first_lines = io.BytesIO(b"\n".join(body.split(b"\n", 2)[:2]) + b"\n")
    try:
        encoding, _ = tokenize.detect_encoding(first_lines.readline)
    except SyntaxError as error:
        # Either an unknown cookie, or no cookie and a first line that is not UTF-8: the second
        # is better said with the byte and its line.
        if "unknown encoding" in str(error):
            raise UnreadableSourceError(f"{error.msg} in its first lines (PEP 263)") from None
        return "utf-8"
    return "utf-8" if encoding == "utf-8-sig" else encoding
