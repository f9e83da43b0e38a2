"""Python source of users: what cannot be decoded or parsed, with its place."""

from __future__ import annotations

import ast
import codecs
import io
from contextlib import suppress
from pathlib import Path

from neuroncore.errors import OptionError
from neuroncore.findings.finding import Region

UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python raises for source that it does not take."""


class UnreadableSourceError(Exception):
    """A file whose text cannot be had; `str()` is the reason, in the user's words."""

    def __init__(self, what: str, line: int = 1) -> None:
        super().__init__(what)
        self.line = line


class SourceError(OptionError):
    """A file that a command names is not Python."""

    def __init__(self, what: str, place: Region, *excerpt: str) -> None:
        super().__init__("\n".join([f"{place}: {what}", *excerpt]))
        self.place = None  # in the text
        self.reason, self.region = what, place


def check_source(file: Path) -> None:
    """Raise SourceError for a file that Python does not read, with the line. Raises OSError."""
    raw = file.read_bytes()
    try:
        decode_python(raw)
        parse_python(raw, str(file))
        compile(raw, str(file), "exec", dont_inherit=True)
    except UnreadableSourceError as wrong:
        raise SourceError(str(wrong), Region(str(file), wrong.line)) from None
    except SyntaxError as wrong:
        line, column = max(1, wrong.lineno or 1), max(1, wrong.offset or 1)
        place = Region(str(file), line, column, line, max(column + 1, wrong.end_offset or 0))
        what = "an integer of too many digits" if "int_max_str_digits" in wrong.msg else wrong.msg
        raise SourceError(f"not Python: {what}", place, *place.excerpt()) from None
    except (RecursionError, MemoryError):
        raise SourceError("not Python: nested too deeply", Region(str(file))) from None


def decode_python(raw: bytes) -> tuple[str, str]:
    """The text of a Python file, by its encoding cookie or as UTF-8 when it has none, and its
    encoding; without a byte order mark.

    Raises UnreadableSourceError with the first bad byte's line when the bytes are not that, and for
    NUL bytes.
    """
    if b"\0" in raw:  # Python reads no such file, in any encoding
        raise UnreadableSourceError(
            "holds NUL bytes, as UTF-16 and UTF-32 do; save the file as UTF-8",
            raw.count(b"\n", 0, raw.index(b"\0")) + 1,
        )
    body = raw.removeprefix(codecs.BOM_UTF8)
    encoding = _declared_encoding(body)
    _check_encoding(encoding, is_marked=len(body) < len(raw))
    try:
        return body.decode(encoding), encoding
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise UnreadableSourceError(
            f"not {encoding.upper()}: byte 0x{body[error.start]:02x} on line {line}; "
            "save the file as UTF-8 or declare its encoding in the first line (PEP 263)",
            line,
        ) from None
    except UnicodeError:
        raise _not_of_text(encoding) from None


def _check_encoding(encoding: str, is_marked: bool) -> None:
    """Raise UnreadableSourceError for one in which Python reads no source."""
    if is_marked and encoding != "utf-8":
        raise UnreadableSourceError(f"{encoding} is declared after a byte order mark of UTF-8")
    with suppress(LookupError, UnicodeError):  # of codecs of bytes, and of `undefined`
        if b"#".decode(encoding) == "#":
            return
    raise _not_of_text(encoding)


def _not_of_text(encoding: str) -> UnreadableSourceError:
    return UnreadableSourceError(
        f"{encoding} is not an encoding of text; save the file as UTF-8 (PEP 263)"
    )


def _declared_encoding(body: bytes) -> str:
    import tokenize

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


def parse_python(source: str | bytes, path: str = "<unknown>") -> ast.Module:
    """The tree of a module.

    Raises SyntaxError, also where `ast.parse` raises ValueError (null bytes), RecursionError or
    MemoryError (brackets nested too deeply).
    """
    try:
        return ast.parse(source, path)
    except SyntaxError:
        raise
    except ValueError as wrong:
        raise SyntaxError(str(wrong), (path, 1, 1, "")) from None
    except (RecursionError, MemoryError):
        raise SyntaxError("nested too deeply", (path, 1, 1, "")) from None
