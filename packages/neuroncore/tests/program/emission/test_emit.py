"""NKI source from programs: what it reads like, and what a version cannot say."""

from __future__ import annotations

import ast

import pytest

from neuroncore.errors import KernelError, LaunchError, ProgramError, UnsupportedError
from neuroncore.program import emit, parse_program, without_division
from neuroncore.program.emission.line_breaking import folded

VERSIONS = ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7")


def program(body: str, head: str = "x: float32[128, 64]", nki: str = "0.6"):
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return parse_program(f'program("trn2", "{nki}")\ndef p({head}):\n{lines}    return x\n')


T = "t = buffer(float32[128, 64], sbuf)\ndma_copy(dst=t[:, :], src=x[:, :])\n"


def emitted(body: str, version: str = "0.6", **more) -> list[str]:
    """The statements of the emitted kernel, without the comments that say where they are from."""
    tree = ast.parse(emit(program(body, **more), version))
    (function,) = (n for n in tree.body if isinstance(n, ast.FunctionDef))
    skipped = 1 + len(function.args.args)  # docstring, one assertion per parameter
    return [ast.unparse(node) for node in function.body[skipped:-1]]


def rejected(body: str, version: str, **more) -> KernelError:
    with pytest.raises(KernelError) as caught:
        emit(program(body, **more), version)
    return caught.value


def test_numbers_of_the_device_are_written_as_scalars():
    body = "scalar_load(dst=cell[:, :], src=x[:, :])\nscalar_store(dst=x[:, :], src=cell[:, :])"
    assert emitted(body, "0.7", head="x: int32[1, 1], cell: int32[1, 1]", nki="0.7") == [
        "nisa.scalar_store(cell, nisa.scalar_load(x))",
        "nisa.scalar_store(x, nisa.scalar_load(cell))",
    ]
    error = rejected(body, "0.6", head="x: int32[1, 1], cell: int32[1, 1]", nki="0.7")
    assert "scalar_load" in str(error)


def test_the_whole_of_a_small_kernel():
    text = emit(program("for i in range(0, 4, 2):\n    t = buffer(float32[128, 16], sbuf)\n"
                        "    dma_copy(dst=t[:, :], src=x[:, 16*i : 16*i + 16])"))  # fmt: skip

    lines = [line.partition("  # from <program")[0] for line in text.splitlines()]
    assert lines == [
        "import nki",
        "import nki.isa as nisa",
        "import nki.language as nl",
        "",
        "",
        "@nki.jit",
        "def p(x):",
        '    """Program p, for trn2, NKI 0.7.',
        "",
        "    x: (128, 64), float32",
        '    """',
        "    assert x.shape == (128, 64)",
        "    for i in range(0, 4, 2):",
        "        t = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.sbuf)",
        "        nisa.dma_copy(t, x[:, 16*i : 16*i + 16])",
        "    return x",
    ]


def test_a_statement_says_which_line_it_came_from():
    (line,) = [n for n in emit(program(T)).splitlines() if "dma_copy" in n]

    assert line.endswith(":4")
    assert "  # from <program" in line


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("tensor_copy(dst=t[:, 0:32], src=t[:, 0:63:2])",
         "nisa.tensor_copy(t[:, 0:32], t[:, 0:63:2])"),
        ("tensor_copy(dst=t[:, 0:2], src=t.ap([[64, 128], [0, 2]], 5))",
         "nisa.tensor_copy(t[:, 0:2], t.ap(pattern=[[64, 128], [0, 2]], offset=5))"),
        ("tensor_reduce(dst=t[:, 0:1], data=t[:, :], op=add, negate=True)",
         "nisa.tensor_reduce(t[:, 0:1], nl.add, data=t, axis=(1,), negate=True)"),
        ("activation(dst=t[:, :], data=t[:, :], bias=t[:, 0:1], scale=1.0, op=exp)",
         "nisa.activation(t, nl.exp, data=t, bias=t[:, 0:1])"),
        ("affine_select(dst=t[:, :], on_true_tile=t[:, :], on_false_value=-inf, "
         "pattern=((-1, 64),), channel_multiplier=1, cmp_op=greater)",
         "nisa.affine_select(t, [[-1, 64]], channel_multiplier=1, on_true_tile=t, "
         "on_false_value=float('-inf'), cmp_op=nl.greater)"),
        ("memset(dst=t[:, :], value=0.0, engine=gpsimd, name='clear')",
         "nisa.memset(t, 0.0, engine=nisa.engine.gpsimd, name='clear')"),
    ],
)  # fmt: skip
def test_a_call_is_written_as_people_do(body, line):
    assert emitted(T + body)[2] == line


