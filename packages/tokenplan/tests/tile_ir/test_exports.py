"""Kernels exported by cuTile: read, explained, and written again with the tokens they need."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tokenplan.checker.tile_blocks import Execution
from tokenplan.cli import main
from tokenplan.tile_ir import Order, bytecode
from tokenplan.tile_ir.bytecode_report import explain
from tokenplan.tile_ir.emission import rewritten
from tokenplan.tile_ir.function_model import function_model
from tokenplan.tile_ir.orders import orders_of_kernel

TRIPS = 3
NAMES = ("even_odd", "two_stores", "disjoint_store", "recurrence")
each_export = pytest.mark.parametrize("name", NAMES)


def export(name, trips=64, alias_groups=()):
    pytest.importorskip("cuda.tile", reason="not installed: pip install 'tokenplan[cutile]'")
    from packages.tokenplan.tests.tile_ir import cutile

    return cutile.exported(name, trips, alias_groups)


def run(function, name):
    """The block on arrays of 2 * TRIPS tiles: the first holds numbers, the second zeros."""
    first = np.linspace(-1, 1, 2 * TRIPS * 64 * 128, dtype=np.float32).reshape(-1, 128)
    arrays = [first, np.zeros_like(first)][: 2 if name.startswith(("two", "disjoint")) else 1]
    return Execution(arrays).run(function, [*first.shape, 128, 1] * len(arrays)), arrays


@each_export
def test_an_export_is_read_and_written_as_the_same_module(name):
    module = bytecode.read(export(name))

    assert bytecode.read(bytecode.write(module)) == module


@each_export
def test_a_rewritten_export_has_the_same_values_and_loses_no_order(name):
    (function,) = bytecode.read(export(name, TRIPS)).functions
    found = function_model(function)
    orders = orders_of_kernel(found.kernel, found.grid)
    before, expected = run(function, name)
    after, arrays = run(rewritten(found, orders.kept), name)

    assert list(before.lost()) == list(after.lost()) == []
    assert all((a == b).all() for a, b in zip(arrays, expected, strict=True))
    needed = (Order("store", "load", "loop", 1),) if name == "recurrence" else ()
    assert orders.kept == needed


@each_export
def test_the_compiler_needs_fewer_barriers_for_a_rewritten_export(tileiras, name):
    text, _ = explain(export(name), target="sm_90")
    found = re.search(r"(\d+) barriers and .* tokens, (\d+) and", text)

    assert found, text
    before, after = map(int, found.groups())
    assert before > after and (after == 0) == (name != "recurrence")


def test_the_remarks_of_the_compiler_are_listed_by_access(tileiras):
    """Also of a file without debug locations."""
    module = bytecode.read(export("two_stores"))
    functions = [replace(found, body=without_places(found.body), place=None)
                 for found in module.functions]  # fmt: skip
    data = bytecode.write(replace(module, functions=tuple(functions)))
    text, _ = explain(data, target="sm_90")
    title, *remarks = text[text.index("its remarks") :].splitlines()
    names = [line.strip().partition(":")[0] for line in remarks]

    assert title == "its remarks with the needed tokens"
    assert list(dict.fromkeys(names))[:3] == ["load", "store", "store.2"]
    assert re.search(r"  store\.2: .*TMA store", text), text
    assert re.search(r"  load: Load instruction selected; Global-memory load", text), text


def without_places(block):
    return replace(block, operations=tuple(
        replace(op, place=None, regions=tuple(map(without_places, op.regions)))
        for op in block.operations
    ))  # fmt: skip


def test_the_command_shows_both_token_graphs_and_writes_the_needed_one(tmp_path, capsys):
    file, new = tmp_path / "k.tileirbc", tmp_path / "new.tileirbc"
    file.write_bytes(export("even_odd"))

    assert main(["explain", str(file), "--rewrite", str(new)]) == 0
    shown = capsys.readouterr().out
    assert "0 orders to keep\n3 tokens that it has\n" in shown
    assert "3 of its tokens are not needed" in shown
    assert "load -> store  in the same iteration: " in shown and "[residues]" in shown
    assert "assumed: different elements of p0 are different bytes" in shown
    assert bytecode.read(new.read_bytes()).functions


def test_arrays_of_one_alias_group_stay_in_order(tmp_path, capsys):
    file = tmp_path / "k.tileirbc"
    file.write_bytes(export("disjoint_store", TRIPS, ("g",)))

    assert main(["explain", str(file)]) == 0
    assert "which may share bytes; --distinct p0,p5" in (shown := capsys.readouterr().out)
    assert "load -> store  in the same iteration" in shown.partition("tokens that it has")[0]
    assert main(["explain", str(file), "--distinct", "p0,p5"]) == 0
    assert "0 orders to keep" in capsys.readouterr().out


def test_foreign_bytecode_is_a_usage_error(tmp_path, capsys):
    file = tmp_path / "k.tileirbc"
    file.write_bytes(b"not bytecode")

    with pytest.raises(SystemExit, match="2"):
        main(["explain", str(file)])
    assert "this is not Tile IR bytecode" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--join", "a,b"],
        ["--schedule"],
        ["--output-format", "json"],
        ["--claim", "k=parallel"],
        ["--target", "trn3"],
        ["--nki", "99"],
        ["--verbose"],
    ],
)
def test_an_option_without_effect_on_bytecode_is_a_usage_error(tmp_path, capsys, words):
    with pytest.raises(SystemExit, match="2"):
        main(["explain", str(tmp_path / "k.tileirbc"), *words])
    assert f"{words[0]}: not supported for Tile IR bytecode" in capsys.readouterr().err
