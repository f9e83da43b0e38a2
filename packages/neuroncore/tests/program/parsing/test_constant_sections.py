"""Constants of a program: their text, their rules, what runs on them, their source."""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np
import pytest

from neuroncore.enums import MemorySpace
from neuroncore.errors import ImmutableError, ProgramTextError
from neuroncore.program import (
    Allocate,
    Buffer,
    Loop,
    Program,
    constant_buffer,
    elements_of,
    emit,
    execute_program,
    make_call,
    parse_program,
    print_program,
    verify,
    whole,
)
from neuroncore.program.ir.constants import as_text, from_text
from neuroncore.program.verification.initialization import PLAYED_CALLS
from neuroncore.timeline import estimate
from nki_dtypes import ALL, float32, resolve

NUMBERS = np.random.default_rng(3).standard_normal((128, 64)).astype(np.float32)
TABLE = constant_buffer("table", NUMBERS, float32)
TILE = Buffer("t", (128, 64), float32, MemorySpace.sbuf)
HEAD = 'program("trn2", "0.6")\ndef p(x: float32[128, 64]):\n'
ADDED = """\
    t = buffer(float32[128, 64], sbuf)
    u = buffer(float32[128, 64], sbuf)
    out = buffer(float32[128, 64], shared_hbm)
    dma_copy(dst=t[:, :], src=x[:, :])
    dma_copy(dst=u[:, :], src=table[:, :])
    tensor_tensor(dst=t[:, :], data1=t[:, :], data2=u[:, :], op=add)
    dma_copy(dst=out[:, :], src=t[:, :])
    return out
"""


def adding(table: Buffer = TABLE) -> Program:
    """x + table, for a table of 128 x 64."""
    text = f"{HEAD}    table = buffer(float32[128, 64], shared_hbm)\n{ADDED}"
    program = parse_program(text)
    (_, *body) = program.body
    return Program("p", program.parameters, (Allocate(table), *body), program.results)


def alone(elements: np.ndarray, dtype) -> Program:
    return Program("p", (), (Allocate(constant_buffer("c", elements, dtype)),), ())


def bits(dtype, size: int) -> np.ndarray:
    """Elements of every kind of bits, NaNs with payloads among them."""
    rng = np.random.default_rng(size)
    made = rng.integers(0, 256, size * dtype.itemsize, dtype=np.uint8)
    return made.view(dtype.storage)


# -- text -----------------------------------------------------------------------------------------


def test_few_elements_stand_where_the_constant_does():
    program = alone(np.array([[0.1, np.inf], [-0.0, np.nan]], np.float32), float32)

    assert "    c = constant(float32[2, 2], [0.1, inf, -0.0, nan])" in str(program)
    assert parse_program(str(program)) == program


def test_many_follow_the_function_in_lines_of_base_64():
    text = str(adding())

    assert "    table = constant(float32[128, 64])\n" in text
    assert text.partition("    return out\n")[2].startswith('table = data("')
    assert max(map(len, text.splitlines())) <= 100
    assert parse_program(text) == adding()


def test_what_repeats_is_deflated():
    text = str(alone(np.eye(200, dtype=np.float32), float32))

    assert 'deflated="""' in text
    assert len(text) < 1000
    assert parse_program(text) == alone(np.eye(200, dtype=np.float32), float32)


@pytest.mark.parametrize("size", [1, 16, 17, 1000])
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_bit_comes_back(dtype, size):
    program = alone(bits(dtype, size), dtype)

    assert parse_program(print_program(program)) == program


def test_a_nan_with_a_payload_is_not_written_as_nan():
    payload = np.array([0x7FC00001], np.uint32).view(np.float32)

    assert "nan" not in str(alone(payload, float32))


