"""The verifier lists everything that is wrong with a program, and nothing that is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from neuroncore.enums import MemorySpace
from neuroncore.errors import LaunchError, ProgramError
from neuroncore.options import Options
from neuroncore.program import (
    Access,
    Affine,
    Allocate,
    Buffer,
    Call,
    Loop,
    Program,
    check,
    emit,
    execute_program,
    make_call,
    parse_program,
    peaks,
    verify,
    whole,
)
from neuroncore.program.verification import initialization
from neuroncore.targets import TARGETS
from neuroncore.timeline import estimate
from nki_dtypes import float32

HEAD = 'program("trn2", "0.6")\ndef p(x: float32[128, 512]):\n'


def program(body: str, result: str = "x") -> Program:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return parse_program(f"{HEAD}{lines}    return {result}\n")


def said(body: str, **options) -> list[str]:
    """What is wrong with a program of these statements."""
    found = verify(program(body), Options(**options) if options else None)
    return [f.message for f in found]


T = "t = buffer(float32[128, 512], sbuf)\n"
LOADED = T + "dma_copy(dst=t[:, :], src=x[:, :])\n"


def test_nothing_is_wrong_with_a_legal_program():
    assert said(LOADED + "for i in range(4):\n    dma_copy(dst=x[:, 128*i : 128*i + 128], "
                "src=t[:, 128*i : 128*i + 128])") == []  # fmt: skip


def test_a_start_partition_that_is_let_pass_is_not_warned_of_without_a_kernel():
    assert said(T + "memset(dst=t[16:32, :], value=0.0)", start_partition="warn") == []


# -- calls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("dma_copy(dst=t[:, :], src=x[:, 0:511])", "src has 65408 elements, dst 65536"),
        ("tensor_copy(dst=t[:, :], src=x[:, :])", "src is in HBM"),
        ("tensor_copy(dst=t[:, :])", "src is missing"),
        ("tensor_copy(dst=t[:, :], src=1.0)", "src cannot be 1.0"),
        ("memset(dst=t[:, :], value=0.0, engine=scalar)", "the scalar engine cannot execute it"),
        ("memset(dst=t[16:64, :], value=0.0)", "dst starts at partition 16 with 48 partitions"),
        ("memset(dst=t.ap([[1, 8], [1, 8]]), value=0.0)",
         "the first dimension of an on-chip access steps over partitions"),
        ("memset(dst=t.ap([[512, 128], [1, 8]], 508), value=0.0)", "the access leaves t"),
        ("memset(dst=t.ap([[512, 127], [1, 8]], 508), value=0.0)",
         "the access runs into the next partition of t"),
        ("nc_matmul(dst=t[:, :], stationary=t[:, 0:128], moving=t[:, :])", "dst is in SBUF"),
    ],
)  # fmt: skip
def test_a_call_that_breaks_a_rule_is_found(line, what):
    assert said(LOADED + line) == [what]


LARGE = 10**20
BEYOND = "1" + 400 * "0"


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (f"b = buffer(float32[128, {LARGE}], sbuf)",
         f"b: {4 * LARGE} bytes per partition do not fit SBUF"),
        (f"b = buffer(float32[128, {1 << 32}, {1 << 32}], sbuf)",
         f"b: {1 << 66} bytes per partition do not fit SBUF"),
        (f"b = buffer(float32[{LARGE}, 4], sbuf)", f"b: {LARGE} partitions in SBUF"),
        (f"b = buffer(float32[128, 4], sbuf, address=(0, {LARGE}))",
         f"b: offset {LARGE} is outside SBUF"),
        (f"for i in range({LARGE}):\n    memset(dst=t[:, :], value=0)", "loop i runs too far"),
        (f"memset(dst=t.ap([[512, 128], [{LARGE}, 2]], 0), value=0)", "the access leaves t"),
        (f"memset(dst=t[0:128, {LARGE}:{LARGE + 8}], value=0)", "the access leaves t"),
        (f"memset(dst=t[:, :], value={BEYOND})", "value is a number of 1329 bits"),
        (f"activation(dst=t[:, :], op=exp, data=t[:, :], scale=-{BEYOND})",
         "scale is a number of 1329 bits"),
    ],
)  # fmt: skip
def test_numbers_of_more_than_64_bits_are_found(lines, what):
    assert what in said(LOADED + lines)


def test_every_number_that_is_too_large_is_found():
    body = f"b = buffer(float32[128, {LARGE}], sbuf)\nmemset(dst=t[:, :], value={BEYOND})"

    assert len(said(LOADED + body)) == 2


def test_a_bound_that_only_the_last_iteration_breaks_is_found():
    loop = "for i in range({}):\n    memset(dst=t[:, 100*i : 100*i + 112], value=0.0)"

    assert said(T + loop.format(5)) == []
    assert said(T + loop.format(6)) == ["the access leaves t"]


def test_start_partitions_are_tried_in_every_iteration():
    loop = "for i in range({}):\n    memset(dst=t[{}*i : {}*i + 16, :], value=0.0)"

    assert said(T + loop.format(4, 32, 32)) == []
    assert said(T + loop.format(4, 16, 16)) == ["dst starts at partition 16 with 16 partitions"]
    assert said(T + loop.format(4, 16, 16), start_partition="ignore") == []


def test_only_values_that_a_loop_variable_takes_are_tried():
    quarters = (
        "for i in range(0, 128, 32):\n    tensor_copy(dst=t[i : i + 32, :], src=t[i : i + 32, :])"
    )
    banks = (
        "acc = buffer(float32[128, 1024], psum)\nfor i in range(0, 1024, 256):\n"
        "    nc_matmul(dst=acc[:, i : i + 256], stationary=t[:, 0:128], moving=t[:, 0:256])"
    )

    assert said(LOADED + quarters) == []
    assert said(LOADED + quarters.replace("128, 32)", "96, 16)")) == [
        "dst starts at partition 16 with 32 partitions",
        "src starts at partition 16 with 32 partitions",
    ]
    assert said(LOADED + banks) == []


def test_a_pattern_whose_step_leaps_over_what_it_would_leave_stays_inside():
    """Columns 0 and 256 only, of a row of 512; column 500 would run into the next."""
    inside = (
        "for i in range(0, 1024, 256):\n    memset(dst=t.ap([[512, 1], [1, 256]], {}*i), value=0.0)"
    )

    assert said(T + inside.format(1), start_partition="ignore") == []
    assert said(T + inside.replace("256)", "128)", 1).format(1), start_partition="ignore") != []


def test_psum_banks_are_tried_in_every_iteration():
    body = LOADED + (
        "acc = buffer(float32[128, 1024], psum)\nfor i in range({}):\n"
        "    nc_matmul(dst=acc[:, {}*i : {}*i + 256], stationary=t[:, 0:128], moving=t[:, 0:256])"
    )

    assert said(body.format(4, 256, 256)) == []
    assert said(body.format(3, 192, 192)) == ["dst reaches byte 2560 of a PSUM bank"]


def test_two_variables_that_undo_each_other_stay_inside():
    inside = "for i in range(4):\n    memset(dst=t[:, 128*i : 128*i + 128], value=0.0)\n"
    reverse = "for i in range(4):\n    memset(dst=t[:, -128*i + 384 : -128*i + 512], value=0.0)"

    assert said(T + inside + reverse) == []


# -- structure ------------------------------------------------------------------------------------

A = Buffer("a", (128, 8), float32, MemorySpace.sbuf)
X = Buffer("x", (128, 8), float32, MemorySpace.hbm)


def wrong(*body, results=(), **changes) -> list[str]:
    made = replace(Program("p", (X,), tuple(body), results), **changes)
    return [f.message for f in verify(made)]


FILL = make_call("memset", dst=whole(A), value=0.0)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ([FILL], "a is not a buffer here"),
        ([Loop("i", 0, 2, (Allocate(A), FILL)), FILL], "a is not a buffer here"),
        ([Allocate(A), Allocate(A)], "there are two buffers a"),
        ([Allocate(replace(A, shape=(129, 8)))], "a: 129 partitions in SBUF"),
        ([Allocate(replace(A, shape=(128,)))], "a: a tensor in SBUF has at least two dimensions"),
        ([Allocate(replace(A, address=(0, 1 << 20)))], "a: offset 1048576 is outside SBUF"),
        ([Loop("i", 5, 3, ())], "loop i never runs"),
        ([Loop("i", 0, 3, (), step=0)], "loop i never runs"),
        ([Allocate(A), Loop("i", 0, 1 << 63, (FILL,))], "loop i runs too far"),
        ([Allocate(A), Loop("i", -(1 << 63), 0, (FILL,))], "loop i runs too far"),
        ([Loop("i", 0, 3, (Loop("i", 0, 3, ()),))],
         "loop variable i is in use by an outer loop"),
        ([Allocate(A), make_call("memset", dst=replace(whole(A), offset=Affine.variable("i")),
                                 value=0.0)], "i is not a loop variable here"),
        ([Allocate(A), make_call("memset", dst=Access("a", Affine(), (128,), (8, 1)), value=0.0)],
         "the access has no elements or odd strides"),
        ([Call("memsat", {}, {})], "memsat is not an instruction"),
        ([Allocate(A), replace(FILL, operands={**FILL.operands, "src": whole(A)})],
         "unknown field src"),
        ([Allocate(A), replace(FILL, attrs={})], "engine is missing"),
        ([Allocate(A), replace(FILL, attrs={"engine": "vector"})],
         "engine='vector' is not one of its values"),
    ],
)  # fmt: skip
def test_a_program_that_does_not_hang_together_is_found(body, what):
    assert wrong(*body)[0] == what


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"target": "trn9"}, "unknown target 'trn9'"),
        ({"nki": "0.8"}, "NKI 0.8 is unknown"),
        ({"results": ("y",)}, "result y is not a buffer outside of loops"),
        ({"results": ("a",)}, "result a is in SBUF"),
        ({"parameters": (replace(X, space=MemorySpace.sbuf),)}, "parameter x is in SBUF"),
    ],
)
def test_a_frame_that_does_not_fit_is_found(changes, what):
    assert wrong(Allocate(A), FILL, **changes) == [what]


def test_an_index_that_does_not_fit_is_found():
    body = T + (
        "rows = buffer({}[{}, 1], sbuf)\nmemset(dst=rows[:, :], value={})\n"
        "dma_copy(dst=t[:, :], src=x.ap([[0, 128], [1, 512]], vector_offset=rows[:, :], dim=0))"
    )

    assert said(body.format("int32", 128, 0)) == []
    assert said(body.format("int32", 64, 0)) == ["the index of a dynamic access does not fit"]
    assert said(body.format("float32", 128, 0.0)) == ["the index of a dynamic access does not fit"]


# -- content --------------------------------------------------------------------------------------


def test_reading_what_nothing_has_written_is_found_with_the_iteration():
    body = T + (
        "memset(dst=t[:, 0:384], value=0.0)\n"
        "for i in range(4):\n    dma_copy(dst=x[:, 128*i : 128*i + 128], "
        "src=t[:, 128*i : 128*i + 128])"
    )

    assert said(body) == ["src reads 16384 of 16384 elements of t that nothing has written "
                          "(at i = 3)"]  # fmt: skip


RAGGED = """
t = buffer(float32[128, 512], sbuf)
dma_copy(dst=t[0:100, :], src=x[0:100, :])
s = buffer(float32[128, 512], sbuf)
memset(dst=s[:, :], value=1.0)
tensor_scalar(dst=s[:, :], data=t[:, :], operand0=2.0, op0=multiply)
{end}
"""


@pytest.mark.parametrize(
    ("end", "what"),
    [
        ("dma_copy(dst=x[0:100, :], src=s[0:100, :])", None),
        ("dma_copy(dst=x[:, :], src=s[:, :])", "src reads 14336 of 65536 elements of s"),
        ("tensor_reduce(dst=t[:, 0:1], data=s[:, :], op=add, axis=1)\n"
         "dma_copy(dst=x[0:101, 0:1], src=t[0:101, 0:1])", "src reads 1 of 101 elements of t"),
        ("memset(dst=s[:, :], value=0.0)\ndma_copy(dst=x[:, :], src=s[:, :])", None),
        ("nc_transpose(dst=t[0:32, 0:32], data=s[96:128, 0:32], engine=vector)",
         "data reads 896 of 1024 elements of s"),
    ],
    ids=["cut-off", "stored", "reduced", "written-over", "between-rows"],
)  # fmt: skip
def test_0_1_carries_undefined_elements_to_where_they_leave_their_row(end, what):
    text = str(program(RAGGED.format(end=end)))

    found = [f.message for f in verify(parse_program(text.replace("0.6", "0.1")))]
    newer = [f.message for f in verify(parse_program(text))]

    assert found == ([] if what is None else [f"{what} that nothing has written"])
    assert newer[0] == "data reads 14336 of 65536 elements of t that nothing has written"


@pytest.mark.parametrize("version", ["0.1", "0.6"])
def test_boxes_take_as_written_what_0_1_makes_of_undefined_elements(monkeypatch, version):
    monkeypatch.setattr(initialization, "PLAYED_CALLS", 0)
    text = str(program(RAGGED.format(end="dma_copy(dst=x[0:100, :], src=s[0:100, :])")))

    found = verify(parse_program(text.replace("0.6", version)))

    assert len(found) == (version == "0.6")


def test_content_is_judged_although_the_version_is_none():
    text = str(program(T + "dma_copy(dst=x[:, :], src=t[:, :])")).replace('"0.6"', '"seven"')

    assert [f.message for f in verify(parse_program(text))] == [
        "NKI seven is unknown",
        "src reads 65536 of 65536 elements of t that nothing has written",
    ]


def test_memory_allocated_in_a_loop_is_new_in_every_iteration():
    body = (
        "for i in range(2):\n    t = buffer(float32[128, 2], sbuf)\n"
        "    memset(dst=t[:, i : i + 1], value=0.0)\n"
        "    dma_copy(dst=x[:, 0:2], src=t[:, :])"
    )

    assert said(body) == ["src reads 128 of 256 elements of t that nothing has written (at i = 0)"]


def test_bytes_written_as_one_dtype_are_written_for_another():
    body = T + (
        "for i in range(2):\n"
        "    memset(dst=t.ap([[1024, 128], [2, 512]], i, dtype=uint16), value=0)\n"
        "dma_copy(dst=x[:, :], src=t[:, :])"
    )

    assert said(body) == []
    assert said(body.replace("range(2)", "range(1)")) != []


def test_accumulating_onto_psum_that_no_matmul_has_started_is_found():
    body = LOADED + (
        "acc = buffer(float32[128, 128], psum)\nmemset(dst=acc[:, :], value=0.0)\n"
        "for k in range(2):\n    nc_matmul(dst=acc[:, :], stationary=t[:, 0:128], "
        "moving=t[:, 0:128], accumulate={})"
    )

    assert said(body.format("True")) == ["accumulates onto PSUM that no matmul has written"]
    assert said(body.format("None")) == []


def test_a_program_too_large_to_be_played_is_judged_by_boxes():
    body = (
        "for i in range(400):\n    for j in range(400):\n"
        "        t = buffer(float32[128, 8], sbuf)\n"
        "        memset(dst=t[:, 0:{}], value=0.0)\n"
        "        dma_copy(dst=x[:, 0:8], src=t[:, :])"
    )

    assert said(body.format(8)) == []
    assert said(body.format(7)) == ["src reads elements of t that nothing has written"]


# -- capacity -------------------------------------------------------------------------------------


def tiles(count: int, columns: int, space: str = "sbuf") -> str:
    """`count` tiles, all alive at the end."""
    made = "".join(
        f"t{i} = buffer(float32[128, {columns}], {space})\nmemset(dst=t{i}[:, :], value=0.0)\n"
        for i in range(count)
    )
    return made + "".join(
        f"tensor_copy(dst=t{i}[:, 0:8], src=t{i}[:, 8:16])\n" for i in range(count)
    )


def test_sbuf_counts_what_is_alive_at_once():
    most = TARGETS["trn2"].usable_sbuf_bytes // (4 * 4096)

    assert said(tiles(most, 4096)) == []
    assert said(tiles(most + 1, 4096)) == [
        f"{16384 * (most + 1)} bytes per partition of SBUF are held at once"
    ]


def test_tiles_used_one_after_the_other_need_no_more_than_one():
    body = "".join(
        f"t{i} = buffer(float32[128, 32768], sbuf)\nmemset(dst=t{i}[:, :], value=0.0)\n"
        for i in range(5)
    )

    assert said(body) == []


def test_what_a_loop_uses_lives_through_all_of_it():
    body = """
