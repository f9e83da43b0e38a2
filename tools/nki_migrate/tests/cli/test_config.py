"""`[tool.nki-migrate]`: the nearest file wins, and a mistake in it is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from nki_migrate.cli.config import find_config, pinned_version, read_config
from nki_migrate.cli.settings import Chosen
from nki_migrate.settings.request import Assumption, ConfigError, parse_assumption, read_assumptions


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def table(path: Path, body: str) -> Path:
    return write(path / "pyproject.toml", f"[tool.nki-migrate]\n{body}\n")


def test_the_nearest_table_wins_and_nothing_is_merged(tmp_path):
    table(tmp_path, 'to = "0.3"\nnl = "keep"')
    table(tmp_path / "a", 'to = "0.4"')
    write(tmp_path / "a/b/pyproject.toml", '[project]\nname = "x"\n')

    request = Chosen().request_for(tmp_path / "a/b/k.py")

    assert (request.target, request.nl) == ("0.4", "lower")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('slect = ["NKI"]', "unknown key 'slect' in .* did you mean 'select'"),
        ('to = "0.8"', "expected one of auto, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7"),
        ("unsafe-fixes = 1", "expected true or false"),
        ('select = "NKI1"', "expected a list of strings"),
        ('ignore = ["E501"]', "'E501' is not a rule id"),
        ('per-file-ignores = {"a.py" = "NKI"}', "a table of lists"),
    ],
)
def test_a_mistake_in_the_table_says_what_was_expected(tmp_path, body, message):
    with pytest.raises(ConfigError, match=message):
        find_config(table(tmp_path, body).parent)


def test_a_file_named_with_config_may_hold_the_bare_keys(tmp_path):
    config = read_config(write(tmp_path / "migrate.toml", 'to = "0.5"\n'))

    assert config.values == {"to": "0.5"}


def test_options_beat_the_file_and_ignores_add_up(tmp_path):
    table(tmp_path, 'to = "0.3"\nignore = ["NKI1251"]\nunsafe-fixes = true')

    chosen = Chosen(target="0.5", ignore=("NKI2",), unsafe_fixes=False)
    request = chosen.request_for(tmp_path / "k.py")

    assert (request.target, request.unsafe_fixes) == ("0.5", False)
    assert not request.selects("NKI2015") and not request.selects("NKI1251")
    assert request.selects("NKI1133")


def test_per_file_ignores_hold_for_the_files_they_name(tmp_path):
    table(tmp_path, '[tool.nki-migrate.per-file-ignores]\n"tests/**" = ["NKI1116"]')

    assert not Chosen().request_for(tmp_path / "tests/a/k.py").selects("NKI1116")
    assert Chosen().request_for(tmp_path / "src/k.py").selects("NKI1116")


@pytest.mark.parametrize(
    ("pin", "version"),
    [
        ("nki==0.4.*", "0.4"),
        ("nki == 0.4.1", "0.4"),
        ("nki~=0.5", "0.5"),
        ("nki[extra]>=0.3,<0.6; python_version>'3.10'", "0.3"),
    ],
)
def test_to_auto_reads_the_pin_on_nki(tmp_path, pin, version):
    write(tmp_path / "pyproject.toml", f'[project]\ndependencies = ["numpy", "{pin}"]\n')

    assert pinned_version(tmp_path) == version


@pytest.mark.parametrize("dependencies", ["[]", '["nki"]', '["nki<0.5"]', '["nki-migrate>=0.4"]'])
def test_to_auto_without_a_lower_bound_asks_for_a_version(tmp_path, dependencies):
    write(tmp_path / "pyproject.toml", f"[project]\ndependencies = {dependencies}\n")

    with pytest.raises(ConfigError, match=r"name a version, e\.g\. --to 0\.7"):
        pinned_version(tmp_path)


def test_an_assumption_is_parsed_into_the_kernels_own_words():
    text = "k.x: shape=(S // 2, 128), dtype=nl.bfloat16"

    assert parse_assumption(text) == Assumption(
        "k", "x", shape=("S // 2", "128"), dtype="bfloat16", text=text
    )


@pytest.mark.parametrize("text", ["x: shape=(1,)", "k.x", "k.x: shpe=(1,)", "k.x: shape=3", "k.x:"])
def test_a_malformed_assumption_shows_the_form(text):
    with pytest.raises(ConfigError, match=r"expected 'kernel\.arg: shape=\(S, 128\)"):
        parse_assumption(text)


def test_an_assumption_file_has_one_fact_per_line(tmp_path):
    file = write(tmp_path / "facts.txt", "# why\n\nk.x: dtype=bf16\n*.y: buffer=sbuf\n")

    assert [a.argument for a in read_assumptions(file)] == ["x", "y"]