GOOD = str(adding())
DIGEST = GOOD.partition('data("')[2][:16]
FIRST_LINE = GOOD.partition('base64="""\n')[2].partition("\n")[0]
SECTION = 12
"""The line on which the data begin."""


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "what"),
    [
        (FIRST_LINE + "\n", "", SECTION, 41, "table has 32693 bytes here"),
        (FIRST_LINE, FIRST_LINE + "AAAA", SECTION, 41, "table has more than 32768 bytes"),
        (DIGEST, "0" * 16, SECTION, 14, "the digest of table is another"),
        (FIRST_LINE, "A" * 100, SECTION, 14, "the digest of table is another"),
        (
            FIRST_LINE,
            "?" + FIRST_LINE[1:],
            SECTION,
            41,
            "not base64: it has other characters, or another length",
        ),
        ("base64=", "deflated=", SECTION, 43, "not deflated: it is damaged"),
        ("base64=", "hex=", SECTION, 9, "not the data of a constant"),
        ("table = data", "other = data", 3, 13, "table has no content"),
        ("[128, 64])\n    t", "[128, 65])\n    t", SECTION, 41, "table has 32768 bytes here"),
        ("[128, 64])\n    t", "[2], [1.0])\n    t", 3, 34, "1 elements"),
        ("[128, 64])\n    t", "[1], [x])\n    t", 3, 35, "not a literal"),
        ("[128, 64])\n    t", "[1], ['1'])\n    t", 3, 35, "'1' does not fit float32"),
        ("[128, 64])\n    t", "[1], [1e39])\n    t", 3, 35, "1e+39 does not fit float32"),
        ("[128, 64])\n    t", "[1], 5)\n    t", 3, 34, "not elements"),
        ("[128, 64])\n    t", "[1], [1], 2)\n    t", 3, 13, "not a constant"),
        ("float32[128, 64])\n    t", "uint8[1], [256])\n    t", 3, 33, "256 does not fit uint8"),
        ("float32[128, 64])\n    t", "int8[1], [0.5])\n    t", 3, 32, "0.5 does not fit int8"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_mistake_in_a_constant_is_named_where_it_stands(old, new, line, column, what):
    assert old in GOOD
    with pytest.raises(ProgramTextError) as caught:
        parse_program(GOOD.replace(old, new, 1))
    error = getattr(caught.value, "errors", [caught.value])[0]

    assert error.what.startswith(what)
    assert (error.place.line, error.place.column + 1) == (line, column)


def test_data_that_no_constant_asks_for_are_a_mistake():
    for more in ('other = data("0", base64="")\n', "other()\n", 'table = data("0", base64="")\n'):
        with pytest.raises(ProgramTextError):
            parse_program(GOOD + more)


def test_deflated_data_are_not_unpacked_beyond_the_constant():
    zeros = np.zeros(1 << 20, np.float32)
    text = str(alone(zeros, float32))

    way, lines = as_text(zeros.tobytes())
    assert len(from_text(way, "".join(lines), 256)) == 257
    with pytest.raises(ProgramTextError, match="more than 256 bytes"):
        parse_program(text.replace("[1048576]", "[64]"))


# -- rules ----------------------------------------------------------------------------------------


def said(*body, results=()) -> list[str]:
    return [f.message for f in verify(Program("p", (), (Allocate(TILE), *body), results))]


def test_a_constant_is_initialised_and_takes_no_room_on_chip():
    assert verify(adding()) == []


def test_a_constant_is_initialised_in_a_program_that_is_not_played():
    copy = make_call("dma_copy", dst=whole(TILE), src=whole(TABLE))
    body = (Allocate(TABLE), Allocate(TILE), Loop("i", 0, PLAYED_CALLS + 1, (copy,)))

    assert verify(Program("p", (), body, ())) == []


def test_writing_a_constant_is_found():
    fill = make_call("memset", dst=whole(TILE), value=0.0)
    store = make_call("dma_copy", dst=whole(TABLE), src=whole(TILE))
    program = Program("p", (), (Allocate(TABLE), Allocate(TILE), fill, store), ())

    assert [f.message for f in verify(program)] == ["dst is read-only"]
    with pytest.raises(ImmutableError):
        execute_program(program, [])


@pytest.mark.parametrize(
    ("body", "results", "what"),
    [
        ((Loop("i", 0, 2, (Allocate(TABLE),)),), (), "constant table is made in a loop"),
        ((Allocate(TABLE),), ("table",), "result table is a constant"),
        ((Allocate(Buffer("c", (2,), float32, MemorySpace.shared_hbm, None, b"1234")),), (),
         "c has 4 bytes of content"),
        ((Allocate(Buffer("c", (2, 2), float32, MemorySpace.sbuf, None, bytes(16))),), (),
         "constant c is in SBUF"),
        ((Allocate(TABLE), Allocate(TABLE)), (), "there are two buffers table"),
    ],
)  # fmt: skip
def test_a_constant_that_does_not_fit_is_found(body, results, what):
    assert what in said(*body, results=results)


def test_a_parameter_is_no_constant():
    findings = verify(Program("p", (TABLE,), (), ()))

    assert [f.message for f in findings] == ["parameter table is a constant"]


# -- running --------------------------------------------------------------------------------------


def test_instructions_read_what_the_constant_holds():
    (out,) = execute_program(adding(), [NUMBERS])

    assert np.array_equal(out, NUMBERS + NUMBERS)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_a_dma_moves_every_bit(dtype):
    elements = bits(dtype, 64).reshape(2, 32)
    constant = constant_buffer("c", elements, dtype)
    out = Buffer("out", (2, 32), dtype, MemorySpace.shared_hbm)
    copy = make_call("dma_copy", dst=whole(out), src=whole(constant))
    program = Program("p", (), (Allocate(constant), Allocate(out), copy), ("out",))

    (given,) = execute_program(program, [])

    if given.dtype != bool:  # what is not 0 is True
        assert given.tobytes() == elements.tobytes()


def test_elements_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        elements_of(TABLE)[0] = 1


def test_reading_a_constant_costs_what_reading_hbm_does():
    given = Program("p", (*adding().parameters, Buffer("table", (128, 64), float32,
                    MemorySpace.hbm)), adding().body[1:], ("out",))  # fmt: skip

    assert (
        estimate(adding(), mode="as_written").total_ns
        == estimate(given, mode="as_written").total_ns
    )


# -- source ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.2", "0.3", "0.4", "0.5", "0.6"])
@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("size", [3, 300])
def test_the_array_behind_the_kernel_has_the_bits(dtype, version, size):
    if dtype.since > version:
        pytest.skip(f"{dtype} came with NKI {dtype.since}")
    elements = bits(dtype, size)
    names: dict = {}
    tree = ast.parse(emit(alone(elements, dtype), version))
    kept = [n for n in tree.body if not isinstance(n, ast.FunctionDef) and "nki" not in
            ast.unparse(n)]  # fmt: skip

    exec(compile(ast.Module(kept, []), "constants", "exec"), names)

    assert names["C"].tobytes() == elements.tobytes()
    assert names["C"].shape == (size,)


def test_the_kernel_comes_before_its_data():
    lines = emit(adding()).splitlines()

    assert lines[:7] == [
        "import base64", "", "import nki", "import nki.isa as nisa", "import nki.language as nl",
        "import numpy as np", "",
    ]  # fmt: skip
    (call,) = [n for n, line in enumerate(lines) if "nl.shared_constant(TABLE)" in line]
    (data,) = [n for n, line in enumerate(lines) if line.startswith("TABLE = np.frombuffer(")]
    assert call < data
    assert lines[-1] == '"""), np.float32).reshape(128, 64)'


def test_a_pattern_says_what_the_bytes_are_seen_as():
    constant = constant_buffer("c", bits(ALL[0], 64).reshape(1, 64), resolve("float8_e4m3"))
    out = Buffer("out", (2, 64), constant.dtype, MemorySpace.shared_hbm)
    read = replace(whole(constant), shape=(2, 64), strides=(0, 1))
    copy = make_call("dma_copy", dst=whole(out), src=read)

    source = emit(Program("p", (), (Allocate(constant), Allocate(out), copy), ("out",)))

    assert "c = nl.shared_constant(C).view(nl.float8_e4m3)" in source
    assert "c.ap(pattern=[[0, 2], [1, 64]], offset=0, dtype=nl.float8_e4m3)" in source
