"""`nki-scope`: pictures of views, and what pages contain."""

from __future__ import annotations

import base64
import json
import re
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

import numpy as np
import pytest

from nki_scope.cli import main
from nki_scope.document import Columns

COPY = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def copy(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def copied(page_of) -> Path:
    return page_of(COPY, "copy", np.ones((128, 64), np.float32))


def svg_of(page: Path, view: str) -> ElementTree.Element:
    file = page.with_suffix(".svg")
    assert main(["svg", str(page), view, "-o", str(file)]) == 0
    return ElementTree.parse(file).getroot()


def test_an_svg_has_a_bar_for_each_micro_op_in_proportion(browser, copied, data_of):
    document, columns = data_of(copied)
    bars = document["kernels"][0]["bars"]
    times = [columns[bars[name]["column"]] for name in ("start", "busy")]
    root = svg_of(copied, "Timeline")
    found = [r for r in root.iter(f"{SVG}rect") if r.get("height") == "18" and r.get("fill")]
    drawn = np.array([[float(r.get(name, 0)) for name in ("x", "width")] for r in found])
    drawn = drawn[(drawn[:, 1] > 0) & [r.get("fill") != "none" for r in found]]
    scale = drawn[0, 1] / times[1][0]

    assert np.allclose(drawn[:, 1], scale * times[1], atol=0.02)
    assert np.allclose(drawn[:, 0] - drawn[0, 0], scale * (times[0] - times[0][0]), atol=0.1)


def test_an_svg_of_a_source_with_control_characters_is_xml(browser, page_of):
    text = COPY.replace("    return out", "    # \x0c \x1b[31m\n    return out")
    page = page_of(text, "copy", np.ones((128, 64), np.float32))
    texts = [text.text or "" for text in svg_of(page, "Source").iter(f"{SVG}text")]

    assert any("\ufffd" in text for text in texts)


VIEWS = {
    "Source": "nisa.dma_copy(dst=tile, src=x)",
    "Memory": "SBUF at the peak",
    "Tensors": "infinity",
    "Roofline": "HBM bandwidth",
    "What if": "the kernel is played again",
    "Advice": "dma_copy on the critical path",
}


@pytest.mark.parametrize("view", VIEWS)
def test_an_svg_has_the_text_of_its_view(browser, copied, view):
    texts = [text.text for text in svg_of(copied, view).iter(f"{SVG}text")]

    assert any(VIEWS[view] in text for text in texts if text)


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_picture_of_an_unknown_view_is_rejected(browser, copied, tmp_path, capsys, kind):
    file = tmp_path / f"x.{kind}"

    with pytest.raises(SystemExit, match="2"):
        main([kind, str(copied), "Memroy", "-o", str(file)])
    said = capsys.readouterr().err
    assert "no view 'Memroy'; did you mean 'Memory'?" in said
    assert "Timeline or Source or Memory" in said
    assert not file.exists()


def test_a_view_is_named_in_any_case(browser, copied, tmp_path):
    assert main(["png", str(copied), "what IF", "-o", str(tmp_path / "x.png")]) == 0
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("kind", "name"), [("png", "x.jpg"), ("svg", "x.png"), ("png", "x")])
def test_an_output_of_another_format_is_rejected(tmp_path, capsys, kind, name):
    with pytest.raises(SystemExit, match="2"):
        main([kind, "page.html", "Timeline", "-o", str(tmp_path / name)])
    assert f"{name} does not end in .{kind}" in capsys.readouterr().err


def test_a_page_without_a_browser_is_named(copied, monkeypatch, capsys):
    monkeypatch.setattr("webbrowser.open", lambda address: False)

    with pytest.raises(SystemExit, match="2"):
        main(["open", str(copied)])
    assert f"open {copied.as_uri()} in one" in capsys.readouterr().err


def test_show_prints_the_times_and_advice_of_a_page(copied, data_of, capsys):
    kernels = data_of(copied)[0]["kernels"]

    assert main(["show", str(copied), "--output-format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["kernels"]
    assert [
        (k["name"], k["mode"], k["total_ns"], [entry["gain_ns"] for entry in k["advice"]])
        for k in found
    ] == [
        (k["name"], k["mode"], k["totalNs"], [entry["gainNs"] for entry in k["advice"]])
        for k in kernels
    ]
    lines = [place for k in found for entry in k["advice"] for place in entry["lines"]]
    source = str(copied.with_name("kernels.py"))
    assert {(p["file"], p["line"]) for p in lines} == {
        (source, line) for line, text in enumerate(COPY.splitlines(), 1) if "dma_copy" in text
    }

    assert main(["show", str(copied)]) == 0
    text = capsys.readouterr().out
    assert all(kernel["summary"] in text for kernel in kernels)


@pytest.mark.parametrize("command", ["show", "open", "compare"])
def test_what_is_not_a_page_is_rejected(command, copied, tmp_path, capsys):
    other = tmp_path / "other.html"
    other.write_text("<html></html>")

    assert rejected(command, copied, other, capsys) == (
        f"{other}: not a page that --report wrote\n    write it again with --report of this version"
    )


def rejected(command: str, page: Path, other: Path, capsys) -> str:
    """What a command says that rejects the other page."""
    words = {"compare": [str(page), str(other)], "png": [str(other), "Memory", "-o", "m.png"]}
    with pytest.raises(SystemExit, match="2"):
        main([command, *words.get(command, [str(other)])])
    return capsys.readouterr().err.removeprefix("nki-scope: ").strip()


DAMAGED = {
    "AAAA": "a page with damaged data", "====": "a page with damaged data",
    base64.b64encode(zlib.compress(b"other")).decode(): "a page of another version",
}  # fmt: skip


@pytest.mark.parametrize("command", ["show", "compare", "png"])
@pytest.mark.parametrize("data", DAMAGED)
def test_damaged_data_and_data_of_another_version_are_rejected(
    command, data, copied, tmp_path, capsys
):
    other = tmp_path / "other.html"
    other.write_text(re.sub('id="data">[^<]*', f'id="data">{data}', copied.read_text("utf-8")))

    assert rejected(command, copied, other, capsys).startswith(f"{other}: {DAMAGED[data]}\n")


@pytest.mark.parametrize("command", ["show", "compare"])
def test_a_page_without_what_this_version_shows_is_of_another_version(
    command, copied, tmp_path, data_of, capsys
):
    other = tmp_path / "other.html"
    data = Columns().packed(data_of(copied)[0] | {"kernels": [{"name": "copy"}]})
    other.write_text(re.sub('id="data">[^<]*', f'id="data">{data}', copied.read_text("utf-8")))

    assert "other.html: a page of another version" in rejected(command, copied, other, capsys)


def test_a_page_of_another_version_is_shown_by_its_own_script(copied, monkeypatch):
    shown = []
    monkeypatch.setattr("webbrowser.open", lambda address: shown.append(address) or True)
    data = base64.b64encode(zlib.compress(b"other")).decode()
    copied.write_text(re.sub('id="data">[^<]*', f'id="data">{data}', copied.read_text("utf-8")))

    assert main(["open", str(copied)]) == 0
    assert shown == [copied.as_uri()]