def test_parameters_follow_the_order_of_their_version():
    select = (
        "affine_select(dst=t[:, :], on_true_tile=t[:, :], on_false_value=0.0, "
        "pattern=((-1, 64),), channel_multiplier=1, cmp_op=greater)"
    )

    assert "offset=0, channel_multiplier=1" in emitted(T + select, "0.2")[2]
    assert "offset" not in emitted(T + select, "0.3")[2]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_engine_that_0_1_chose_is_kept(version):
    """Integers are added on the vector engine up to 0.2, exactly on GpSimd after it."""
    body = (
        "t = buffer(int32[128, 64], sbuf)\ndma_copy(dst=t[:, :], src=x[:, :])\n"
        "tensor_tensor(dst=t[:, :], data1=t[:, :], data2=t[:, :], op=add)"
    )

    line = emitted(body, version, head="x: int32[128, 64]", nki="0.1")[2]

    assert ("engine=nisa.engine.vector" in line) == (version != "0.2")


def test_a_name_that_the_source_needs_is_given_another():
    body = T.replace("t", "nl", 1).replace("dst=t", "dst=nl")

    assert emitted(body)[0].startswith("nl_ = nl.ndarray(")


def test_results_are_shared_and_other_hbm_tensors_private():
    text = program(
        "y = buffer(float32[128, 64], hbm)\nz = buffer(float32[128, 64], hbm)\n"
        "dma_copy(dst=y[:, :], src=x[:, :])\ndma_copy(dst=z[:, :], src=y[:, :])"
    )
    lines = emit(parse_program(str(text).replace("return x", "return z"))).splitlines()

    assert [n.partition("buffer=")[2].partition(")")[0] for n in lines if "ndarray" in n] == [
        "nl.private_hbm",
        "nl.shared_hbm",
    ]


def test_a_tile_that_a_dma_repeats_over_partitions_goes_by_hbm():
    spread = (
        "w = buffer(float32[128, 64], sbuf)\n"
        "dma_copy(dst=w[:, :], src=t.ap([[0, 128], [1, 64]], 2048))"
    )

    assert emitted(T + spread)[3:] == [
        "t_in_hbm = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.private_hbm)",
        "nisa.dma_copy(t_in_hbm[32:33, :], t[32:33, :])",
        "nisa.dma_copy(w, t_in_hbm.ap(pattern=[[0, 128], [1, 64]], offset=2048))",
    ]


@pytest.mark.parametrize(
    ("value", "written"), [("1.5", 2), ("2.5", 2), ("-3.0", 0), ("1e30", 2**32 - 1)]
)
def test_a_float_that_0_2_rounds_into_integers_is_written_as_the_integer(value, written):
    body = f"t = buffer(uint32[128, 64], sbuf)\nmemset(dst=t[:, :], value={value})"

    assert emitted(body, nki="0.2")[1] == f"nisa.memset(t, {written})"


# -- what a version cannot say --------------------------------------------------------------------

MATMUL = (
    "acc = buffer(float32[64, 64], psum)\n"
    "nc_matmul(dst=acc[:, :], stationary=t[:, :], moving=t[:, :], accumulate=False)"
)


def test_a_field_without_a_parameter_is_rejected_unless_it_says_nothing():
    assert emitted(T + MATMUL, "0.3")[3].endswith("accumulate=False)")
    error = rejected(T + MATMUL, "0.2")
    assert isinstance(error, UnsupportedError)
    assert error.what == "nc_matmul(accumulate=False) cannot be written in NKI 0.2"
    assert emitted(T + MATMUL.replace(", accumulate=False", ""), "0.2")


@pytest.mark.parametrize(
    ("body", "version", "what"),
    [
        (T + "memset(dst=t[:, :], value=0.0)", "0.1", "no source can be written for NKI 0.1"),
        (T + "memset(dst=t[:, :], value=0.0)", "0.8", "no source can be written for NKI 0.8"),
    ],
)  # fmt: skip
def test_what_a_version_has_not_is_rejected(body, version, what):
    error = rejected(body, version)

    assert isinstance(error, (UnsupportedError, LaunchError))
    assert error.what == what


def test_a_call_that_breaks_a_rule_of_the_version_is_rejected_with_all_others():
    divide = "tensor_tensor(dst=t[:, :], data1=t[:, :], data2=t[:, :], op=divide)\n"

    error = rejected(T + divide + divide, "0.6", nki="0.1")

    assert isinstance(error, ProgramError)
    assert [e.what for e in error.errors] == ["divide is not an operation of trn2"] * 2