a = buffer(float32[128, 32768], sbuf)
memset(dst=a[:, :], value=0.0)
for i in range(2):
    tensor_copy(dst=a[:, 0:8], src=a[:, 8:16])
    b = buffer(float32[128, 32768], sbuf)
    memset(dst=b[:, :], value=0.0)
"""

    assert said(body) == ["262144 bytes per partition of SBUF are held at once"]


def test_psum_counts_whole_banks_and_says_who_holds_them():
    assert said(tiles(8, 16, "psum")) == []

    (finding,) = verify(program(tiles(9, 16, "psum")))

    assert finding.message == "9 banks of PSUM are held at once"
    assert finding.got == "t0 1, t1 1, t2 1, t3 1, t4 1, t5 1 and 3 more"


def test_tensors_at_the_same_address_count_once():
    body = "".join(
        f"t{i} = buffer(float32[128, 32768], sbuf, address=(0, {at}))\n"
        f"memset(dst=t{i}[:, 0:16], value=0.0)\n"
        for i, at in enumerate((0, 0, 1024))
    ) + "".join(f"tensor_copy(dst=t{i}[:, 0:8], src=t{i}[:, 8:16])\n" for i in range(3))

    assert said(body) == []
    assert peaks(program(body), TARGETS["trn2"])[MemorySpace.sbuf].held == 4 * 32768 + 1024


# -- all at once ----------------------------------------------------------------------------------


def test_check_lists_all_violations_with_their_lines():
    text = HEAD.replace("trn2", "trn7") + (
        "    t = buffer(float32[128, 100000], sbuf)\n"
        "    for i in range(3, 1):\n        memset(dst=t[:, 0:8], value=0.0)\n"
        "    dma_copy(dst=t[:, 0:512], src=x[:, 0:511])\n    return y\n".replace(
            "return y", "return x"
        )
    )

    with pytest.raises(ProgramError) as caught:
        check(parse_program(text))

    unknown, *others = caught.value.errors
    assert unknown.what == "unknown target 'trn7'"
    assert [(e.place.line if e.place else None, e.what) for e in others] == [
        (3, "t: 400000 bytes per partition do not fit SBUF"),
        (4, "loop i never runs"),
        (6, "src has 65408 elements, dst 65536"),
        (3, "400000 bytes per partition of SBUF are held at once"),
    ]
    assert str(caught.value).startswith("program p: 5 violations\n\n")


def test_check_says_nothing_about_a_legal_program():
    assert check(program(LOADED)) is None


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("trn2", "trn9", "text.py:1:9: "),
        ("0.6", "0.9", "text.py:1:17: "),
        ("return x", "return t", "text.py:4:5: "),
    ],
)
def test_what_is_no_statement_is_found_where_the_text_says_it(old, new, place):
    text = (
        'program("trn2", "0.6")\ndef p(x: float32[128, 64]):\n'
        "    t = buffer(float32[128, 64], sbuf)\n    return x\n"
    )
    read = parse_program(text.replace(old, new), "text.py")

    with pytest.raises(ProgramError) as caught:
        check(read)
    (error,) = caught.value.errors
    assert str(error).startswith(place)
    with pytest.raises(ProgramError) as caught:
        check(replace(read, places={}))
    assert caught.value.errors[0].place is caught.value.place is None
    assert "^" not in str(caught.value)


@pytest.mark.parametrize("given", [None, 3, "def p(x): pass", [], lambda x: x])
@pytest.mark.parametrize(
    "use",
    [check, verify, estimate, emit, lambda given: execute_program(given, [])],
    ids=["check", "verify", "estimate", "emit", "execute"],
)
def test_what_is_no_program_is_rejected_with_what_is_one(use, given):
    with pytest.raises(
        LaunchError, match=r"not a program(.|\n)*capture(.|\n)*parse_program"
    ) as caught:
        use(given)
    assert type(given).__name__ in str(caught.value)


def test_a_target_that_was_asked_for_is_no_mistake_of_the_text():
    with pytest.raises(ProgramError, match="trn9") as caught:
        estimate(program(LOADED), target="trn9", mode="as_written")
    (error,) = caught.value.errors
    assert error.place is None
    assert "^" not in str(caught.value)
