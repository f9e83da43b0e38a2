"""Source that cannot be parsed is a SyntaxError, for every exception of Python."""

from __future__ import annotations

import codecs
import encodings
import pkgutil

import pytest

from neuroncore.python_source import (
    SourceError,
    UnreadableSourceError,
    check_source,
    decode_python,
    parse_python,
)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a = (", "was never closed"),
        ("a\0b", "null bytes"),
        (b"# coding: none\n", "none"),
        ("a." * 100_000 + "a", "nested too deeply|too complex"),
        ("-" * 100_000 + "1", "nested too deeply|too complex|too many nested"),
        ("lambda:" * 5_000 + "1", "nested too deeply|too complex"),
    ],
)
def test_text_that_is_not_python_is_a_syntax_error(source, message):
    with pytest.raises(SyntaxError, match=message):
        parse_python(source)


ENCODINGS = sorted(path.name for path in pkgutil.iter_modules(encodings.__path__))


@pytest.mark.parametrize("encoding", [*ENCODINGS, "rot13", "none"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8], ids=["", "mark"])
def test_a_declared_encoding_is_read_or_rejected_as_python_does(tmp_path, encoding, mark):
    raw = mark + f"# coding: {encoding}\nk = 1\n".encode()
    (tmp_path / "k.py").write_bytes(raw)
    try:
        compile(raw, "k.py", "exec")
    except (SyntaxError, ValueError):
        with pytest.raises(UnreadableSourceError):
            decode_python(raw)
        with pytest.raises(SourceError, match=r"k\.py:1:1: "):
            check_source(tmp_path / "k.py")
    else:
        assert "k = 1" in decode_python(raw)[0]
        check_source(tmp_path / "k.py")