@pytest.mark.parametrize(("version", "is_rejected"), [("0.6", False), ("0.5", True)])
def test_a_verified_program_is_checked_again_for_another_version_only(version, is_rejected):
    made = program(T.replace("64", "65"))

    try:
        emit(made, version, verified=True)
    except ProgramError as error:
        assert is_rejected, error
    else:
        assert not is_rejected


# -- division -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        ("tensor_tensor(dst=t[:, :], data1=t[:, :], data2=t[:, :], op=divide)",
         ["nisa.reciprocal(inverse, t)",
          "nisa.tensor_tensor(t, t, data2=inverse, op=nl.multiply)"]),
        ("tensor_scalar(dst=t[:, :], data=t[:, :], operand0=t[:, 0:1], op0=divide)",
         ["nisa.reciprocal(inverse, t[:, 0:1])",
          "nisa.tensor_scalar(t, t, op0=nl.multiply, operand0=inverse)"]),
        ("tensor_scalar(dst=t[:, :], data=t[:, :], operand0=3.0, op0=divide, reverse0=True)",
         ["nisa.reciprocal(inverse, t)",
          "nisa.tensor_scalar(t, inverse, op0=nl.multiply, operand0=3.0)"]),
        ("tensor_scalar(dst=t[:, :], data=t[:, :], operand0=1.0, op0=add, operand1=4.0, "
         "op1=divide)",
         ["nisa.tensor_scalar(t, t, op0=nl.add, operand0=1.0, op1=nl.multiply, operand1=0.25)"]),
    ],
)  # fmt: skip
def test_a_division_is_a_product_with_a_reciprocal(call, lines):
    source = emit(without_division(program(T + call, nki="0.1")))

    body = ast.unparse(ast.parse(source)).splitlines()
    assert [n.strip() for n in body if "nisa." in n][1:] == lines


def test_a_swapped_division_as_second_operation_is_rejected():
    swapped = (
        "tensor_scalar(dst=t[:, :], data=t[:, :], operand0=1.0, op0=add, operand1=4.0, "
        "op1=divide, reverse1=True)"
    )

    with pytest.raises(UnsupportedError, match="divides in a way"):
        without_division(program(T + swapped, nki="0.1"))


def test_an_access_that_is_too_long_for_its_line_is_folded_at_its_brackets():
    head = "a_matrix_of_many_rows_in_hbm: float32[4194304, 128]"
    body = (
        "for a_tile in range(0, 64, 1):\n    for a_chunk in range(0, 4, 1):\n"
        "        t = buffer(uint8[128, 128], sbuf)\n"
        "        dma_copy(dst=t[:, :], src=a_matrix_of_many_rows_in_hbm.ap([[512, 128], "
        "[1, 128]], 16384*a_tile + 128*a_chunk + 12345, dtype=uint8))\n"
    )
    text = emit(parse_program(f'program("trn2", "0.6")\ndef p({head}):\n' + "".join(
        f"    {line}\n" for line in body.splitlines()
    ) + "    return a_matrix_of_many_rows_in_hbm\n"))  # fmt: skip

    assert max(map(len, text.splitlines())) <= 100
    assert (
        "                a_matrix_of_many_rows_in_hbm.ap(\n"
        "                    pattern=[[512, 128], [1, 128]], "
        "offset=16384*a_tile + 128*a_chunk + 12345,\n"
        "                    dtype=nl.uint8\n"
        "                ),\n"
    ) in text


def test_many_parameters_and_results_are_folded():
    names = [f"a_parameter_with_number_{n}" for n in range(12)]
    head = ", ".join(f"{n}: float32[128, 4]" for n in names)
    text = emit(parse_program(
        f'program("trn2", "0.6")\ndef p({head}):\n    return {", ".join(names)}\n'
    ))  # fmt: skip

    (function,) = (n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef))
    assert max(map(len, text.splitlines())) <= 100
    assert [a.arg for a in function.args.args] == names
    assert ast.unparse(function.body[-1]) == f"return ({', '.join(names)})"


@pytest.mark.parametrize("room", [1, 8, 20, 40, 60])
@pytest.mark.parametrize(
    "text",
    [
        "call(a[0, 1:2], b.ap(pattern=[[1, 2], [3, 4]], offset=5*i + 6*j - 7), 'x, (y', c)",
        "call()", "name = f([[]], {}, (1,))", "return (a, b, c)",
    ],
)  # fmt: skip
def test_folded_source_means_the_same(text, room):
    lines = folded(text, room)

    assert ast.unparse(ast.parse("\n".join(lines))) == ast.unparse(ast.parse(text))
    assert all(len(line) <= room or " " not in line.strip() for line in lines if room >= 40)
