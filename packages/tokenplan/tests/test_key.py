"""The key: equal for kernels that ask the same orders, another one for any that do not."""

import re

import pytest
from packages.tokenplan.tests.brute_force import random_kernel

from neuroncore.program import parse_program
from tokenplan import Kernel, Loop, Op, analyse
from tokenplan.graph.canonical_key import key_of
from tokenplan.graph.token_graph import Parallel
from tokenplan.kernel.model import Access, Buffer, Node

TEXT = """program("trn2", "0.6")
def kernel(a: float32[1024, 512], b: float32[1024, 512]):
    out = buffer(float32[1024, 512], shared_hbm)
    for k in range(8):
        s = buffer(float32[128, 512], sbuf)
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=s[:, :], src=a[128*k : 128*k + 128, :])
        dma_copy(dst=t[:, :], src=b[128*k : 128*k + 128, :])
        tensor_scalar(dst=s[:, :], data=s[:, :], op0=multiply, operand0=2.0)
        tensor_tensor(dst=s[:, :], data1=s[:, :], data2=t[:, :], op=add)
        dma_copy(dst=out[128*k : 128*k + 128, :], src=s[:, :])
    return out
"""


def key(text: str) -> str:
    return key_of(analyse(parse_program(text)))


def swapped(text: str, one: int, other: int) -> str:
    lines = text.splitlines(keepends=True)
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


@pytest.mark.parametrize(
    "same",
    [
        re.sub(r"\bs\b", "tile", TEXT),
        re.sub(r"\bk\b", "row", TEXT).replace("def kernel", "def other"),
        re.sub(r"\ba\b", "x", TEXT),
        "\n\n" + TEXT,
        swapped(TEXT, 6, 7),
        swapped(TEXT, 7, 8),
        TEXT.replace("range(8)", "range(0, 8, 1)"),
        TEXT.replace("op0=multiply", "op0=multiply, reverse0=False"),
    ],
    ids=["tile", "loop", "parameter", "lines", "loads", "load-and-scale", "bounds", "default"],
)
def test_names_lines_defaults_and_the_order_of_independent_statements_do_not_matter(same):
    assert same != TEXT
    assert key(same) == key(TEXT)


@pytest.mark.parametrize(
    "other",
    [
        TEXT.replace("src=b[128*k : 128*k + 128, :]", "src=b[128*k : 128*k + 128, 0:512]").replace(
            "src=a[128*k : 128*k + 128, :]", "src=b[128*k : 128*k + 128, :]"
        ),
        TEXT.replace("range(8)", "range(7)"),
        TEXT.replace("op=add", "op=subtract"),
        TEXT.replace("operand0=2.0", "operand0=3.0"),
        TEXT.replace("dst=out[128*k : 128*k + 128, :]", "dst=out[0:128, :]"),
        TEXT.replace('program("trn2"', 'program("trn3"'),
        TEXT.replace('"0.6")', '"0.5")'),
        TEXT.replace("data1=s[:, :], data2=t[:, :]", "data1=t[:, :], data2=s[:, :]"),
        swapped(TEXT, 8, 9),
        TEXT.replace("return out", "return a"),
        TEXT.replace("return out", "return out, a"),
        TEXT.replace("b: float32", "b: int32"),
        TEXT.replace("float32", "int32"),
    ],
    ids=[
        "tensor",
        "bound",
        "op",
        "number",
        "offset",
        "target",
        "version",
        "operands",
        "dependent",
        "result",
        "two-results",
        "dtype",
        "dtypes",
    ],
)
def test_anything_else_does(other):
    assert other != TEXT
    assert key(other) != key(TEXT)


CONSTANT = """program("trn2", "0.6")
def constant_added(a: float16[4, 4]):
    c = constant(float16[4, 4], [VALUES])
    s = buffer(float16[4, 4], sbuf, address=(0, 0))
    t = buffer(float16[4, 4], sbuf)
    dma_copy(dst=s[:, :], src=a.ap([[4, 4], [1, 4]]))
    dma_copy(dst=t[:, :], src=c[:, :])
    dma_copy(dst=a[:, :], src=s[:, :])
    return a
""".replace("VALUES", ", ".join(["0.5"] * 16))


@pytest.mark.parametrize(
    "other",
    [
        CONSTANT.replace("0.5", "1.5", 1),
        CONSTANT.replace("float16", "bfloat16"),
        CONSTANT.replace("s = buffer(float16", "s = buffer(bfloat16"),
        CONSTANT.replace("[[4, 4], [1, 4]]", "[[1, 4], [4, 4]]"),
    ],
    ids=["content", "dtypes", "dtype at an address", "order of elements"],
)
def test_kernels_that_access_the_same_bytes_to_another_end_have_another_key(other):
    assert other != CONSTANT
    assert key(other) != key(CONSTANT)


def test_a_result_without_an_access_belongs_to_the_key():
    unused = TEXT.replace("b: float32[1024, 512])", "b: float32[1024, 512], c: float32[4, 4])")
    assert key(unused.replace("return out", "return c")) != key(unused)


TWINS = """program("trn2", "0.6")
def twins(a: float32[128, 512]):
    s = buffer(float32[128, 512], sbuf)
    t = buffer(float32[128, 512], sbuf)
    dma_copy(dst=s[:, :], src=a[:, :])
    dma_copy(dst=t[:, :], src=a[:, :])
    tensor_scalar(dst=s[:, :], data=s[:, :], op0=multiply, operand0=2.0)
    tensor_scalar(dst=t[:, :], data=t[:, :], op0=multiply, operand0=2.0)
    return a
"""


def test_statements_that_look_alike_go_by_the_tensors_that_were_named_before():
    assert key(swapped(TWINS, 6, 7)) == key(TWINS)
    assert key(swapped(TWINS, 4, 5)) == key(TWINS)


def test_claims_belong_to_the_key():
    program = parse_program(TEXT)
    assert key_of(analyse(program)) != key_of(analyse(program, [Parallel("k")]))


def renamed(kernel: Kernel) -> Kernel:
    """Every name in it another one, buffers in reverse order."""

    def loops(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"loop_{name}" for name in names)

    def access(old: Access) -> Access:
        terms = tuple(sorted((f"loop_{n}", c) for n, c in old.offset.terms))
        offset = type(old.offset)(old.offset.constant, terms)
        return Access(f"new_{old.buffer}", old.mode, offset, old.shape, old.strides, old.width)

    def node(old: Node) -> Node:
        if isinstance(old, Op):
            accesses = tuple(map(access, old.accesses))
            return Op(f"z{old.id}", old.instruction, old.engine, loops(old.loops), accesses)
        return Loop(f"loop_{old.id}", "v", old.trips, 5, 3, tuple(map(node, old.body)))

    buffers = {
        f"new_{b.id}": Buffer(f"new_{b.id}", b.space, b.shape, b.itemsize, loops(b.scope))
        for b in reversed(list(kernel.buffers.values()))
    }
    return Kernel("renamed", kernel.target, buffers, tuple(map(node, kernel.body)))


def test_renamed_random_kernels_have_the_same_key_and_different_ones_another():
    kernels = [random_kernel(seed) for seed in range(60)]
    keys = [key_of(analyse(kernel)) for kernel in kernels]
    assert [key_of(analyse(renamed(kernel))) for kernel in kernels] == keys
    forms = {repr(renamed(kernel).body) for kernel in kernels}
    assert len(set(keys)) >= 0.95 * len(forms)
