"""Bytes to text and back: encodings, marks, and what is rejected."""

from __future__ import annotations

import pytest

from nki_migrate.files.sources import UnreadableSourceError, decode, mentions_nki, read_bytes


@pytest.mark.parametrize(
    "raw",
    [
        b"x = 1\r\ny = 2\r\n",
        b"\xef\xbb\xbfx = 1\n",
        "# -*- coding: latin-1 -*-\ns = 'é'\n".encode("latin-1"),
        "s = 'é\u2028'\x0c\n".encode(),
        b"",
    ],
    ids=["crlf", "bom", "cookie", "odd-separators", "empty"],
)
def test_text_goes_back_to_the_same_bytes(raw):
    source = decode(raw)

    assert source.encode(source.text) == raw


def test_a_bad_byte_is_named_with_its_line():
    with pytest.raises(UnreadableSourceError, match="not UTF-8: byte 0xff on line 3"):
        decode(b"import nki\nx = 1\ns = '\xff'\n")


def test_a_bad_byte_in_the_first_line_is_found_too():
    with pytest.raises(UnreadableSourceError, match="not UTF-8: byte 0xe9 on line 1"):
        decode(b"s = '\xe9'\n")


def test_an_unknown_encoding_is_named():
    with pytest.raises(UnreadableSourceError, match="unknown encoding: klingon"):
        decode(b"# coding: klingon\n")


def test_a_vanished_file_is_said_not_to_be_there(tmp_path):
    with pytest.raises(UnreadableSourceError, match="no such file"):
        read_bytes(tmp_path / "k.py")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [(b"import nki\n", True), (b"from neuronxcc import x\n", True), (b"import numpy\n", False)],
)
def test_only_files_that_mention_nki_are_parsed(raw, expected):
    assert mentions_nki(raw) is expected
