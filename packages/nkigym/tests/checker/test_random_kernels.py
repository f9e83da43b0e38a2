"""Random kernels that differ in one place: equal value numbers, equal results, to the bit."""

from random import Random

import numpy as np
import pytest

from neuroncore.errors import KernelError
from neuroncore.program import execute_program, parse_program
from nkigym.checker import check_kernels

SEED = 2911
SHAPES = ((8, 8), (4, 16), (16, 4))
ALU = ("add", "subtract", "multiply", "maximum", "minimum")
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan)


def view(name, rows, columns):
    """All of a flat parameter or result in rows."""
    return f"{name}.ap([[{columns}, {rows}], [1, {columns}]])"


def tensor_tensor(random):
    a, b = random.choice(("ab", "ba", "aa", "az", "za", "am", "an"))
    return f"tensor_tensor(dst=a, data1={a}, data2={b}, op={random.choice(ALU)})"


def tensor_scalar(random):
    return (
        f"tensor_scalar(dst=a, data=a, operand0={random.choice((0.0, 1.0, 2.0))}, "
        f"op0={random.choice(ALU)}, reverse0={random.choice((True, False))})"
    )


def scan(random):
    first, second = random.choice(("mb", "na", "ba", "bn"))
    return (
        f"tensor_tensor_scan(dst=a, data0={first}, data1={second}, initial=0.0, "
        f"op0={random.choice(('multiply', 'add'))}, op1={random.choice(('add', 'maximum'))})"
    )


def reduction(random):
    return (
        f"tensor_reduce(dst=r, data=a, op={random.choice(ALU)}, axis=(1,)); "
        f"tensor_scalar(dst=a, data=b, operand0=r, op0={random.choice(ALU)})"
    )


def copy(random):
    source, target = random.choice(("ah", "ab", "ba", "ha", "za", "ia", "ai", "wa", "aw", "wb"))
    return f"tensor_copy(dst={target}, src={source})"


def unary(random):
    return random.choice((
        "reciprocal(dst=a, data=a)", "activation(dst=a, data=a, op=relu, scale=1.0)",
        "activation(dst=a, data=a, op=copy, scale=1.0)", "memset(dst=b, value=0.0)",
        "memset(dst=w, value=-0.0)", "memset(dst=b, value=-0.0)",
        "select_reduce(dst=a, predicate=i, on_true=b, on_false=0.0)",
        "tensor_copy_predicated(dst=a, src=b, predicate=i)", "max8(dst=r8, src=a)",
    ))  # fmt: skip


CALLS = (tensor_tensor, tensor_tensor, tensor_scalar, scan, reduction, copy, copy, unary)
CONSTANTS = {"z": 0.0, "m": 1.0, "n": -0.0}


def text(shape, calls):
    """A kernel of x and y, float32[64], which ends in one result."""
    rows, columns = shape
    tiles = {**dict.fromkeys("abzmn", "float32"), "h": "bfloat16", "i": "uint8", "w": "int32"}
    lines = [f"{name} = buffer({dtype}[{rows}, {columns}], sbuf)" for name, dtype in tiles.items()]
    lines += [f"r = buffer(float32[{rows}, 1], sbuf)", f"r8 = buffer(float32[{rows}, 8], sbuf)"]
    lines += [f"memset(dst={name}, value={value})" for name, value in CONSTANTS.items()]
    lines += ["memset(dst=h, value=0.0)", "memset(dst=i, value=1)", "memset(dst=w, value=0)"]
    lines += [f"dma_copy(dst={n}, src={view(p, *shape)})" for n, p in zip("ab", "xy", strict=True)]
    lines += [line for call in calls for line in call.split("; ")]
    lines += [f"dma_copy(dst={view('out', *shape)}, src=a)"]
    body = "\n".join("    " + whole(line) for line in lines)
    return f"""program("trn2", "0.7")
def f(x: float32[64], y: float32[64]):
    out = buffer(float32[64], shared_hbm)
{body}
    return out
"""


def whole(line):
    """With `[:, :]` behind the name of each tile that a call has."""
    head, bracket, rest = line.partition("(")
    if " = " in head:
        return line
    parts = [part.partition("=") for part in rest.removesuffix(")").split(", ")]
    tiles = {*"abzmnhiw", "r", "r8"}
    named = [f"{n}{e}{v}[:, :]" if v in tiles else f"{n}{e}{v}" for n, e, v in parts]
    return f"{head}{bracket}{', '.join(named)})"


def changed(random, shape, calls):
    """The same kernel but for one call, one more or less, the order of two, or the shape."""
    at, how = random.randrange(len(calls)), random.randrange(5)
    if how == 0:
        return random.choice(SHAPES), calls
    if how == 1:
        return shape, [*calls[:at], *calls[at + 1 :]]
    if how == 2:
        return shape, [*calls[:at], random.choice(CALLS)(random), *calls[at:]]
    if how == 3:
        swapped = list(calls)
        swapped[at], swapped[at - 1] = calls[at - 1], calls[at]
        return shape, swapped
    kind = calls[at].partition("(")[0]
    same = [c for c in (f(random) for f in CALLS * 20) if c.startswith(kind) and c != calls[at]]
    return shape, [*calls[:at], *same[:1], *calls[at + 1 :]]


def arrays(random):
    """Small integers, whose sums are exact in any order, among values that are special."""
    for _ in range(2):
        found = random.integers(-4, 5, 64).astype(np.float32)
        places = random.random(64) < 0.5
        yield np.where(places, random.choice(np.array(SPECIAL, np.float32), 64), found)


@np.errstate(all="ignore")
def executed(program, seed):
    random = np.random.default_rng(seed)
    (out,) = execute_program(program, [a.copy() for a in arrays(random)])
    return np.where(np.isnan(out), np.uint32(0x7FC00000), out.view(np.uint32))


@pytest.mark.parametrize("pairs", [300, pytest.param(5000, marks=pytest.mark.thorough)])
def test_kernels_with_equal_numbers_give_equal_bits(pairs):
    random, verdicts = Random(SEED), []
    while len(verdicts) < pairs:
        shape = random.choice(SHAPES)
        calls = [random.choice(CALLS)(random) for _ in range(random.randrange(1, 6))]
        one, other = text(shape, calls), text(*changed(random, shape, calls))
        try:
            programs = parse_program(one), parse_program(other)
            found = [executed(program, 0) for program in programs]
        except KernelError:
            continue  # max8 of a tile of 4 columns
        verdicts.append(check_kernels(*programs) == [])
        if verdicts[-1] and one != other:
            for seed in range(1, 4):
                found = [executed(program, seed) for program in programs]
                assert (found[0] == found[1]).all(), f"pair {len(verdicts)}\n{one}\n{other}"
    assert 0.1 < sum(verdicts) / pairs < 0.9
